"""Admission of the five kinds of Pocket-ID, as the API server runs it: defaults, schema, CEL, then the webhook's rules."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.keystone import folders
from tests.keystone.folders import CASES

from moorage.pocketid import ADMISSIONS
from moorage.pocketid.oidcclient.admission import PRIVATE
from moorage.schema import Admission, FieldError, Review

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PLACES = {
    "pocketid-client": "PocketIDOIDCClient",
    "pocketid-instance": "PocketIDInstance",
    "pocketid-usergroup": "PocketIDUserGroup",
    "pocketid-user": "PocketIDUser",
    "pocketid-api": "PocketIDAPI",
}
BY_KIND = {item.kind.kind: item for item in ADMISSIONS}
CLIENT = BY_KIND["PocketIDOIDCClient"]
MATERIAL = ("cHJpdmF0ZS1tYXRlcmlhbA", "c3ltbWV0cmlj", "hunter2")
"""What the cases put where a secret must not be shown."""


def complete(admission: Admission, obj: dict[str, Any]) -> dict[str, Any]:
    """An object as the server holds it before it is validated."""
    whole = copy.deepcopy(obj)
    admission.kind.structural.prune(whole)
    return admission.default(whole)


def admit(
    admission: Admission, obj: Any, old: Any = None, siblings: Any = ()
) -> tuple[str, list[FieldError], list[str]]:
    """The layer that refused ("" when none did), its complaints, and all warnings."""
    structure = admission.kind.structural.validate(obj, old)
    if structure.errors:
        return "schema", list(structure.errors), list(structure.warnings)
    rules = admission.kind.structural.validate_rules(obj, old)
    if rules.errors:
        return "rules", list(rules.errors), list(rules.warnings)
    verdict = admission.judge(Review("UPDATE" if old else "CREATE", obj, old, tuple(siblings), NOW))
    return "webhook" if verdict.errors else "", list(verdict.errors), list(verdict.warnings)


ALL = [param for place in PLACES for param in folders.cases(CASES / place / "admission")]


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: f"{folder.parent.parent.name}-{folder.name}")
def test_a_case_is_admitted_or_refused_as_written(folder: Path, update_cases: bool) -> None:
    """Every rule in both directions gets its verdict with its asserted words; no secret is in any of them."""
    case, admission = folders.plain(folder / "given.yaml"), BY_KIND[PLACES[folder.parent.parent.name]]
    old = complete(admission, case["old"]) if "old" in case else None
    siblings = [complete(admission, item) for item in case.get("siblings", ())]
    layer, errors, warnings = admit(admission, complete(admission, case["object"]), old, siblings)
    told = [error.message for error in errors]
    if case["asserts"]:
        assert any(case["asserts"] in message for message in told), told
    else:
        assert told == []
    assert not any(secret in message for secret in MATERIAL for message in (*told, *warnings))
    verdict = {"refusedBy": layer, "errors": told, "warnings": warnings}
    folders.compare(folder, {"verdict.yaml": folders.text(verdict)}, update=update_cases)


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: f"{folder.parent.parent.name}-{folder.name}")
def test_the_pass_judges_as_the_server_does(folder: Path) -> None:
    """With an old CRD, or none, the same words come from admission alone: there is one table of rules."""
    case, admission = folders.plain(folder / "given.yaml"), BY_KIND[PLACES[folder.parent.parent.name]]
    old = complete(admission, case["old"]) if "old" in case else None
    siblings = tuple(complete(admission, item) for item in case.get("siblings", ()))
    obj = complete(admission, case["object"])
    alone = admission.judge(Review("UPDATE" if old else "CREATE", obj, old, siblings, NOW))
    want = folders.plain(folder / "want" / "verdict.yaml")
    if obj["metadata"].get("deletionTimestamp"):
        assert alone.ok
    else:
        assert set(want["errors"]) <= {error.message for error in alone.errors}
        assert alone.ok == (want["errors"] == [])


def test_defaults_of_a_client_are_those_of_the_seed() -> None:
    """Only what the declaration gives a value; the names that default to the resource's own stay absent."""
    spec = complete(CLIENT, client({}))["spec"]
    assert spec == {
        "isPublic": False,
        "pkceEnabled": False,
        "requiresReauthentication": False,
        "requiresPushedAuthorizationRequests": False,
        "skipConsent": False,
        "accessTokenDurationMinutes": 60,
        "refreshTokenDurationMinutes": 43200,
        "deletionPolicy": "Delete",
    }


