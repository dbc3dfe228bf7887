"""The projection of many federated backends into one sidecar: the order never matters, a bad one harms nobody, nothing is let in by accident."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from lxml import etree
from tests.keystone.folders import CASES, compare
from tests.real.certificates import Authority

from moorage.keystone.backend.federation import (
    REDIRECT_PATH,
    auth_path,
    base_of,
    global_websso_path,
    issuer_basename,
    spellings,
    websso_path,
)
from moorage.keystone.backend.materials import Document, Fault, Materials
from moorage.keystone.backend.precedence import precedence
from moorage.keystone.backend.types import KIND
from moorage.keystone.key_pair import Pair, make_pair
from moorage.keystone.service.conf import FederationFacts, trusted_dashboard
from moorage.keystone.service.domains import BUDGET
from moorage.keystone.service.domains import project_all as domains_of
from moorage.keystone.service.federation import Federation, Ground, project_all
from moorage.keystone.service.seen import Attached
from moorage.keystone.service.sp_metadata import sp_metadata

BASE = "https://ks.example.org"
AUTHORITIES = {name: Authority(name).pem for name in "ab"}
GROUND = Ground(BASE, image=True, dashboards=("https://Dash.example.org/auth/websso/",), passphrase="pass-phrase")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def pair(name: str = "one") -> Pair:
    """A key pair, one for each name."""
    return make_pair(name, NOW)


def backend(name: str, kind: str = "OIDC", **fields: Any) -> Attached:
    """A backend whose domain is ready; fields go into its provider block, those of `spec` and `status` beside."""
    spec: dict[str, Any] = {
        "keystoneRef": {"name": "keystone"},
        "domain": {"name": fields.pop("domain", name)},
        "type": kind,
    }
    mapped = fields.pop("claims", ["HTTP_OIDC_SUB"])
    on = fields.pop("conditions", ["DomainReady"])
    deleting, base, born = (
        fields.pop("deleting", False),
        fields.pop("base", BASE),
        fields.pop("born", "2026-01-02T00:00:00Z"),
    )
    generation = fields.pop("generation", 1)
    issuer = fields.get("issuer", f"https://kc.example.org/realms/{name}")
    if kind == "LDAP":
        spec["ldap"] = {
            "url": "ldap://x",
            "bindCredentialsSecretRef": {"name": "bind"},
            "suffix": "dc=x",
            "users": {"treeDN": "dc=x"},
        }
        document: Document | Fault | None = None
    elif kind == "OIDC":
        spec["oidc"] = {"issuer": issuer, "clientID": "keystone", "clientSecretRef": {"name": "client"}, **fields}
        endpoint = f"{issuer}/introspect"
        content = fields.pop("content", json.dumps({"issuer": issuer}))
        document = Document(content.encode(), endpoint, frozenset({443}))
    else:
        entity = fields.get("idpEntityID", "urn:idp")
        spec["saml"] = {"idpEntityID": entity, "idpMetadata": {"url": "https://idp.example.org"}, **fields}
        document = Document(
            f'<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="{entity}"/>'.encode()
        )
    if kind != "LDAP":
        spec["mappings"] = [{"remote": [{"type": claim} for claim in mapped], "local": [{"user": {"name": "{0}"}}]}]
    metadata = {
        "name": name,
        "namespace": "openstack",
        "creationTimestamp": born,
        "generation": generation,
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
    }
    shape = {"status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [{"type": item, **shape, "observedGeneration": 1} for item in on]}
    head = {"apiVersion": KIND.resource.api_version, "kind": KIND.kind}
    secrets = {
        "client": {"clientSecret": b"s3cret-client"},
        "bind": {"username": b"cn=x", "password": b"p"},
        "keystone-saml-sp": {"tls.crt": pair().certificate, "tls.key": pair().key},
    }
    parsed = KIND.parse({**head, "metadata": metadata, "spec": spec, "status": status})
    return Attached(parsed, Materials(secrets, base, document))


def without(item: Attached, fault: str = "MetadataUnavailable") -> Attached:
    """The backend, its metadata not to be had."""
    return replace(item, materials=replace(item.materials, document=Fault(fault, "the metadata could not be fetched")))


def conf(found: Federation) -> str:
    return found.files["proxy.conf"].decode()


def reasons(found: Federation) -> dict[str, str]:
    return {left.name: left.why for left in found.left}


# --- golden


@pytest.mark.parametrize("name", ["both", "oidc", "saml", "fence"])
def test_the_sidecar_gets_these_files(name: str, update_cases: bool) -> None:
    """Configuration, where each file is mounted, what keystone.conf must say."""
    oidc = backend(
        "acme", oauth2Introspection={"enabled": True}, claims=["HTTP_OIDC_PREFERRED_USERNAME", "HTTP_OIDC_GROUPS"]
    )
    other = backend("beta")
    saml = backend("corp", "SAML", forwardAttributes=["groups"], claims=["HTTP_MELLON_GROUPS"])
    gone = backend("gone", deleting=True, conditions=["DomainReady", "FederationObjectsReady"])
    given = {"both": [oidc, other, saml], "oidc": [oidc], "saml": [saml], "fence": [gone]}[name]
    found = project_all(given, GROUND)
    mounts = "".join(f"{mount.volume}: {mount.key} -> {mount.path}\n" for mount in found.mounts)
    facts = (
        "".join(f"[{section}] {key}\n" for section, key in sorted(found.facts.remote_ids.items()))
        if found.facts
        else ""
    )
    files = {key: found.files[key].decode() for key in ("proxy.conf", "httpd-base.conf")}
    stripped = [line for line in files["proxy.conf"].splitlines() if line.endswith(" early") and "unset" in line]
    files["proxy.conf"] = "".join(
        line for line in files["proxy.conf"].splitlines(keepends=True) if line.strip() not in stripped
    )
    headers = "".join(f"{line.split()[2]}\n" for line in stripped)
    answer = {**files, "stripped.txt": headers, "mounts.txt": mounts, "keystone.txt": facts}
    compare(CASES / "keystone-service" / "federation" / name, answer, update=update_cases)


# --- many


SHORT = st.fixed_dictionaries(
    {
        "name": st.sampled_from([f"b{i}" for i in range(6)]),
        "kind": st.sampled_from(["OIDC", "OIDC", "OIDC", "SAML", "LDAP"]),
        "domain": st.sampled_from(["acme", "Acme", "corp", "x1", "x2", "x3"]),
        "conditions": st.sampled_from([["DomainReady"], [], ["DomainReady", "ConfigProjected"]]),
        "deleting": st.booleans(),
        "bad": st.booleans(),
    }
)
MANY = st.lists(SHORT, max_size=6, unique_by=lambda item: item["name"])


def built(short: dict[str, Any]) -> Attached:
    found = backend(**{name: value for name, value in short.items() if name != "bad"})
    return without(found) if short["bad"] and short["kind"] != "LDAP" else found


@settings(deadline=None)
@for_all(MANY, st.randoms())
def test_the_order_of_backends_changes_nothing(shorts: list[dict[str, Any]], random: Any) -> None:
    """Bytes, and who is left out and why."""
    shuffled = list(shorts)
    random.shuffle(shuffled)
    assert project_all(map(built, shorts), GROUND) == project_all(map(built, shuffled), GROUND)


@settings(deadline=None)
@for_all(MANY)
def test_every_backend_is_attached_or_left_with_a_reason(shorts: list[dict[str, Any]]) -> None:
    """Nobody is forgotten; only terminating ones are silent, and only they."""
    found = project_all(map(built, shorts), GROUND)
    alive = {short["name"] for short in shorts if not short["deleting"] and short["kind"] != "LDAP"}
    assert {*found.attached} | {left.name for left in found.left} == alive
    assert not {*found.attached} & {left.name for left in found.left}
    assert found.total == len(alive)


@pytest.mark.case("P4")
@settings(deadline=None)
@for_all(MANY)
def test_a_bad_backend_takes_nothing_from_its_siblings(shorts: list[dict[str, Any]]) -> None:
    """What it alone is guilty of: without it, the same backends are served from the same files."""
    faulty = {left.name for left in project_all(map(built, shorts), GROUND).left if left.fault}
    rest = [short for short in shorts if short["name"] not in faulty]
    whole, less = project_all(map(built, shorts), GROUND), project_all(map(built, rest), GROUND)
    assert whole.attached == less.attached
    own = {key for key in whole.files if key.startswith(tuple(f"{name}." for name in whole.attached))}
    assert {key: whole.files[key] for key in own} == {key: less.files[key] for key in own}


@pytest.mark.case("C8")
def test_a_terminating_backend_holds_up_no_replacement() -> None:
    """Same domain, provider name and issuer."""
    same = {"domain": "acme", "issuer": "https://kc.example.org/a", "identityProviderName": "acme"}
    assert project_all([backend("old", deleting=True, **same), backend("new", **same)], GROUND).attached == ("new",)


COLLIDING = {
    "domain": ([{"domain": "acme"}, {"domain": "ACME"}], "domain"),
    "provider name": ([{"identityProviderName": "x"}, {"identityProviderName": "x"}], "identity provider name"),
    "provider name in capitals": (
        [{"identityProviderName": "x"}, {"identityProviderName": "X"}],
        "identity provider name",
    ),
    "issuer": ([{"issuer": "https://kc/a"}, {"issuer": "https://kc/a"}], "remote id"),
    "issuer but for the slash": ([{"issuer": "https://kc/a"}, {"issuer": "https://kc/a/"}], "metadata documents"),
    "issuer but for the scheme": ([{"issuer": "https://kc/a"}, {"issuer": "http://kc/a"}], "metadata documents"),
    "issuer and entityID": ([{"issuer": "https://kc/a"}, {"kind": "SAML", "idpEntityID": "https://kc/a"}], "remote id"),
    "two SAML": ([{"kind": "SAML", "idpEntityID": "a"}, {"kind": "SAML", "idpEntityID": "b"}], "SAML backend"),
    "remoteIDAttribute": ([{}, {"remoteIDAttribute": "HTTP_OIDC_ISSUER"}], "remoteIDAttribute is one"),
    "introspection": ([{"oauth2Introspection": {"enabled": True}}] * 2, "oauth2Introspection"),
}


SERVED = ["DomainReady", "FederationObjectsReady", "ConfigProjected"]


@pytest.mark.case("B28")
@pytest.mark.parametrize("newcomer", ["a", "b"])
@pytest.mark.parametrize("what", COLLIDING)
def test_who_is_served_stays_and_the_newcomer_is_left_out_and_told(what: str, newcomer: str) -> None:
    """Whatever it is called and however old it is; nobody else is touched, and the claim is served once."""
    fields, word = COLLIDING[what]
    shape = dict(zip("ab", fields, strict=True))
    old = "a" if newcomer == "b" else "b"
    items = [
        backend(old, conditions=SERVED, born="2026-01-03T00:00:00Z", **shape[old]),
        backend(newcomer, born="2026-01-01T00:00:00Z", **shape[newcomer]),
    ]
    third = backend("third", "SAML", idpEntityID="urn:third") if "SAML" not in what and what not in _OF_ALL else None
    found = project_all([*items, *([third] if third else [])], GROUND)
    assert set(reasons(found)) == {newcomer}
    assert word in reasons(found)[newcomer]
    assert old in reasons(found)[newcomer]
    assert all(left.fault for left in found.left)
    assert found.attached == ((old, "third") if third else (old,))
    own = {key: content for key, content in found.files.items() if key.startswith(f"{old}.")}
    assert own == {k: c for k, c in project_all([items[0]], GROUND).files.items() if k.startswith(f"{old}.")}


@pytest.mark.case("B28")
@pytest.mark.parametrize("what", COLLIDING)
def test_where_nobody_is_served_yet_the_older_one_comes_first(what: str) -> None:
    """Its files and no others are projected, also when it cannot be served for a while: a claim never changes hands by a fault."""
    fields, word = COLLIDING[what]
    young = backend("a", born="2026-01-02T00:00:00Z", **fields[0])
    old = backend("b", born="2026-01-01T00:00:00Z", **fields[1])
    found = project_all([young, old], GROUND)
    assert found.attached == ("b",)
    assert word in reasons(found)["a"]
    faulty = project_all([young, without(old)], GROUND)
    assert faulty.attached == ()
    assert set(reasons(faulty)) == {"a", "b"}


@pytest.mark.case("B28")
def test_nobody_edits_itself_into_the_place_of_another() -> None:
    """An older backend, served with an issuer of its own, is edited to another's: it gives way, before and after its controller has looked."""
    same = {"issuer": "https://kc.example.org/a"}
    holder = backend("z", conditions=SERVED, born="2026-01-05T00:00:00Z", **same)
    edited = backend("a", conditions=SERVED, born="2026-01-01T00:00:00Z", generation=2, **same)
    assert project_all([holder, edited], GROUND).attached == ("z",)
    looked = backend("a", conditions=["DomainReady"], born="2026-01-01T00:00:00Z", generation=2, **same)
    assert project_all([holder, looked], GROUND).attached == ("z",)


