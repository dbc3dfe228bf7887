"""Admission of KeystoneIdentityBackend, as the API server runs it: defaults, schema, CEL, then the webhook's rules."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from moorage.keystone.backend.admission import ADMISSION, default
from moorage.keystone.backend.federated_checks import check_provider_name
from moorage.keystone.backend.ldap import OWNED, denial
from moorage.keystone.backend.ldap_options import KNOWN, WRITABLE
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.render import Fault, Projected, project
from moorage.keystone.backend.types import KIND
from moorage.schema.fielderror import FieldError
from moorage.schema.review import Review

from . import folders

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def complete(obj: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object as the server holds it before it is validated."""
    whole = copy.deepcopy(obj)
    KIND.structural.prune(whole)
    KIND.structural.default(whole)
    whole = ADMISSION.complete(whole, old)
    KIND.structural.default(whole)
    return whole


def admit(
    obj: Any, old: Any = None, siblings: tuple[Any, ...] = (), parent: Any = None
) -> tuple[str, list[FieldError], list[str]]:
    """The layer that refused ("" when none did), its complaints, and all warnings."""
    structure = KIND.structural.validate(obj, old)
    if structure.errors:
        return "schema", list(structure.errors), list(structure.warnings)
    rules = KIND.structural.validate_rules(obj, old)
    if rules.errors:
        return "rules", list(rules.errors), list(rules.warnings)
    verdict = ADMISSION.judge(Review("UPDATE" if old else "CREATE", obj, old, siblings, NOW, parent))
    return "webhook" if verdict.errors else "", list(verdict.errors), list(verdict.warnings)


@pytest.mark.parametrize("folder", folders.cases("admission"))
def test_a_case_is_admitted_or_refused_as_written(folder: Path, update_cases: bool) -> None:
    """Each row of the corpus of 44, and of what the decisions add, gets its verdict with its asserted words."""
    case = folders.given(folder)
    old = complete(case["old"]) if "old" in case else None
    siblings = tuple(complete(item) for item in case.get("siblings", ()))
    layer, errors, warnings = admit(complete(case["object"], old), old, siblings, case.get("parent"))
    if case["asserts"]:
        assert any(case["asserts"] in error.message for error in errors), [error.message for error in errors]
    else:
        assert errors == []
    verdict = {"refusedBy": layer, "errors": [error.message for error in errors], "warnings": warnings}
    folders.compare(folder, {"verdict.yaml": folders.text(verdict)}, update=update_cases)


def test_the_corpus_is_whole() -> None:
    """Spec 5.1 numbers its rows 00 to 43."""
    numbers = [int(folder.values[0].name[:2]) for folder in folders.cases("admission")]
    assert set(range(44)) <= set(numbers)


def test_the_denylist_is_the_seeds() -> None:
    """The options that typed fields render, and the operator's own, exactly as seed 000 lists them."""
    typed = """url suffix user password tls_cacertfile use_pool pool_size user_tree_dn user_filter user_objectclass
        user_id_attribute user_name_attribute user_mail_attribute group_tree_dn group_filter group_objectclass
        group_id_attribute group_name_attribute group_member_attribute driver domain_config_dir"""
    assert set(typed.split()) == OWNED
    assert {f"{who}_allow_{what}" for who in ("user", "group") for what in ("create", "update", "delete")} == WRITABLE


VALID: dict[str, Any] = folders.given(folders.ROOT / "admission" / "09-immutable-base")["object"]


def bound(password: bytes = b"s3cret") -> Materials:
    """The bind Secret of VALID."""
    return Materials(
        {VALID["spec"]["ldap"]["bindCredentialsSecretRef"]["name"]: {"username": b"cn=svc", "password": password}}
    )


def changed(path: str, value: Any) -> dict[str, Any]:
    """The valid object with one value replaced."""
    obj = copy.deepcopy(VALID)
    *parents, last = path.split(".")
    node = obj["spec"]
    for part in parents:
        node = node.setdefault(part, {})
    node[last] = value
    return complete(obj)


@pytest.mark.case("B06")
@settings(deadline=None)
@examples(st.sampled_from(sorted(OWNED | WRITABLE)).flatmap(lambda name: st.tuples(st.just(name), st.text(max_size=4))))
def test_no_spelling_of_a_denied_option_is_admitted(pair: tuple[str, str]) -> None:
    """Letter case, blanks and anything else put around a denied name are refused, and never rendered."""
    name, noise = pair
    for spelling in (name, name.upper(), name.title(), f" {name}", f"{name}\n", f"{noise}{name}", f"{name}{noise}"):
        obj = changed("extraOptions", {spelling: "true"})
        _, errors, _ = admit(obj)
        harmless = (
            spelling.lower() not in OWNED | WRITABLE and spelling.isascii() and spelling.replace("_", "a").isalnum()
        )
        assert bool(errors) != harmless, spelling


LDAP_TEXTS = (
    "ldap.suffix", "ldap.users.treeDN", "ldap.users.filter", "ldap.users.objectClass", "ldap.users.idAttribute",
    "ldap.users.nameAttribute", "ldap.users.mailAttribute", "extraOptions.group_desc_attribute",
)  # fmt: skip
TEXT = st.text(st.characters(codec=None, exclude_categories=()), min_size=1, max_size=40)


