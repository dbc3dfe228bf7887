"""Addresses that a person declared: what is wrong with one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.urls import url_fault, without_user


@pytest.mark.parametrize(
    "url",
    [
        "https://idp.example.org",
        "http://idp.example.org:8080/realms/corp?x=y",
        "https://idp.example.org./",
        "https://[2001:db8::1]:443/x",
        "https://127.0.0.1/a@b",
    ],
)
def test_addresses_of_servers_are_taken(url: str) -> None:
    assert url_fault(url) == ""


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://idp.example.org", "must start with http"),
        ("https://", "must name a host"),
        ("https:///x", "must name a host"),
        ("https://a..b/", "must name a host"),
        ("https://[::1", "must name a host"),
        ("https://idp.example:99999/", "port"),
        ("https://idp.example:0/", "port"),
        ("https://idp.example:/", "port"),
        ("https://idp.example\\@evil.example/", "backslash"),
        ("https://ann:secret@idp.example/", "user or a password"),
        ("https://idp.example/#top", "fragment"),
        ("https://idp.example/a b", "blank"),
        ("https://idp.example/a\x00b", "control character"),
        ("https://idp.example/a\x7fb", "control character"),
        ("https://idp.example/a\u202eb", "control character"),
        ("https://idp.example/a\ud800b", "control character"),
    ],
)
def test_what_is_wrong_is_said(url: str, said: str) -> None:
    assert said in url_fault(url)


@given(st.text(max_size=60))
def test_any_text_has_an_answer_and_loses_its_user(text: str) -> None:
    """Foreign text raises nothing; what is shown of it has no user information."""
    url_fault(f"https://{text}")
    assert (
        "@"
        not in without_user(f"https://{text}")
        .removeprefix("https://")
        .partition("/")[0]
        .partition("?")[0]
        .partition("#")[0]
    )
