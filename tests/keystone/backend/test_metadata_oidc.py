"""Discovery documents: which are accepted, what of them reaches the sidecar, what is said of the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.keystone.backend.materials import DOCUMENT_LIMIT, Document, Fault
from moorage.keystone.backend.metadata_oidc import declared, is_same, parse
from moorage.keystone.backend.types_federation import OidcEndpoints

from .descriptors import ISSUER, discovered, discovery


def accepted(content: bytes, issuer: str = ISSUER, *, secure: bool = True) -> Document:
    """The Document; it must be one."""
    found = parse(content, issuer, secure=secure)
    assert isinstance(found, Document), found
    return found


def refused(content: bytes, issuer: str = ISSUER, *, secure: bool = True) -> Fault:
    """The Fault; it must be one."""
    found = parse(content, issuer, secure=secure)
    assert isinstance(found, Fault), found
    return found


def test_a_document_keeps_all_its_members_and_names_what_the_sidecar_connects_to() -> None:
    """The browser's endpoints are not among the ports."""
    found = accepted(discovered(authorization_endpoint="https://idp.example.org:9999/auth", strange={"a": [1, None]}))
    assert json.loads(found.content) == discovery(
        authorization_endpoint="https://idp.example.org:9999/auth", strange={"a": [1, None]}
    )
    assert found.introspection_endpoint == "https://idp.example.org:8443/realms/a/introspect"
    assert found.ports == {443, 8443}
    assert (found.stale, found.fetched, found.valid_until) == (False, None, None)


@pytest.mark.case("B30")
def test_order_and_blanks_do_not_change_the_bytes() -> None:
    """And accepted bytes are accepted as they are: they stand in after a restart."""
    first = accepted(discovered())
    turned = dict(reversed(discovery().items()))
    other = accepted(json.dumps(turned, indent=7, ensure_ascii=False).encode())
    assert first.content == other.content == accepted(first.content).content


@pytest.mark.case("B30")
def test_lists_in_another_order_say_the_same() -> None:
    """They are written down as they came, because a module may prefer the first."""
    one = accepted(discovered(response_types_supported=["code", "none"])).content
    other = accepted(discovered(response_types_supported=["none", "code"])).content
    assert one != other
    assert is_same(one, other)
    assert not is_same(one, accepted(discovered(response_types_supported=["code"])).content)


def test_a_byte_order_mark_is_tolerated() -> None:
    """Other encodings are not: JSON is UTF-8."""
    assert accepted(b"\xef\xbb\xbf" + discovered()).content == accepted(discovered()).content
    assert "UTF-8" in refused(discovered().decode().encode("utf-16")).message


@pytest.mark.case("B13")
@pytest.mark.parametrize(
    ("found", "says"),
    [
        (f"{ISSUER}/", "ends in a slash there"),
        (ISSUER.upper(), "letter case"),
        (ISSUER.replace("https", "http"), ""),
        ("https://evil.example/secret", ""),
        (f"{ISSUER} ", ""),
        (None, "it has none"),
        (7, "it has none"),
    ],
)
def test_the_issuer_must_be_equal_byte_for_byte(found: Any, says: str) -> None:
    """What differs is said as far as that repeats nothing foreign."""
    fault = refused(discovered(issuer=found))
    assert fault.reason == "MetadataMismatch"
    assert repr(ISSUER) in fault.message
    assert says in fault.message
    assert "evil" not in fault.message


@pytest.mark.case("B13")
def test_a_declared_slash_that_the_provider_does_not_have_is_said() -> None:
    """The other way round."""
    assert "without it" in refused(discovered(), f"{ISSUER}/").message


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_required_endpoint_that_is_missing_is_named(name: str, value: Any) -> None:
    """Without it nobody can log in."""
    fault = refused(discovered(**{name: value}))
    assert fault == Fault("MetadataRefused", f"the discovery document names no {name}")


NO_URLS: list[Any] = [
    "nonsense",
    "ftp://x/",
    "https://",
    "https:///x",
    "https://a b/",
    'https://a/"',
    "https://a/\n",
    7,
    ["https://a/"],
]
NO_URLS += [
    "https://a:0/",
    "https://a:99999/",
    "https://user:word@a/",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "https://a/`",
]
NO_URLS += [f"https://a/{'a' * 3000}"]


@pytest.mark.parametrize(
    "name", ["token_endpoint", "jwks_uri", "userinfo_endpoint", "introspection_endpoint", "end_session_endpoint"]
)
@pytest.mark.parametrize("value", NO_URLS)
def test_an_endpoint_that_is_no_url_is_named_and_not_repeated(name: str, value: Any) -> None:
    """It would stand in the sidecar's configuration."""
    fault = refused(discovered(**{name: value}))
    assert fault == Fault("MetadataRefused", f"{name} of the discovery document is not an http or https URL")