@pytest.mark.case("A2")
@settings(deadline=None)
@examples(st.sampled_from(LDAP_TEXTS), TEXT)
def test_what_is_admitted_is_rendered_on_one_line(path: str, value: str) -> None:
    """No control character reaches a rendered line: admission refuses it, and rendering does so too."""
    obj = changed(path, value)
    admitted = not admit(obj)[1]
    rendered = project(KIND.parse(obj), bound())
    if admitted:
        assert isinstance(rendered, Projected)
    if isinstance(rendered, Projected):
        plain = project(KIND.parse(changed(path, "x")), bound())
        assert isinstance(plain, Projected)
        lines = [next(iter(item.files.values())).decode().splitlines() for item in (rendered, plain)]
        assert len(lines[0]) == len(lines[1])
    else:
        assert isinstance(rendered, Fault)
        assert rendered.reason == "UnsafeValue"


def test_defaulting_fills_in_what_the_seed_names_and_changes_nothing_else() -> None:
    """An OIDC backend gets its derived values, an LDAP backend the CRD's defaults, and a second run changes nothing."""
    oidc = default(folders.given(folders.ROOT / "admission" / "18-oidc-base")["object"])["spec"]["oidc"]
    assert oidc["identityProviderName"] == "oidc-base-backend"
    assert oidc["providerMetadataURL"] == "https://idp.example.org/realms/sso-base/.well-known/openid-configuration"
    assert (oidc["scopes"], oidc["protocolID"]) == (["openid", "email", "profile"], "openid")
    once = default(VALID)
    assert (once["spec"]["domain"]["mode"], once["spec"]["ldap"]["readOnly"]) == ("Manage", True)
    assert default(once) == once


@pytest.mark.parametrize("odd", [{}, {"spec": None}, {"spec": {"oidc": 3, "saml": []}}, {"spec": {"domain": "x"}}])
def test_defaulting_survives_objects_that_no_schema_has_seen(odd: dict[str, Any]) -> None:
    """The mutating webhook runs before validation."""
    assert isinstance(default({"metadata": {"name": "x"}, **odd}), dict)


def test_an_object_of_another_version_is_refused_in_words() -> None:
    """A server with another CRD must get an answer, not a crash."""
    verdict = ADMISSION.judge(Review("CREATE", {"metadata": {"name": "x"}, "spec": {"type": "LDAP"}}, None, (), NOW))
    assert [error.type.value for error in verdict.errors] == ["InternalError"]


@pytest.mark.case("C14")
def test_removing_the_finalizer_of_an_invalid_object_is_never_refused() -> None:
    """The finalizer's own update passes, also when a sibling collides by now."""
    dying = complete({**VALID, "metadata": {**VALID["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    twin = complete({**VALID, "metadata": {**VALID["metadata"], "name": "twin"}})
    assert ADMISSION.judge(Review("UPDATE", dying, complete(VALID), (twin,), NOW)).ok


def test_a_derived_metadata_url_follows_what_it_was_derived_from() -> None:
    """A changed issuer derives anew, endpoints take its place; a URL of the user's own, and one of a new resource, stay."""
    derived = "https://idp.example.org/realms/{}/.well-known/openid-configuration".format

    def url(issuer: str, url: str, old_url: str, **more: Any) -> str | None:
        def held(name: str, value: str, **rest: Any) -> dict[str, Any]:
            block = {"issuer": f"https://idp.example.org/realms/{name}", "providerMetadataURL": value, **rest}
            return {"metadata": {"name": "x"}, "spec": {"oidc": block}}

        whole = ADMISSION.complete(held(issuer, url, **more), held("a", old_url))
        return whole["spec"]["oidc"].get("providerMetadataURL")

    assert url("b", derived("a"), derived("a")) == derived("b")
    assert url("a", derived("a"), derived("a")) == derived("a")
    assert url("a", derived("a"), derived("a"), endpoints={"jwksURI": "https://x"}) is None
    assert url("b", "https://own", "https://own") == "https://own"
    assert url("a", "https://own", derived("a"), endpoints={"jwksURI": "https://x"}) == "https://own"


def test_webhook_paths_are_the_seeds() -> None:
    """Other tools register them by name."""
    assert ADMISSION.validate_path == "/validate-keystone-openstack-c5c3-io-v1alpha1-keystoneidentitybackend"
    assert ADMISSION.mutate_path == "/mutate-keystone-openstack-c5c3-io-v1alpha1-keystoneidentitybackend"


def test_known_options_need_no_typed_twin() -> None:
    """All options of typed fields are options that Keystone knows; only the operator's own are not of [ldap]."""
    assert set(KNOWN) >= OWNED - {"driver", "domain_config_dir"}
    assert denial("page_size", read_only=True) is None


def test_no_spelling_of_the_health_check_s_provider_is_admitted() -> None:
    """MySQL compares names without letter case: `Moorage-Health-Check` would be the provider that must not be there."""
    (found,) = check_provider_name("spec.oidc", "corp", "Moorage-Health-Check")
    assert (found.path, found.value) == ("spec.oidc.identityProviderName", "Moorage-Health-Check")


def test_a_thousand_refused_expressions_are_told_in_a_few_sentences() -> None:
    """What is refused is refused by the first of them; nobody reads, and no expression is judged, beyond (finding 29)."""
    obj = complete(folders.given(folders.ROOT / "admission" / "231-more-complaints-than-anybody-reads")["object"])
    rule = obj["spec"]["mappings"][0]
    slow = {"type": "HTTP_OIDC_GROUPS", "regex": True}
    entries = [{**slow, "anyOneOf": [f"^(a+)+{entry}x{number}$" for number in range(32)]} for entry in range(14)]
    obj["spec"]["mappings"] = [{**rule, "remote": [rule["remote"][0], *entries]} for _ in range(4)]
    layer, errors, warnings = admit(obj)
    assert layer == "webhook"
    assert len(errors) == 20
    assert warnings == [
        f"spec.mappings: {4 * 14 * 32 - 20} more expressions were not looked at: mend those that are refused first"
    ]
