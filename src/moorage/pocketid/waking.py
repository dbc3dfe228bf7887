"""What wakes objects of a Pocket-ID: a change of their instance, and changes of what they name or are named by.

Enters: objects as they stand on the wire. Leaves: watches, indices, keys, for the rooms of all kinds. Pure.
Source: spec/pocketid.md 3.1; contracts of issue 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.runtime.room import Caches, Index, Watch
from moorage.schema.kind import Kind

from .instance.types import KIND as INSTANCE
from .reach import Facts, facts_of


def instance_watch(kind: Kind[Any]) -> Watch:
    """Every object of the kind when an instance comes, goes, becomes ready, moves, or is declared anew: it may be the one that a selector meant."""

    def everything(_instance: JsonObject, caches: Caches) -> Iterable[Key]:
        return [key_of(item) for item in caches.list(kind.resource)]

    return Watch(INSTANCE.resource, everything, _matters)


def _matters(old: JsonObject | None, new: JsonObject | None) -> bool:
    """A rotation that the instance remembers does not, which clients write themselves, nor what it says of a server that is down."""
    return _shape(old) != _shape(new)


def _shape(instance: JsonObject | None) -> tuple[Facts, Any, Any] | None:
    if instance is None:
        return None
    meta = instance["metadata"]
    return replace(facts_of(instance), last_rotated=None, why=""), meta.get("labels"), meta.get("generation")


def names_index(resource: ResourceType, name: str, refs: Callable[[JsonObject], Iterable[JsonObject]]) -> Index:
    """An index of objects by the keys that references of their spec name; `refs` yields {name, namespace}."""

    def values(obj: JsonObject) -> Iterable[str]:
        namespace = obj["metadata"].get("namespace", "")
        return [f"{ref.get('namespace') or namespace}/{ref['name']}" for ref in refs(obj) if ref.get("name")]

    return Index(resource, name, values, declared=True)


def named_keys(index: Index) -> Callable[[JsonObject, Caches], Iterable[Key]]:
    """The keys that an object names, by the same reading as an index of its kind."""

    def keys(obj: JsonObject, _caches: Caches) -> Iterable[Key]:
        return [Key(*value.split("/", 1)) for value in index.values(obj)]

    return keys


def own_key(obj: JsonObject) -> str:
    """How an object stands in `names_index`."""
    return str(key_of(obj))
