"""Declared mapping rules in Keystone's own JSON form (attribute mapping schema 1.0).

Enters: spec.mappings. Leaves: what is sent to Keystone, and what the engine evaluates: the same text in the same order. Source: seed 000,
MappingRuleSpec; decisions, Keystone 14 (empty lists are left out: an empty any_one_of would never match).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from moorage.core.meta import JsonObject

from .types_federation import MappingLocal, MappingRemote, MappingRule

LISTS: Final = ("any_one_of", "not_any_of", "blacklist", "whitelist")
"""The lists of a remote entry, in Keystone's spelling; one of them at most."""


def keystone_rules(mappings: Sequence[MappingRule] | None) -> list[JsonObject]:
    """The value of `rules` in a mapping's body. A project without roles gets an empty list: Keystone requires the key."""
    return [
        {"local": [_local(item) for item in rule.local], "remote": [remote_entry(item) for item in rule.remote]}
        for rule in mappings or ()
    ]


def _local(local: MappingLocal) -> JsonObject:
    found: JsonObject = local.model_dump(exclude_none=True)
    for project in found.get("projects", ()):
        project.setdefault("roles", [])
    return found


def remote_entry(remote: MappingRemote) -> JsonObject:
    """One remote entry, without empty lists and without a `regex` that concerns none."""
    lists: dict[str, Any] = {name: list(values) for name in LISTS if (values := getattr(remote, name))}
    regex = {"regex": True} if remote.regex and lists else {}
    return {"type": remote.type, **lists, **regex}
