"""Regular expressions that can take for ever are found by their structure, and a search for one ends in `moorage mapping test`."""

from __future__ import annotations

import re
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.cli.patience import Patience
from moorage.keystone.backend.mapping_engine import process
from moorage.keystone.backend.mapping_match import TooSlow, found
from moorage.keystone.backend.mapping_patterns import endless
from moorage.keystone.backend.mapping_slowness import SLOW, power

ENDLESS = {
    r"^(a+)+$": "a",
    r"(a*)*b": "a",
    r"^(a|a)*$": "a",
    r"^(a|ab|b)*c$": "ab",
    r"^(\w+\s?)*$": "a",
    r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+$": "a",
    r"^(([a-z])+.)+[A-Z]([a-z])+$": "a",
    r"^(a?a?)*$": "a",
    r"(x+x+)+y": "x",
    r"^([a-z]{1,63}-?){1,10}$": "a",
    r"^(?:(?:a{1,3})b?)*$": "a",
    r"^((ab)*)*$": "ab",
    r"^(\d+|\w+)*!$": "1",
    r"^(.+,)*.+;$": ",",
    r"^([a-z]{8,64})*;$": "a",
    r"(?i)^(A+)+$": "a",
    r"^(?s:.|\n)*(?:.+)+;$": "a",
    r"^(a{1,2})*$": "a",
}
"""Expression to what must be repeated for it."""
QUICK = [
    r"^a+$", r"^(\w+\s)*$", r"^([a-z]+\.)*[a-z]+$", r".*@example\.com$", r"^(dev|ops|eng)$", r"^[^@]+@[^@]+$", r"(a+)+", r"^(a+)+",
    r"^(\d{1,3}\.){3}\d{1,3}$", r"^(a|b)*$", r"^team-.*$", r"^(?:[^;]*;)*x$", r"^(ab|cd)+$", r"^\s*(\S+)\s*$", "", "^$", r"^(?:a+b)*$", r"^(?>a+)+$",
    r"^(a{2}){3}$", r"^(\w{3})*$", r"^(a{20})*$", r"^(a|[a-z])*1$", r"^(?i:a|A)*$", r"^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$", r"^(ab?)*$", r"^(a{0})*b$",
    r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$",
    r"^(([^<>()[\]\.,;:\s@\"]+(\.[^<>()[\]\.,;:\s@\"]+)*)|(\".+\"))@(([^<>()[\]\.,;:\s@\"]+\.)+[^<>()[\]\.,;:\s@\"]{2,})$",
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "pump"), ENDLESS.items(), ids=list(ENDLESS))
def test_an_endless_expression_is_found_and_its_search_is_given_up(pattern: str, pump: str) -> None:
    """The structure says so, and the search indeed does not end; the sentence names the expression."""
    assert endless(pattern)
    with pytest.raises(TooSlow, match=r"takes more than 0\.05 s of the processor") as told:
        Patience(0.05, 0.2).search(re.compile(pattern), pump * 200 + "\x00")
    assert repr(pattern) in str(told.value)


@pytest.mark.parametrize("pattern", QUICK)
def test_an_expression_that_ends_is_left_alone(pattern: str) -> None:
    """Those that people write, and such as only look like the others."""
    assert not endless(pattern)


SLOW_ONES = {
    r"^.*,.*,.*;$": (3, ","),
    r"^a*a*a*b$": (3, "a"),
    r"^\w+\s*\w+\s*\w+$": (3, "a"),
    r"(?s)^.*,.*,.*;$": (3, ","),
    r".*foo.*bar$": (3, "foo"),
    r".*,.*,x$": (3, ","),
    r"^.*-admin-.*-eu-.*-x$": (3, "-admin--eu-"),
    r".*a.*b.*c$": (4, "ab"),
    r"a*b?a*c?a*d$": (4, "a"),
    r"(?i)^A*a*(?:x|a*)b$": (3, "a"),
    r"^(?:a|[ab]*)[a-c]*(?:\w*)!$": (3, "a"),
}
"""Expression to the power by which its search grows, and to what must be repeated for it."""
AT_MOST_SQUARE = {
    r".*@example\.com$": 2,
    r"^(.*),(.*),x$": 2,
    r"^.*@.*$": 1,
    r"a+b": 2,
    r"^team-.*-admins$": 1,
    r"^cn=([^,]+),.*,dc=x$": 1,
    r"^[^,]*,[^,]*,x$": 1,
    r"^(?:.*,){2}x$": 2,
    r"(?m)^a*$": 2,
    r"^a$|^b*c$": 1,
}