@pytest.mark.case("B28")
def test_who_is_left_out_holds_nothing() -> None:
    """A third one that collides with the one that is left out only is served."""
    a = backend("a", conditions=SERVED, issuer="https://kc/a")
    b = backend("b", issuer="https://kc/a", identityProviderName="x", born="2026-01-03T00:00:00Z")
    c = backend("c", identityProviderName="x", born="2026-01-04T00:00:00Z")
    assert project_all([a, b, c], GROUND).attached == ("a", "c")


@pytest.mark.case("B28", "B43")
def test_the_sp_metadata_is_that_of_the_saml_backend_that_is_served() -> None:
    """A second one changes nothing of what stands at the provider, nor whose key pair it is."""
    served = backend("corp", "SAML", conditions=SERVED)
    second = backend(
        "a", "SAML", idpEntityID="urn:b", sp={"certificateSecretRef": {"name": "own"}}, born="2026-01-01T00:00:00Z"
    )
    both, alone = project_all([served, second], GROUND), project_all([served], GROUND)
    assert (both.sp, both.needs_pair, both.files) == (alone.sp, True, alone.files)


_OF_ALL = ("issuer and entityID",)


@pytest.mark.case("C9", "P4")
@pytest.mark.parametrize("field", ["sessionType", "stateInputHeaders"])
def test_of_settings_that_all_share_the_oldest_backends_count(field: str) -> None:
    """Who came later and differs waits; nobody who is served already loses anything."""
    other = {"sessionType": "client-cookie-persistent", "stateInputHeaders": "both"}[field]
    old, like, late = (
        backend("z-old", born="2026-01-01T00:00:00Z"),
        backend("m-like"),
        backend("a-late", **{field: other}),
    )
    found = project_all([old, like, late], GROUND)
    assert found.attached == ("m-like", "z-old")
    counts = {"sessionType": "client-cookie", "stateInputHeaders": "none"}[field]
    why = f"{field} is one for all OIDC backends of a Keystone, and z-old, which comes first, has {counts}: give this one the same"
    assert reasons(found) == {"a-late": why}
    assert project_all([old, like], GROUND).files["proxy.conf"] == found.files["proxy.conf"]


