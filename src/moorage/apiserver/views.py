"""How a stored object reads in the kind that a client asks for. Pure.

Most kinds are served as stored. Two are not: events.k8s.io shows core Events in its own words, and custom resources
stored before their schema changed are pruned and defaulted by the present one.
"""

from __future__ import annotations

from moorage.apiserver import strategy
from moorage.apiserver.hub import Entry, encode
from moorage.apiserver.registry import Registry
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject

_EVENT_WORDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_WORDS = {new: old for old, new in _EVENT_WORDS.items()}


def is_plain(served: ServedType, entry: Entry) -> bool:
    """Whether the stored bytes are what a client of this kind gets."""
    return entry.rev > served.since and served.resource.group != "events.k8s.io"


def object_of(registry: Registry, served: ServedType, entry: Entry) -> JsonObject:
    """A fresh copy of the object as this kind shows it."""
    if is_plain(served, entry):
        return entry.parse()
    obj = entry.parse()
    if served.custom:
        obj["apiVersion"] = served.resource.api_version
        strategy.prune(registry, served, obj)
        served.structural.default(obj)
        return obj
    shown = renamed(served, obj, _EVENT_WORDS)
    for name in ("reportingController", "reportingInstance"):
        if not shown.get(name):
            shown.pop(name, None)
    return shown


def bytes_of(registry: Registry, served: ServedType, entry: Entry) -> bytes:
    """The object as this kind shows it, encoded; remembered on the entry."""
    if is_plain(served, entry):
        return entry.raw
    if entry.read is None or entry.read[0] is not served:
        entry.read = (served, encode(ordered(served, object_of(registry, served, entry))))
    return entry.read[1]


def stored_form(served: ServedType, obj: JsonObject) -> JsonObject:
    """The object as it is stored, from the form of this kind."""
    if served.resource.group == "events.k8s.io":
        return {**renamed(served, obj, _CORE_WORDS), "kind": "Event", "apiVersion": "v1"}
    return ordered(served, obj)


def renamed(served: ServedType, obj: JsonObject, words: dict[str, str]) -> JsonObject:
    """The object with its top-level fields renamed."""
    return ordered(served, {words.get(name, name): value for name, value in obj.items()})


def ordered(served: ServedType, obj: JsonObject) -> JsonObject:
    """The object with kind, apiVersion and metadata first: lists of built-ins leave the first two out."""
    rt = served.resource
    head: JsonObject = {"kind": rt.kind, "apiVersion": rt.api_version, "metadata": obj["metadata"]}
    head.update((name, value) for name, value in obj.items() if name not in head)
    return head


def list_item(served: ServedType, raw: bytes) -> bytes:
    """The bytes of an object within a list: items of built-in lists carry neither kind nor apiVersion."""
    if served.custom:
        return raw
    rt = served.resource
    prefix = b'{"kind":"%s","apiVersion":"%s",' % (rt.kind.encode(), rt.api_version.encode())
    return b"{" + raw[len(prefix) :] if raw.startswith(prefix) else raw
