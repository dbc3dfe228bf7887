"""A small kind with every door, for tests of the runtime: a Widget wants one ConfigMap and, when it goes, a clean-up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from moorage.core import conditions
from moorage.core.meta import JsonObject, Key, Ref, is_terminating, owner_reference, ref_of
from moorage.core.outcome import Done, Outcome, Stalled, Waiting
from moorage.kube.resources import CONFIG_MAPS
from moorage.runtime.room import Event, Released, Report, Room, Watch, owned
from moorage.runtime.world import World
from moorage.schema import Kind, Model, Resource, StoredCondition, conditions_field, field

FINALIZER = "test.moorage.internal/widget"


class WidgetSpec(Model):
    text: str = field(doc="What the ConfigMap says.", max_length=300_000)
    color: str | None = field(None, doc="A color.")


class WidgetStatus(Model):
    observed_generation: int | None = field(None, doc="Generation that was looked at.")
    config_map: str | None = field(None, doc="Name of the child.")
    conditions: tuple[StoredCondition, ...] = conditions_field()


class Widget(Resource):
    spec: WidgetSpec = field(doc="What is wanted.")
    status: WidgetStatus | None = field(None, doc="What is.")


KIND: Kind[Widget] = Kind("test.moorage.internal", "v1alpha1", "Widget", "widgets", Widget, "A widget.")


@dataclass(frozen=True)
class Seen:
    ref: Ref
    text: str
    terminating: bool
    child: JsonObject | None
    applied: bool = False


async def observe(world: World, key: Key) -> Seen | None:
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        return None
    child = world.cache.get(CONFIG_MAPS, Key(key.namespace, f"{key.name}-child"))
    return Seen(ref_of(obj), obj["spec"]["text"], is_terminating(obj), child)


def decide(seen: Seen) -> str | Outcome | Released:
    if seen.terminating:
        return "remove" if seen.child else Released((Event("Normal", "Removed", "the child is gone"),))
    if seen.text == "wait":
        return Waiting("Asked", "the text says wait", after=0.02)
    if seen.text == "stall":
        return Stalled("Asked", "the text says stall")
    if seen.text == "bug":
        raise ZeroDivisionError("the text says bug")
    if seen.text == "endless":
        return "again"
    return Done() if seen.applied else "apply"


async def apply(world: World, seen: Seen, plan: str) -> Seen:
    if plan == "remove":
        assert seen.child is not None
        await world.delete(CONFIG_MAPS, seen.child)
        return replace(seen, child=None)
    if plan == "again":
        return seen
    child = await world.ensure(CONFIG_MAPS, manifest(seen))
    return replace(seen, child=child, applied=True)


def manifest(seen: Seen) -> JsonObject:
    name = f"{seen.ref.key.name}-child"
    meta = {"name": name, "namespace": seen.ref.key.namespace, "ownerReferences": [owner_reference(seen.ref)]}
    return {"metadata": meta, "data": {"text": seen.text}}


def report(seen: Seen, outcome: Outcome) -> Report:
    ready = conditions.true("Ready", "AllReady") if isinstance(outcome, Done) else conditions.false("Ready", "NotYet")
    name = None if seen.child is None else seen.child["metadata"]["name"]
    events = (Event("Normal", "Applied", "the child is there"),) if seen.applied else ()
    return Report((ready,), {"configMap": name}, events)


ROOM: Room[Seen, str] = Room(
    "widget", KIND, FINALIZER, observe, decide, apply, report, (Watch(CONFIG_MAPS, owned(KIND)),)
)


def widget(name: str, text: str = "hello", **meta: Any) -> JsonObject:
    """A Widget as a person applies it."""
    return {
        "apiVersion": "test.moorage.internal/v1alpha1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": {"text": text},
    }


WIDGETS = KIND.resource