@pytest.mark.case("C1")
def test_persistent_sessions_are_called_as_the_module_calls_them() -> None:
    """Apache refuses the declared word."""
    found = project_all([backend("a", sessionType="client-cookie-persistent")], GROUND)
    assert "\nOIDCSessionType client-cookie:persistent\n" in conf(found)


def test_a_domain_belongs_to_one_backend_of_any_type() -> None:
    """LDAP and OIDC with one domain: one of them is projected, the same one in the eyes of both volumes."""
    both = [backend("a", "LDAP", domain="corp"), backend("b", domain="Corp")]
    assert (domains_of(both).attached, project_all(both, GROUND).attached) == (("a",), ())
    both[1] = backend("b", domain="Corp", conditions=SERVED)
    assert (domains_of(both).attached, project_all(both, GROUND).attached) == ((), ("b",))
    assert domains_of([both[0], backend("b", domain="Corp", deleting=True)]).attached == ("a",)


# --- what is waited for


def test_without_an_image_every_backend_waits_and_there_is_no_sidecar() -> None:
    """No image is ever chosen by itself."""
    found = project_all([backend("a"), backend("c", "SAML")], replace(GROUND, image=False))
    assert (found.files, found.attached, found.facts) == ({}, (), None)
    assert {left.reason for left in found.left} == {"FederationProxyImageMissing"}


