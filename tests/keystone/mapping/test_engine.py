"""The engine gives what Keystone's own RuleProcessor gives; the order of a set, which Keystone leaves to chance, is settled on both sides."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.keystone.mapping import rules as made
from tests.real.ruleprocessor import RuleProcessor

from moorage.keystone.backend.mapping_engine import Mapped, process

EXAMPLES, CLAIMS = 3000, 7
"""So many lists of rules, each with so many sets of claims: 21,000 cases."""
RAISED = {"ValidationError": "Invalid", "DirectMappingError": "OutOfRange"}


def theirs(answer: dict[str, Any]) -> Any:
    """What RuleProcessor said, in words that can be compared."""
    if "raised" in answer:
        if answer["raised"] == "ValidationError" and answer["text"].startswith("Could not map any"):
            return "Unmatched"
        return RAISED.get(answer["raised"], "Unusable")
    return _plain(answer["user"], answer["group_ids"], answer["group_names"], answer["projects"])


def ours(found: Mapped) -> Any:
    """What the engine said, in the same words."""
    if found.failure:
        return found.failure.kind
    return _plain(found.user, found.group_ids, found.group_names, found.projects)


def _plain(user: Any, ids: Any, names: Any, projects: Any) -> list[Any]:
    return json.loads(json.dumps([user, sorted(ids, key=repr), names, projects], default=repr))  # type: ignore[no-any-return]


def several(random: Random) -> list[Any]:
    """Sets of claims for one list of rules."""
    return [made.claims(random) for _ in range(CLAIMS)]


@pytest.mark.timeout(1800)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(made.of_seed(made.rules), made.of_seed(several))
def test_rules_and_claims_give_what_keystone_gives(truth: RuleProcessor, rules: Any, claims: list[Any]) -> None:
    """21,000 pairs of rules that Keystone's schema accepts and claims: the same user, groups, projects, or the same kind of failure."""
    answers = truth.process([(rules, item) for item in claims])
    for item, answer in zip(claims, answers, strict=True):
        assert ours(process(rules, item)) == theirs(answer), item


def test_the_generated_cases_are_not_all_alike() -> None:
    """Of what is generated a good part maps somebody, and every kind of failure occurs."""
    kinds: Counter[str] = Counter()

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(made.of_seed(made.rules), made.of_seed(several))
    def count(rules: Any, claims: list[Any]) -> None:
        for item in claims:
            failure = process(rules, item).failure
            kinds[failure.kind if failure else "mapped"] += 1

    count()
    assert set(kinds) == {"mapped", "Unmatched", "OutOfRange", "Invalid", "Unusable"}
    assert kinds["mapped"] > 0.15 * kinds.total()
