"""Claims arrive in Keystone's environ as the sidecar's modules pass them on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.keystone.backend.mapping_claims import MELLON, OIDC, environ, environ_key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("preferred_username", "HTTP_OIDC_PREFERRED_USERNAME"),
        ("https://example.org/claims/dept", "HTTP_OIDC_HTTPS___EXAMPLE_ORG_CLAIMS_DEPT"),
        ("OIDC-groups", "HTTP_OIDC_GROUPS"),
        ("OIDC_iss", "HTTP_OIDC_ISS"),
        ("HTTP_OIDC_ISS", "HTTP_OIDC_ISS"),
        ("REMOTE_USER", "REMOTE_USER"),
        ("MELLON-NAME-ID", "HTTP_MELLON_NAME_ID"),
    ],
)
def test_a_name_becomes_the_environ_key(name: str, key: str) -> None:
    """However a claim is spelled, it is the header that arrives."""
    assert environ_key(name, OIDC) == key


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("alice", "alice"), (True, "1"), (False, "0"), (17, "17"), (1.5, "1.500000"), (["dev", "ops"], "dev;ops"), ([], ""),
        (["", "a", ""], "a;"), ([True, "x"], "1;x"), ({"roles": ["ä"]}, '{"roles":["ä"]}'), ("a\nb", "a b"),
    ],
)  # fmt: skip
def test_a_value_becomes_text(value: Any, text: str) -> None:
    """Lists are joined by ;, truths are 1 and 0, objects are compact JSON."""
    assert dict(environ({"x": value}).values) == {"HTTP_OIDC_X": text}


def test_what_is_lost_on_the_way_is_said() -> None:
    """Null, numbers in a list, a ; inside a value, two names that fold into one."""
    found = environ({"a": None, "b": ["x", 3], "c": ["x;y"], "d-e": "1", "d_e": "2"})
    assert found.values == {"HTTP_OIDC_B": "x", "HTTP_OIDC_C": "x;y", "HTTP_OIDC_D_E": "1"}
    assert [sentence.split(":")[0] for sentence in found.lost] == ["a", "b", "c", "d_e"]


def test_attributes_of_an_assertion_get_mellons_prefix() -> None:
    """The letter case of an attribute does not survive the hop."""
    assert environ({"Mail": "a@b", "groups": ["x", "y"]}, MELLON).values == {
        "HTTP_MELLON_MAIL": "a@b",
        "HTTP_MELLON_GROUPS": "x;y",
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5))
def test_any_token_gives_an_environ_of_text(claims: dict[str, Any]) -> None:
    """Whatever JSON a provider puts into a token, rules get names of headers and text."""
    found = environ(claims)
    assert all(key.isascii() and key == key.upper() and "\n" not in text for key, text in found.values.items())