@pytest.mark.case("B22", "C10")
def test_an_oidc_backend_waits_for_the_passphrase_and_a_saml_one_does_not() -> None:
    """Missing: it is asked for. Unusable: a fault of these backends, of nobody else."""
    both = [backend("a"), backend("c", "SAML")]
    missing = project_all(both, replace(GROUND, passphrase=None))
    broken = project_all(both, replace(GROUND, passphrase=Fault("PassphraseUnusable", "no key")))
    assert (missing.needs_passphrase, missing.attached, [left.fault for left in missing.left]) == (
        True,
        ("c",),
        [False],
    )
    assert (broken.needs_passphrase, broken.attached, [left.reason for left in broken.left]) == (
        False, ("c",), ["PassphraseUnusable"],
    )  # fmt: skip
    assert not project_all([both[1]], replace(GROUND, passphrase=None)).needs_passphrase


@pytest.mark.case("C5", "B43")
def test_the_sp_metadata_is_there_before_the_providers_is() -> None:
    """It takes the key pair and the address; the same bytes each time, without the private key."""
    waiting = without(backend("corp", "SAML"))
    found = project_all([waiting], GROUND)
    assert found.attached == ()
    assert found.sp is not None
    assert found.sp == project_all([backend("corp", "SAML")], GROUND).sp
    assert found.needs_pair
    assert b"PRIVATE" not in found.sp.document
    assert not project_all([backend("corp", "SAML", sp={"certificateSecretRef": {"name": "own"}})], GROUND).needs_pair