@pytest.mark.parametrize("pattern", SLOW_ONES)
def test_a_slow_expression_is_found_and_its_search_takes_too_long(pattern: str) -> None:
    """Three thousand repetitions are no unusual list of groups; their cube is hours of a worker of Keystone."""
    grows, pump = SLOW_ONES[pattern]
    assert (endless(pattern), power(pattern)) == (False, grows)
    assert grows >= SLOW
    with pytest.raises(TooSlow):
        Patience(0.2, 1.0).search(re.compile(pattern), pump * 3000 + "\x00")


@pytest.mark.parametrize("pattern", [*QUICK, *AT_MOST_SQUARE])
def test_an_expression_that_grows_at_most_by_the_square_is_left_alone(pattern: str) -> None:
    """Those that people write."""
    assert power(pattern) < SLOW
    assert power(pattern) == AT_MOST_SQUARE.get(pattern, power(pattern))


PIECES = st.recursive(
    st.sampled_from(["a", "b", "[ab]", ".", "\\w", "$", "^"]),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(PIECES, st.text("ab", min_size=1, max_size=3))
def test_what_is_called_harmless_ends(pattern: str, pump: str) -> None:
    """Whatever a small expression looks like: a search over 24 repetitions of any text ends unless the structure says otherwise."""
    if not endless(pattern):
        Patience(20.0, 20.0).search(re.compile(pattern), pump * 24 + "\x00")


@settings(max_examples=300, deadline=None)
@given(PIECES, st.text("ab", min_size=1, max_size=3))
def test_what_is_called_at_most_square_ends_over_long_values(pattern: str, pump: str) -> None:
    """Two hundred repetitions: their square is nothing, their cube would be seconds."""
    if not endless(pattern) and power(pattern) < SLOW:
        Patience(1.0, 1.0).search(re.compile(pattern), pump * 200 + "\x00")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_judged_or_is_no_expression(text: str) -> None:
    """Nothing else is raised."""
    from moorage.keystone.backend.mapping_match import NotAPattern

    try:
        endless(text)
        power(text)
    except NotAPattern:
        with pytest.raises((re.error, OverflowError, RecursionError)):
            re.compile(text)


def test_patience_ends_for_all_searches_together() -> None:
    """A hundred slow expressions take no longer than the time for all; quick ones before are not counted against them."""
    patience = Patience(0.05, 0.12)
    assert patience.search(re.compile("^a$"), "a")
    told = []
    for _ in range(100):
        with pytest.raises(TooSlow) as error:
            patience.search(re.compile("^(a+)+$"), "a" * 40 + "!")
        told.append(str(error.value))
    assert sum("was not tried" in text for text in told) >= 90
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_search_that_is_given_up_names_rule_entry_and_expression() -> None:
    """As far as Keystone would come: an entry that does not match before it is the answer, as it is for Keystone."""
    slow = {"type": "HTTP_OIDC_GROUPS", "any_one_of": ["^(a+)+$"], "regex": True}
    rules = [{"remote": [{"type": "HTTP_OIDC_SUB"}, slow], "local": [{"user": {"name": "{0}"}}]}]
    claims = {"HTTP_OIDC_SUB": "x", "HTTP_OIDC_GROUPS": "a" * 40 + "!"}
    mapped = process(rules, claims, Patience(0.05, 0.2).search)
    assert mapped.failure is not None
    assert (mapped.failure.kind, mapped.failure.code) == ("Unusable", 502)
    assert "rule 0, remote[1] HTTP_OIDC_GROUPS: '^(a+)+$' against" in mapped.failure.message
    del claims["HTTP_OIDC_SUB"]
    unmatched = process(rules, claims, Patience(0.05, 0.2).search).failure
    assert unmatched is not None
    assert unmatched.kind == "Unmatched"


@settings(deadline=None)
@given(st.sampled_from(QUICK), st.text(max_size=20))
def test_a_patient_search_finds_what_the_plain_one_finds(pattern: str, value: str) -> None:
    """The limit changes no answer."""
    assert Patience().search(re.compile(pattern), value) == found(re.compile(pattern), value)
