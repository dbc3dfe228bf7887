"""The engine gives what Keystone's own RuleProcessor gives."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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


def _unordered(node: Any) -> Any:
    """Lists sorted, texts as their sorted characters: whitelist and blacklist give sets, in an order that Keystone leaves to chance."""
    if isinstance(node, dict):
        return sorted((name, repr(_unordered(child))) for name, child in node.items())
    if isinstance(node, list):
        return sorted((_unordered(child) for child in node), key=repr)
    return "".join(sorted(node)) if isinstance(node, str) else node


def same(answer: Any, found: Any, *, by_chance: bool) -> bool:
    """Equal; where the order is Keystone's chance, equal but for it."""
    return answer == found or (by_chance and _unordered(answer) == _unordered(found))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(made.rules, st.lists(made.claims, min_size=CLAIMS, max_size=CLAIMS))
def test_rules_and_claims_give_what_keystone_gives(truth: RuleProcessor, rules: Any, claims: list[Any]) -> None:
    """21,000 pairs of rules that Keystone's schema accepts and claims: the same user, groups, projects, or the same kind of failure."""
    by_chance = any("whitelist" in entry or "blacklist" in entry for rule in rules for entry in rule["remote"])
    answers = truth.process([(rules, item) for item in claims])
    for item, answer in zip(claims, answers, strict=True):
        want, got = theirs(answer), ours(process(rules, item))
        assert same(want, got, by_chance=by_chance), (item, want, got)