# --- what is served


@pytest.mark.case("S1")
def test_a_sidecar_that_is_no_longer_declared_goes_after_the_last_backend_is_closed() -> None:
    """Without it, what a client claims would be believed at the paths of a provider that is still open."""
    undeclared = replace(GROUND, image=False, running=True)
    found = project_all([backend("a", conditions=["DomainReady", "FederationObjectsReady"])], undeclared)
    assert (found.attached, "Require all denied" in conf(found)) == ((), True)
    assert [(left.reason, "stays until" in left.why) for left in found.left] == [("FederationProxyImageMissing", True)]
    assert project_all([backend("a")], undeclared).files == {}


def test_who_is_served_stays_when_another_has_no_room() -> None:
    """An earlier name or a lighter neighbour is nobody's merit: the newcomer waits."""
    served, newcomer = (
        backend("b", conditions=["DomainReady", "FederationObjectsReady"], born="2026-01-03T00:00:00Z"),
        backend("a", born="2026-01-02T00:00:00Z"),
    )
    assert sorted([newcomer, served], key=lambda item: precedence(item.backend)) == [served, newcomer]


@pytest.mark.case("S1")
@pytest.mark.parametrize("condition", ["FederationObjectsReady", "ConfigProjected"])
def test_the_sidecar_stays_until_a_backend_that_let_people_in_has_been_closed(condition: str) -> None:
    """Deleted, or its metadata lost: nothing of it is served, but its paths stay denied and its claims stripped."""
    claims = ["HTTP_MELLON_BADGE"]
    for item in (
        backend("a", deleting=True, claims=claims, conditions=["DomainReady", condition]),
        without(backend("a", claims=claims, conditions=["DomainReady", condition])),
    ):
        found = project_all([item], GROUND)
        assert found.attached == ()
        assert "Require all denied" in conf(found)
        assert "RequestHeader unset MELLON-BADGE early" in conf(found)
        assert "OIDCRedirectURI" not in conf(found)
        assert {mount.volume for mount in found.mounts} == {"federation-proxy-config"}
    assert project_all([backend("a", deleting=True)], GROUND).files == {}
    assert project_all([without(backend("a"))], GROUND).files == {}


