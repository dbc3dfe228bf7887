"""What admission lets in is what Keystone's own mapping schema accepts, and the other way round but for what is refused on purpose."""

from __future__ import annotations

import copy
import string
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.keystone.mapping import rules as made
from tests.keystone.mapping.declared import backend, camel, complaints
from tests.real.ruleprocessor import RuleProcessor

from moorage.keystone.backend.mapping_rules import keystone_rules
from moorage.keystone.backend.mapping_schema import fault
from moorage.keystone.backend.types import KIND

BATCH = 10
ON_PURPOSE = (
    "a placeholder is {<digits>}", "must hold an id or a name", "groups needs the id or the name", "regex needs anyOneOf or notAnyOf",
    "is not a regular expression", "exactly one of id, or name with domain", "control character", "should be at least 1 chars long",
    "must have at least 1 items", "should have at least 1 items", "must match ^[A-Za-z0-9_-]+$",
    "must be of type string", "must start with HTTP_",
)  # fmt: skip
"""Reasons for which admission refuses rules that Keystone would store: they could never work, or work otherwise than they look."""
relaxed = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

JUNK = (None, True, 3, "x", [], {}, [{}], {"x": "y"}, [3], {"name": "g"}, {"id": "i", "name": "n"}, ["a"])
MEMBERS = ("regex", "whitelist", "any_one_of", "type", "name", "id", "domain", "roles", "odd")


def broken(random: Random) -> list[Any]:
    """Rules with one place changed to something else: a value replaced, a key added, renamed or taken away."""
    rules = made.rules(random)
    node: Any = rules
    while True:
        keys = list(range(len(node))) if isinstance(node, list) else list(node)
        if not keys:
            return rules
        key = random.choice(keys)
        if not isinstance(node[key], dict | list) or random.random() < 0.5:
            break
        node = node[key]
    junk = copy.deepcopy(random.choice(JUNK))
    match random.choice(("replace", "add", "drop", "add")):
        case "replace":
            node[key] = junk
        case "drop":
            del node[key]
        case _ if isinstance(node, dict):
            node[random.choice(MEMBERS)] = junk
        case _:
            node.append(junk)
    return rules


def _batch(random: Random) -> list[Any]:
    return [random.choice((made.rules, broken))(random) for _ in range(BATCH)]


batches = made.of_seed(_batch)


@pytest.mark.case("B34", "K14")
@relaxed
@given(batches)
def test_admitted_rules_are_rules_that_keystone_accepts(truth: RuleProcessor, cases: list[Any]) -> None:
    """1,000 lists of rules, many of them broken: what passes admission, and is sent at all, never gets 400 from Keystone's schema."""
    admitted = [obj for obj in (backend(camel(rules)) for rules in cases) if not complaints(obj)]
    sent = [found for obj in admitted if (found := keystone_rules(KIND.parse(obj).spec.mappings))]
    assert truth.refusals(sent) == [None] * len(sent)


@relaxed
@given(batches)
def test_the_schema_of_bare_rules_is_keystones(truth: RuleProcessor, cases: list[Any]) -> None:
    """`moorage mapping test` takes exactly the bare rules that Keystone takes."""
    assert [bool(fault(rules)) for rules in cases] == [found is not None for found in truth.refusals(cases)]


@relaxed
@given(batches)
def test_what_keystone_accepts_is_admitted_but_for_known_reasons(truth: RuleProcessor, cases: list[Any]) -> None:
    """Admission refuses no rule that Keystone accepts, except for the reasons that decisions give."""
    refusals = truth.refusals(cases)
    for rules, refused in zip(cases, refusals, strict=True):
        if refused is None:
            unexpected = [
                text for text in complaints(backend(camel(rules))) if not any(reason in text for reason in ON_PURPOSE)
            ]
            assert unexpected == [], rules


def _is_plain(text: str) -> bool:
    """Whether Python's own format strings see nothing but {<digits>} in the text."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return False
    names = [name for _, name, _, _ in parts if name is not None]
    literal = ((before.replace("{", "{{").replace("}", "}}"), name) for before, name, _, _ in parts)
    again = "".join(before + (f"{{{name}}}" if name is not None else "") for before, name in literal)
    return again == text and all(name.isascii() and name.isdigit() for name in names)


@pytest.mark.case("K14")
@settings(max_examples=600, deadline=None)
@given(st.text(st.sampled_from("{}{}01x!:[].٣"), max_size=8))
def test_a_placeholder_is_what_pythons_format_takes_for_one(text: str) -> None:
    """Braces are counted as Keystone's format strings count them, doubled ones included."""
    rules = [{"remote": [{"type": "HTTP_OIDC_SUB"}], "local": [{"user": {"name": "{0}", "email": text}}]}]
    assert (not complaints(backend(rules))) == _is_plain(text)
