"""Durations, quantities, names and selectors read what Kubernetes users write."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core import names
from moorage.core.durations import format_age, parse_duration
from moorage.core.quantity import parse_quantity
from moorage.core.selectors import from_wire, parse_fields, parse_labels


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("250ms", 0.25), ("0", 0), ("-2m", -120), ("1.5h", 5400)]
)
def test_go_durations_are_read(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "1d", "h", "1h 30m", "one", "1m-3s", "--1m"])
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="90s, 5m or 1h30m"):
        parse_duration(text)


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59))
def test_composed_durations_add_up(hours, minutes, seconds):
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == pytest.approx(hours * 3600 + minutes * 60 + seconds)


@pytest.mark.parametrize(
    ("seconds", "text"), [(59, "59s"), (250, "4m10s"), (3 * 3600, "3h"), (7 * 3600 + 60, "7h1m"), (50 * 3600, "2d2h")]
)
def test_ages_are_printed_as_kubectl_prints_them(seconds, text):
    assert format_age(seconds) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [("100m", "0.1"), ("512Mi", str(512 * 2**20)), ("1e3", "1000"), ("2", "2"), (".5", "0.5"), ("1k", "1000")],
)
def test_quantities_are_numbers(text, number):
    assert parse_quantity(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "1 Gi", "Mi", "1mi", "0x10", "1e", "--1"])
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(ValueError, match="quantities must match"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["a=b", "a==b", "a in (b, c)", "a", "!z", "a!=c", "z notin (b)", "a=b,!z,n>4,n<6", ""])
def test_selectors_that_match(text):
    assert parse_labels(text).matches({"a": "b", "n": "5"})


@pytest.mark.parametrize("text", ["a=c", "a notin (b)", "z", "!a", "n>5", "z in (b)", "a=b,z"])
def test_selectors_that_do_not_match(text):
    assert not parse_labels(text).matches({"a": "b", "n": "5"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b,c", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("!=", "found '!=', expected: !, identifier, or 'end of string'"),
        ("! (a)", "unable to parse requirement: found '(', expected: identifier"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
    ],
)
def test_what_is_no_selector_is_refused(text, why):
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        parse_labels(text)


@pytest.mark.parametrize("text", ["-a=b", "a=-b", "a/b/c=d", "n>x", "a in (b,-c)", "/a", "A/b"])
def test_keys_and_values_of_selectors_are_those_of_labels(text):
    with pytest.raises(ValueError, match="Invalid value"):
        parse_labels(text)


@pytest.mark.parametrize(
    "text", ["", " ", "in", "notin=in", "a in()", "a in (,)", "a=", "a!=,b", "x.y/z", "a in (in,notin)"]
)
def test_what_looks_odd_and_is_a_selector(text):
    assert parse_labels(text) is not None


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (r"a=b\,c,d!=e", (("a", True, "b,c"), ("d", False, "e"))),
        (r"a==\=", (("a", True, "="),)),
        (r"a=\\", (("a", True, "\\"),)),
        ("=x", (("", True, "x"),)),
    ],
)
def test_field_selectors_escape_what_separates(text, terms):
    assert parse_fields(text) == terms


@pytest.mark.parametrize("text", ["a=b=c", r"a=\x", "a=b\\", "a"])
def test_field_selectors_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="invalid"):
        parse_fields(text)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.from_regex(r"[a-z0-9]{0,8}", fullmatch=True), max_size=4
    )
)
def test_a_selector_made_of_labels_matches_them(labels):
    assert from_wire({"matchLabels": labels}).matches(labels)
    assert parse_labels(",".join(f"{key}={value}" for key, value in labels.items())).matches(labels)


def test_no_selector_at_all_matches_nothing_and_an_empty_one_everything():
    assert not from_wire(None).matches({"a": "b"})
    assert from_wire({}).matches(None)


def test_field_selectors_are_terms_of_path_sense_and_text():
    terms = (("metadata.name", True, "x"), ("status.phase", False, "Running"))
    assert parse_fields("metadata.name=x,status.phase!=Running") == terms
    with pytest.raises(ValueError, match="invalid selector"):
        parse_fields("metadata.name")


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?){0,2}", fullmatch=True))
def test_subdomains_are_valid_object_names(name):
    assert names.dns1123_subdomain(name) == []


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a..b", "a_b", "a" * 254])
def test_other_names_are_complained_about(name):
    assert names.dns1123_subdomain(name)


def test_label_keys_may_have_a_prefix_and_values_may_be_empty():
    assert names.qualified_name("example.com/My_Name") == []
    assert names.qualified_name("/x") == ["prefix part must be non-empty"]
    assert names.label_value("") == []
    assert names.label_value("a b")
    assert names.config_key("tls.crt") == []
    assert names.config_key("..") == ["must not be '..'"]