@pytest.mark.case("S2")
@settings(deadline=None)
@for_all(MANY)
def test_denial_comes_before_every_location(shorts: list[dict[str, Any]]) -> None:
    """Later sections win, so the general one stands first; each claim of an attached backend is stripped in every spelling."""
    found = project_all(map(built, shorts), GROUND)
    if not found.files:
        return
    text = conf(found)
    sections = re.findall(r"<Location(?:Match)? .*", text)
    assert sections[0].startswith("<LocationMatch ")
    for name in ("OIDC-SUB", "OIDC-ISS", "MELLON-NAME-ID", "PAOS"):
        for spelled in spellings(name):
            assert f"RequestHeader unset {spelled} early\n" in text


@pytest.mark.case("B16")
@settings(deadline=None)
@for_all(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True), st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_the_redirect_path_is_no_prefix_of_a_protected_one(provider: str, protocol: str) -> None:
    """Nor is a protected one of it, whatever the names are."""
    for path in (auth_path(provider, protocol), websso_path(provider, protocol), global_websso_path(protocol)):
        assert path.count("/v3/") == 1 or "v3" in (provider, protocol)
        assert path != REDIRECT_PATH
        assert not path.startswith(f"{REDIRECT_PATH}/")
        assert not REDIRECT_PATH.startswith(f"{path}/")


@pytest.mark.case("B27")
def test_paths_name_the_provider_before_the_protocol() -> None:
    """With different names."""
    assert websso_path("idp", "proto") == "/v3/auth/OS-FEDERATION/identity_providers/idp/protocols/proto/websso"
    assert auth_path("idp", "proto") == "/v3/OS-FEDERATION/identity_providers/idp/protocols/proto/auth"


@pytest.mark.case("B26")
@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://ks.example.org/v3", True), ("https://dash.example.org/auth/websso/", True), ("https://ksXexample.org/", False),
        ("https://ks.example.org.evil.test/", False), ("https://ks.example.org:8443/", False), ("http://ks.example.org/", False),
        ("https://dash.example.org/auth/websso/x", False), ("https://dash.example.org.evil.test/auth/websso/", False),
        ("https://dash-example/", False), ("https://evil.test/https://ks.example.org/", False),
    ],
)  # fmt: skip
def test_allowed_urls_are_anchored_and_their_dots_are_dots(url: str, allowed: bool) -> None:
    """Built from the Keystone's own address and the trusted dashboards."""
    (line,) = (line for line in conf(project_all([backend("a")], GROUND)).splitlines() if "RedirectURLsAllowed" in line)
    patterns = [item.replace("\\\\", "\\") for item in re.findall(r'"([^"]*)"', line)]
    assert len(patterns) == 2
    assert any(re.search(pattern, url) for pattern in patterns) is allowed