def test_an_optional_endpoint_may_be_missing_null_or_empty() -> None:
    """Then there is none."""
    for value in (None, ""):
        assert accepted(discovered(introspection_endpoint=value)).introspection_endpoint == ""
    content = json.dumps(discovery() | {"userinfo_endpoint": None}).encode()
    assert accepted(content).ports == {443, 8443}


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "userinfo_endpoint", "introspection_endpoint"])
def test_a_document_that_came_by_https_sends_nobody_to_plain_http(name: str) -> None:
    """Whoever chose http for the document itself has chosen."""
    content = discovered(**{name: "http://idp.example.org/x"})
    assert f"names {name} by plain http" in refused(content).message
    assert 80 in accepted(content, secure=False).ports


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"<html><body>Log in</body></html>", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"issuer": "a", "issuer": "b"}', "names a member twice"),
        (b'{"a": {"b": 1, "b": 1}}', "names a member twice"),
        (b'{"a": NaN}', "a number that JSON does not know"),
        (b'{"a": -Infinity}', "a number that JSON does not know"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 9223372036854775808}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": "\\u0000"}', "not Unicode"),
        (b'{"a": "\\ud800"}', "not Unicode"),
        (b'{"\\udfff": 1}', "not Unicode"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100000, "nested too deeply"),
        (b"[" * 40 + b"]" * 40, "nested too deeply"),
        (b'{"a":' * 20000 + b"1" + b"}" * 20000, "nested too deeply"),
        (b'{"a": "' + b"a" * DOCUMENT_LIMIT + b'"}', f"more than {DOCUMENT_LIMIT} bytes"),
    ],
    ids=range(20),
)  # fmt: skip
def test_what_is_no_discovery_document_is_refused_with_its_reason(content: bytes, says: str) -> None:
    """Before anything of it is believed."""
    fault = refused(content)
    assert fault.reason == "MetadataRefused"
    assert says in fault.message


def test_declared_endpoints_are_a_document() -> None:
    """With what was declared, and every flow that the module knows: without any it warns at each request."""
    endpoints = OidcEndpoints(
        authorization_endpoint="https://idp.example.org/auth",
        token_endpoint="http://idp.internal:8080/token",
        jwksURI="https://idp.example.org/certs",
        introspection_endpoint="https://idp.example.org:444/introspect",
    )
    found = declared(ISSUER, endpoints)
    assert isinstance(found, Document)
    flows = json.loads(found.content)["response_types_supported"]
    assert ("code" in flows, sorted(flows)) == (True, flows)
    assert json.loads(found.content) == {
        "issuer": ISSUER,
        "response_types_supported": flows,
        "authorization_endpoint": "https://idp.example.org/auth",
        "token_endpoint": "http://idp.internal:8080/token",
        "jwks_uri": "https://idp.example.org/certs",
        "introspection_endpoint": "https://idp.example.org:444/introspect",
    }
    assert (found.ports, found.introspection_endpoint) == ({8080, 443, 444}, "https://idp.example.org:444/introspect")


def test_a_declared_endpoint_that_is_no_url_is_named() -> None:
    """For resources that bypassed admission."""
    bad = OidcEndpoints(
        authorization_endpoint="https://a/", token_endpoint='https://a/"', jwks_uri="https://a/",
        userinfo_endpoint=None, end_session_endpoint=None, introspection_endpoint=None,
    )  # fmt: skip
    fault = declared(ISSUER, bad)
    assert fault == Fault("MetadataRefused", "token_endpoint of spec.oidc.endpoints is not an http or https URL")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
MEMBERS = st.sampled_from([*discovery(), "userinfo_endpoint", "end_session_endpoint"])


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(st.binary(), st.dictionaries(MEMBERS, JSON).map(lambda items: json.dumps(discovery() | items).encode()))
)
def test_whatever_comes_in_a_document_or_a_fault_comes_out(content: bytes) -> None:
    """And what is accepted is accepted again, with the same bytes."""
    for secure in (True, False):
        match parse(content, ISSUER, secure=secure):
            case Document(content=settled):
                assert accepted(settled, secure=secure).content == settled
                assert is_same(settled, settled)
            case Fault(reason=reason, message=message):
                assert reason in ("MetadataRefused", "MetadataMismatch")
                assert "\n" not in message


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(discovered()) - 1), st.binary(max_size=3))
def test_a_broken_document_is_a_document_or_a_fault(at: int, instead: bytes) -> None:
    """A few bytes changed anywhere."""
    content = discovered()
    assert isinstance(parse(content[:at] + instead + content[at + 1 :], ISSUER), Document | Fault)
