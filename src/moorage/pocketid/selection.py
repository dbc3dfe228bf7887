"""Which PocketIDInstance an object belongs to: exactly one, by labels, over all namespaces, as far as the instance admits the object's
namespace.

Enters: a selector, the namespace of the object, the instances as they stand on the wire, what the object is bound to. Leaves: the instance,
or one sentence for the condition InstanceSelectionError that lists the instances and their labels. Pure; readiness, addresses and keys are
not judged here. Source: spec/pocketid.md 3.3, 7.3.16; seed 004; contracts, `status.instance`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from moorage.core import conditions, names
from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.core.selectors import from_wire
from moorage.pocketid.references import READY, BoundInstance, LabelSelector
from moorage.schema.fielderror import FieldError, forbidden, invalid, required

_LISTED: Final = 8
_DRAWN: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""An id that Pocket-ID drew by chance; what a person chose, two servers may both have."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The instance that an object belongs to.

    Args:
        instance: the wire object.
        left: what the object was bound to before, when that is another instance; what it made is still there.
    """

    instance: JsonObject
    left: BoundInstance | None = None

    @property
    def key(self) -> Key:
        """Namespace and name of the instance."""
        return key_of(self.instance)


@dataclass(frozen=True, slots=True)
class NotSelected:
    """No instance, or more than one; `why` is the message of the condition, the same as long as nothing changes."""

    why: str


Selection: TypeAlias = Selected | NotSelected


def select(
    selector: LabelSelector | None, namespace: str, instances: Iterable[JsonObject], bound: BoundInstance | None = None
) -> Selection:
    """The one instance whose labels match and which admits objects of this namespace.

    Args:
        namespace: where the object is.
        instances: all PocketIDInstances of all namespaces.
        bound: `status.instance`. An object stays where it is as long as that instance matches and admits it: another that comes and matches as
            well neither stops it nor takes it over. Elsewhere it moves by a person's word: another selector, other labels, or the deletion of
            that instance while another is there.
    """
    everything = sorted(instances, key=key_of)
    matching = _matching({} if selector is None else selector.to_wire(), everything)
    open_to_us = _staying([item for item in matching if admits(item, namespace)])
    if (stays := bound_instance(bound, open_to_us)) is not None:
        return Selected(stays)
    if len(open_to_us) == 1:
        return Selected(open_to_us[0], bound)
    if len(open_to_us) > 1:
        return NotSelected(_many(selector, open_to_us))
    return NotSelected(_none(selector, namespace, everything, matching))


def _matching(selector: JsonObject, instances: Iterable[JsonObject]) -> list[JsonObject]:
    chosen = from_wire(selector)
    return [item for item in instances if chosen.matches(_labels(item))]


def _staying(found: list[JsonObject]) -> list[JsonObject]:
    """Without those that are being deleted, unless there are no others."""
    return [item for item in found if not is_terminating(item)] or found


def bound_instance(bound: BoundInstance | None, instances: Iterable[JsonObject]) -> JsonObject | None:
    """The instance that an object is bound to, None when it is bound to none or that one is gone: for deletion and for moves."""
    return next((item for item in instances if bound is not None and is_bound(bound, item)), None)


def is_bound(bound: BoundInstance, instance: JsonObject) -> bool:
    """Whether this is the instance that `status.instance` names."""
    return is_bound_to(bound, key_of(instance))


def is_bound_to(bound: BoundInstance, key: Key) -> bool:
    """The same by its namespace and name."""
    return key == Key(bound.namespace, bound.name)


def admits(obj: JsonObject, namespace: str) -> bool:
    """Whether objects of a namespace may use an instance, or an API: always of its own, of all others unless `allowedNamespaces` is set."""
    allowed = obj["spec"].get("allowedNamespaces")
    return allowed is None or namespace == obj["metadata"]["namespace"] or namespace in allowed


def trusts(instance: JsonObject, namespace: str) -> bool:
    """Whether objects of a namespace may make administrators, and have what exists already: its own, and those of `adminNamespaces`."""
    return namespace == instance["metadata"]["namespace"] or namespace in (
        instance["spec"].get("adminNamespaces") or ()
    )


def selector_faults(selector: LabelSelector | None) -> Iterator[FieldError]:
    """What apimachinery refuses of a label selector: keys and values that no label has, operators with the wrong values."""
    if selector is None:
        return
    for key, value in (selector.match_labels or {}).items():
        yield from _key_faults("spec.instanceSelector.matchLabels", key)
        yield from (
            invalid(f"spec.instanceSelector.matchLabels[{key}]", value, why) for why in names.label_value(value)
        )
    for index, item in enumerate(selector.match_expressions or ()):
        path = f"spec.instanceSelector.matchExpressions[{index}]"
        yield from _key_faults(f"{path}.key", item.key)
        if item.operator in ("In", "NotIn"):
            if not item.values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            for at, value in enumerate(item.values or ()):
                yield from (invalid(f"{path}.values[{at}]", value, why) for why in names.label_value(value))
        elif item.values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")


def same_instance(one: JsonObject, other: JsonObject) -> bool:
    """Whether two wire objects of one namespace certainly belong to one instance: both bound to it, or neither bound elsewhere and one selector
    for both. For admission, which sees no instances."""
    here, there = _bound_key(one), _bound_key(other)
    if here is not None and there is not None:
        return here == there
    return bool(one["spec"].get("instanceSelector") == other["spec"].get("instanceSelector"))


def home(obj: JsonObject, instances: Iterable[JsonObject]) -> JsonObject | None:
    """The instance that a wire object is bound to, else the one that it selects; None when there is none or more than one."""
    bound = _bound_key(obj)
    if bound is None:
        return _selected(obj, instances)
    return next((item for item in instances if key_of(item) == bound), None)