@pytest.mark.case("B27", "B28")
def test_keystone_is_told_the_remote_id_of_each_protocol_once() -> None:
    """`[openid]` whatever the OIDC protocol is called; SAML's own section; SAML wins where both share a protocol."""
    both = project_all(
        [backend("a", protocolID="mapped"), backend("c", "SAML", remoteIDAttribute="HTTP_X_IDP")], GROUND
    )
    assert both.facts == FederationFacts({"openid": "HTTP_OIDC_ISS", "mapped": "HTTP_X_IDP"})
    assert trusted_dashboard("HTTPS://Dash.Example.org/Auth/WebSSO") == "https://dash.example.org/Auth/WebSSO"


def test_the_global_websso_path_belongs_to_the_only_backend_of_a_protocol() -> None:
    """Two of one protocol: the path stays denied."""
    alone, two = project_all([backend("a")], GROUND), project_all([backend("a"), backend("b")], GROUND)
    assert "<Location /v3/auth/OS-FEDERATION/websso/openid>" in conf(alone)
    assert "<Location /v3/auth/OS-FEDERATION/websso/openid>" not in conf(two)


def test_private_authorities_are_one_file() -> None:
    """All bundles of the served OIDC backends, and the directive that names them."""
    first, second = (backend(name, caBundleSecretRef={"name": f"ca-{name}"}) for name in "ab")
    items = [
        replace(item, materials=replace(item.materials, secrets={**item.materials.secrets, f"ca-{item.name}": {"ca.crt": AUTHORITIES[item.name]}}))
        for item in (first, second)
    ]  # fmt: skip
    found = project_all([*items, backend("c")], GROUND)
    assert found.files["ca-bundle.pem"] == AUTHORITIES["a"] + AUTHORITIES["b"]
    assert "OIDCCABundlePath /etc/keystone-federation-proxy/metadata/ca-bundle.pem" in conf(found)
    assert [mount.path for mount in found.mounts if mount.key == "ca-bundle.pem"] == ["metadata/ca-bundle.pem"]


@pytest.mark.case("B15")
def test_every_file_that_the_configuration_names_is_mounted() -> None:
    """And none twice; data keys are such that a Secret takes them."""
    found = project_all([backend("a"), backend("c", "SAML")], GROUND)
    paths = [mount.path for mount in found.mounts]
    named = re.findall(r"/etc/keystone-federation-proxy/(mellon/\S+)", conf(found))
    assert set(named) <= set(paths)
    assert len(set(paths)) == len(paths)
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) for key in found.files)
    assert found.saml


# --- size and speed


def test_what_does_not_fit_is_left_and_the_smaller_one_after_it_is_not() -> None:
    """The aggregate stays below the limit of a Secret; the rest goes on."""
    large = json.dumps({"issuer": "https://kc.example.org/realms/{}", "x": "y" * 240_000})
    many = []
    for i in range(6):
        item = backend(f"b{i}")
        content = large.replace("{}", f"b{i}").encode()
        many.append(replace(item, materials=replace(item.materials, document=Document(content))))
    found = project_all([*many, backend("c")], GROUND)
    assert found.attached == ("b0", "b1", "b2", "b3", "c")
    assert sum(map(len, found.files.values())) <= BUDGET
    assert {left.reason for left in found.left} == {"TooLarge"}


def test_an_edit_of_one_backend_of_fifty_leaves_the_files_of_the_others() -> None:
    """Only its own files and the common configuration change."""
    fifty = [backend(f"b{i:02}") for i in range(50)]
    before = project_all(fifty, GROUND)
    edited = [*fifty[:7], backend("b07", scopes=["openid"]), *fifty[8:]]
    after = project_all(edited, GROUND)
    changed = {key for key in {*before.files, *after.files} if before.files.get(key) != after.files.get(key)}
    assert changed == {"b07.conf", "b07.digest"}
    edited[7] = backend("b07", clientID="other")
    changed = {key for key, value in project_all(edited, GROUND).files.items() if before.files.get(key) != value}
    assert changed == {"b07.client", "b07.digest", "proxy.conf"}