def test_defaults_inside_blocks_come_with_the_block() -> None:
    """The key table of the credentials Secret (spec 1.6), rotation and identities."""
    given = {
        "secret": {"keys": {}},
        "clientSecretRotation": {},
        "federatedIdentities": [{"issuer": "https://k.example"}],
    }
    spec = complete(CLIENT, client(given))["spec"]
    assert spec["secret"]["enabled"] is spec["secret"]["storeClientSecret"] is True
    assert spec["secret"]["keys"] == {
        "clientID": "client_id",
        "clientSecret": "client_secret",
        "issuerUrl": "issuer_url",
        "callbackUrls": "callback_urls",
        "logoutCallbackUrls": "logout_callback_urls",
        "discoveryUrl": "discovery_url",
        "authorizationUrl": "authorization_url",
        "tokenUrl": "token_url",
        "userinfoUrl": "userinfo_url",
        "jwksUrl": "jwks_url",
        "endSessionUrl": "end_session_url",
        "resource": "resource",
        "scopes": "scopes",
    }
    assert spec["clientSecretRotation"] == {"enabled": False}
    assert spec["federatedIdentities"][0]["replayProtection"] is False


@pytest.mark.parametrize("spec", [None, [], "text", {"secret": "text", "apiAccess": {}}])
def test_defaulting_takes_what_no_schema_has_seen(spec: Any) -> None:
    """The mutating webhook runs before the schema does."""
    assert CLIENT.default(client(spec))["metadata"]["name"] == "my-app"


@pytest.mark.case("B74")
def test_two_clients_bound_to_one_instance_conflict_whatever_their_selectors_say() -> None:
    """`status.instance` is the truth where it is known."""
    here, there = {"namespace": "id", "name": "main"}, {"namespace": "id", "name": "other"}
    mine = client({"clientID": "shared", "instanceSelector": {"matchLabels": {"a": "b"}}}) | {
        "status": {"instance": here}
    }
    for place, refused in ((here, True), (there, False)):
        sibling = client({"clientID": "shared"}, name="other") | {"status": {"instance": place}}
        verdict = CLIENT.judge(Review("CREATE", complete(CLIENT, mine), None, (complete(CLIENT, sibling),), NOW))
        assert [error.path for error in verdict.errors] == (["spec.clientID"] if refused else [])


@pytest.mark.case("A1")
def test_a_terminating_sibling_claims_nothing() -> None:
    """What is on its way out makes room."""
    sibling = complete(CLIENT, client({"clientID": "shared"}, name="other"))
    sibling["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
    obj = complete(CLIENT, client({"clientID": "shared"}))
    assert CLIENT.judge(Review("CREATE", obj, None, (sibling,), NOW)).ok


MEMBERS = st.dictionaries(st.sampled_from(["kty", "kid", "x", "crv"]), st.text(max_size=5), max_size=4)
HIDDEN = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=12)


@pytest.mark.case("A4", "P2")
@settings(deadline=None)
@given(MEMBERS, st.sampled_from(sorted(PRIVATE)), HIDDEN, st.booleans())
def test_no_inline_private_key_is_admitted_or_shown(
    jwk: dict[str, str], member: str, hidden: str, wrapped: bool
) -> None:
    """Whatever stands beside it, and inside a document, too."""
    key: dict[str, Any] = {**jwk, member: hidden}
    entry = {"value": {"keys": [key]} if wrapped else key}
    spec = {"federatedIdentities": [{"issuer": "https://k.example", "publicKeys": [entry]}]}
    _, errors, warnings = admit(CLIENT, complete(CLIENT, client(spec)))
    assert [error.path for error in errors] == ["spec.federatedIdentities[0].publicKeys[0].value"]
    assert not any(hidden in text for text in (*warnings, *(error.message for error in errors)))


def client(spec: Any, name: str = "my-app") -> dict[str, Any]:
    """A client on the wire."""
    kind = CLIENT.kind
    meta = {"name": name, "namespace": "apps"}
    return {"apiVersion": kind.resource.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