def counts_at(obj: JsonObject, instance: JsonObject | None) -> bool:
    """Whether what an object refers to may count at an instance: its namespace is admitted there, and it is bound to it or could be.

    Else a namespace that may not use the instance could close its clients to everybody, or hold up deletions in other namespaces. One that is
    on its way from another instance counts already: what is not known yet never opens a client.
    """
    if instance is None or not admits(instance, obj["metadata"]["namespace"]):
        return False
    return _bound_key(obj) == key_of(instance) or bool(_matching(obj["spec"].get("instanceSelector") or {}, [instance]))


def one_server(here: JsonObject, there: JsonObject, *ids: str) -> bool:
    """Whether two instances stand for one server, in the eyes of the first: they are one, or are reached at one address.

    What an instance only says of itself counts where the first one trusts its namespace: elsewhere whoever may create an instance, with a server
    of their own behind it, could claim what others have at theirs. That is its issuer (`appUrl`), and the ids that its server knows.

    Args:
        ids: what an object of each claims. An id that was drawn by chance is on one server, by whatever two addresses it is reached, unless each
            instance says by `appUrl` that it is another issuer (a copy of a server has its ids).
    """
    if key_of(here) == key_of(there) or one_address(here, there):
        return True
    if not trusts(here, key_of(there).namespace):
        return False
    said, other_said = _issuer(here), _issuer(there)
    if (_reached(here) | said) & (_reached(there) | other_said):
        return True
    differ = said and other_said and said != other_said
    return not differ and any(_DRAWN.fullmatch(id) for id in ids)


def one_address(here: JsonObject, there: JsonObject) -> bool:
    """Whether two instances are reached at one address."""
    return bool(_reached(here) & _reached(there))


def is_reached_at(instance: JsonObject, address: str) -> bool:
    """Whether the operator asks the server of an instance at an address."""
    return _plain(address) in _reached(instance)


def is_ready(instance: JsonObject) -> bool:
    """Whether the server at the address that it names now showed its clients to its key: that of an administrator."""
    ready = conditions.find(conditions.from_wire((instance.get("status") or {}).get("conditions")), READY)
    return ready is not None and ready.is_true and is_told_of(instance)


def is_told_of(instance: JsonObject) -> bool:
    """Whether the status of an instance speaks of the address that it names now."""
    status, named = instance.get("status") or {}, (instance["spec"].get("external") or {}).get("url")
    return not named or _plain(named) == _plain(status.get("url") or named)


def _reached(instance: JsonObject) -> set[str]:
    """The addresses at which the operator asks it."""
    found = ((instance["spec"].get("external") or {}).get("url"), (instance.get("status") or {}).get("url"))
    return {_plain(text) for text in found if text}


def _issuer(instance: JsonObject) -> set[str]:
    """What it says that its tokens name; empty when it says nothing."""
    said = instance["spec"].get("appUrl")
    return {_plain(said)} if said else set()


def _plain(address: str) -> str:
    return address.rstrip("/").casefold()


def _selected(obj: JsonObject, instances: Iterable[JsonObject]) -> JsonObject | None:
    found = _matching(obj["spec"].get("instanceSelector") or {}, instances)
    open_to_it = _staying([item for item in found if admits(item, obj["metadata"]["namespace"])])
    return open_to_it[0] if len(open_to_it) == 1 else None


def _bound_key(obj: JsonObject) -> Key | None:
    bound = (obj.get("status") or {}).get("instance")
    return Key(bound["namespace"], bound["name"]) if bound else None


def _key_faults(path: str, key: str) -> Iterator[FieldError]:
    yield from (invalid(path, key, why) for why in names.qualified_name(key))


def _labels(instance: JsonObject) -> dict[str, str]:
    return instance["metadata"].get("labels") or {}


def _many(selector: LabelSelector | None, found: Sequence[JsonObject]) -> str:
    how = (
        "the object has no instanceSelector and"
        if _is_empty(selector)
        else f"instanceSelector {_shown(selector)} matches and"
    )
    return f"{how} {len(found)} PocketIDInstances are there for it, exactly one may be: {_listed(found)}; select one by its labels"


def _none(
    selector: LabelSelector | None, namespace: str, everything: Sequence[JsonObject], matching: Sequence[JsonObject]
) -> str:
    if not everything:
        return "there is no PocketIDInstance in any namespace; create one"
    if matching:
        return (
            f"no PocketIDInstance that matches admits objects of namespace {namespace}: {_listed(matching)};"
            f" add {namespace} to spec.allowedNamespaces of the right one"
        )
    return f"instanceSelector {_shown(selector)} matches no PocketIDInstance; there are: {_listed(everything)}"


def _is_empty(selector: LabelSelector | None) -> bool:
    return selector is None or not (selector.match_labels or selector.match_expressions)


def _listed(found: Sequence[JsonObject]) -> str:
    shown = [f"{key_of(item)} ({_pairs(_labels(item)) or 'no labels'})" for item in found[:_LISTED]]
    more = [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    return ", ".join([*shown, *more])


def _pairs(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _shown(selector: LabelSelector | None) -> str:
    """The selector as `kubectl get -l` would take it."""
    if selector is None:
        return "{}"
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    for item in selector.match_expressions or ():
        values = f"({','.join(item.values or ())})"
        parts.append(
            {
                "In": f"{item.key} in {values}",
                "NotIn": f"{item.key} notin {values}",
                "Exists": item.key,
                "DoesNotExist": f"!{item.key}",
            }[item.operator]
        )
    return ",".join(parts) or "{}"