def test_work_grows_with_the_number_of_backends_and_no_faster() -> None:
    """Counted in function calls: fifty cost at most six times ten, and each some thousands. The time is measured by bench/render.py."""
    ten, fifty = (calls(lambda n=n: project_all([*ITEMS[:n]], GROUND)) for n in (10, 50))
    assert fifty < 6 * ten
    assert fifty < 50 * 3000


ITEMS = [backend(f"b{i:02}") for i in range(50)]


def calls(work: Any) -> int:
    """How many Python functions are called."""
    count = 0

    def note(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


# --- the service provider's metadata


@pytest.mark.case("B43", "C12", "K21")
def test_the_sp_metadata_is_xml_whatever_the_address_holds() -> None:
    """Escaped; addresses under the public URL; the certificate is the mounted one; a staged one signs and nothing is encrypted for it."""
    found = sp_metadata('https://ks.example.org/a&b"<', "idp", "mapped", (pair().certificate, pair("two").certificate))
    root = etree.fromstring(found.document)
    names = {"md": "urn:oasis:names:tc:SAML:2.0:metadata", "ds": "http://www.w3.org/2000/09/xmldsig#"}
    assert (
        root.get("entityID")
        == found.entity_id
        == f'https://ks.example.org/a&b"<{auth_path("idp", "mapped")}/mellon/metadata'
    )
    (acs,) = root.findall(".//md:AssertionConsumerService", names)
    assert acs.get("Location") == found.entity_id.replace("/metadata", "/postResponse")
    keys = [
        (item.get("use"), item.findtext(".//ds:X509Certificate", namespaces=names))
        for item in root.iter(f"{{{names['md']}}}KeyDescriptor")
    ]
    bodies = ["".join(pem.decode().splitlines()[1:-1]) for pem in (pair().certificate, pair("two").certificate)]
    assert keys == [("signing", bodies[0]), ("signing", bodies[1]), ("encryption", bodies[0])]
    assert (
        root.findtext(".//md:NameIDFormat", namespaces=names) == "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
    )


# --- names


@pytest.mark.case("B13")
def test_issuers_and_their_file_names() -> None:
    """Scheme and last slash go, everything that is no unreserved character becomes %XX."""
    assert issuer_basename("https://kc.acme.test:8443/realms/a") == "kc.acme.test%3A8443%2Frealms%2Fa"
    assert issuer_basename("https://login.example.org/é~b/v2.0/") == "login.example.org%2F%C3%A9~b%2Fv2.0"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://ks.example.org", ("https", "ks.example.org", None)), ("https://KS.example.org:443/", ("https", "ks.example.org", None)),
        ("http://ks:5000", ("http", "ks", 5000)), ("https://ks/identity", None), ("https://u@ks", None), ("https://[::1]:5000", None),
        ("ftp://ks", None), ("https://ks:99999", None), ("https://ks\"x", None), ("", None), ("https://", None), ("https://ks?x", None),
    ],
)  # fmt: skip
def test_public_addresses(url: str, wanted: tuple[str, str, int | None] | None) -> None:
    """A host name and a port; everything else is refused, not guessed at."""
    found = base_of(url)
    assert (found and (found.scheme, found.host, found.port)) == wanted


def test_a_name_of_three_words_has_four_spellings() -> None:
    """As a WSGI server folds them."""
    assert set(spellings("A-B-C")) == {"A-B-C", "A_B-C", "A-B_C", "A_B_C"}


def test_the_golden_files_hold_no_secret() -> None:
    """They are in the repository."""
    folder = CASES / "keystone-service" / "federation"
    assert not any("PRIVATE KEY" in item.read_text() for item in Path(folder).rglob("*") if item.is_file())
