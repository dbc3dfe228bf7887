"""The one way an object is changed: read, transform, admit, validate, commit; again when somebody else was faster.

Enters: an Edit. Leaves: the entry as stored (or as it would be, for a dry run). It must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moorage.apiserver import metadata, strategy, views
from moorage.apiserver.api import Api
from moorage.apiserver.apply import BadValue, TypeMap, settled, track_update
from moorage.apiserver.creation import LONGEST_BODY, HasObjects, Shape, shape_of
from moorage.apiserver.errors import StatusError, already_exists, conflict, forbidden, invalid, not_found
from moorage.apiserver.hub import Entry, Stale, encode
from moorage.apiserver.registry import NAMESPACES
from moorage.apiserver.request import Request
from moorage.apiserver.served import ServedType
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject, Key, ResourceType

_ATTEMPTS = 10
_EVENT = ResourceType("", "v1", "Event", "events")
"""How refusals name an Event, in whatever group it is written."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A write of one object.

    Attributes:
        transform: gives the wanted object from the current one (a copy, None when absent); may raise StatusError.
        tracked: whether managedFields follow this write (server-side apply sets them itself).
        may_create: whether an absent object is created.
        retry: whether a lost race is tried again.
        shape: of an object that decoding and defaulting leave as it is (creation.py).
    """

    served: ServedType
    key: Key
    request: Request
    transform: Callable[[JsonObject | None], JsonObject]
    subresource: str = ""
    tracked: bool = True
    may_create: bool = False
    retry: bool = True
    shape: Shape | None = None

    @property
    def dry_run(self) -> bool:
        return bool(self.request.query.get("dryRun"))


@dataclass(frozen=True, slots=True)
class Written:
    """What a write came to."""

    entry: Entry
    created: bool = False


async def write_object(api: Api, edit: Edit) -> Written:
    """Perform an edit.

    Raises:
        StatusError: every refusal.
    """
    served, storage, path = edit.served, edit.served.storage, str(edit.key)
    for _ in range(_ATTEMPTS):
        before = await api.hub.settled(storage, path) if edit.key.name else None
        try:
            if before is None:
                return await _create(api, edit)
            return await _update(api, edit, before)
        except Stale:
            if before is None and not edit.may_create:
                raise already_exists(served.resource, edit.key.name) from None
            if not edit.retry:
                break
    raise conflict(served.resource, edit.key.name)


async def create_object(api: Api, edit: Edit) -> Written:
    """Create an object that must not exist.

    Raises:
        StatusError: 409 AlreadyExists and every other refusal.
    """
    return await _create(api, edit, fresh=True)


async def _create(api: Api, edit: Edit, *, fresh: bool = False) -> Written:
    served, rt = edit.served, edit.served.resource
    if not fresh and not edit.may_create:
        raise not_found(rt, edit.key.name)
    size = len(edit.request.body)
    obj = await api.aside.run(size, lambda: _proposed(api, edit))
    obj = await api.admission.mutate(edit.request, served, obj, None, edit.subresource)
    strategy.prepare_create(served, obj)
    api.allocate(served, obj)
    obj = await api.aside.run(size, lambda: _accepted(edit, obj, None))
    api.check_escalation(edit.request, served, obj, None)
    await api.admission.validate(edit.request, served, obj, None, edit.subresource)
    name = obj["metadata"]["name"]
    path = str(Key(edit.key.namespace, name))
    if (there := await api.hub.settled(served.storage, path)) is not None:
        if not fresh:
            raise Stale
        if b'"deletionTimestamp":' in there.raw:
            refused = already_exists(rt, name)
            raise StatusError(409, "AlreadyExists", f"object is being deleted: {refused.message}", refused.details)
        raise already_exists(rt, name)
    if edit.dry_run:
        return Written(_unstored(served, path, obj), created=True)
    check_namespace(api, served, obj)
    try:
        return Written(await api.commit(served, path, obj, 0), created=True)
    except Stale:
        if fresh:
            raise already_exists(rt, name) from None
        raise


def _proposed(api: Api, edit: Edit) -> JsonObject:
    """The object that an edit makes of nothing, before anybody else has a say."""
    obj = edit.transform(None)
    metadata.prepare_create(obj, edit.key, api.now())
    check_namespace(api, edit.served, obj)
    if edit.shape is None:
        strategy.default(edit.served, obj)
    return _track_created(api, edit, obj) if edit.tracked else obj


def _accepted(edit: Edit, obj: JsonObject, old: JsonObject | None) -> JsonObject:
    """The object as it may be stored.

    Raises:
        StatusError: 422.
    """
    obj = settled(old, obj)
    _check_valid(edit, obj, old)
    return obj


async def _update(api: Api, edit: Edit, before: Entry) -> Written:
    served, size = edit.served, max(len(edit.request.body), len(before.raw))
    old, obj = await api.aside.run(size, lambda: _changed(api, edit, before))
    obj = await api.admission.mutate(edit.request, served, obj, old, edit.subresource)
    strategy.prepare_update(served, obj, old, edit.subresource)
    api.allocate(served, obj)
    obj = await api.aside.run(size, lambda: _accepted(edit, obj, old))
    api.check_escalation(edit.request, served, obj, old)
    await api.admission.validate(edit.request, served, obj, old, edit.subresource)
    if obj == old:
        return Written(before)
    if edit.dry_run:
        return Written(_unstored(served, before.key, obj))
    if old["metadata"].get("deletionTimestamp") and finished(served, obj):
        return await _let_go(api, edit, before, old, obj)
    return Written(await api.commit(served, before.key, obj, before.rev))


def _changed(api: Api, edit: Edit, before: Entry) -> tuple[JsonObject, JsonObject]:
    """The object as it is, and as the edit wants it, before anybody else has a say."""
    old = api.read(edit.served, before)
    obj = edit.transform(copied(old))
    _check_preconditions(edit, obj, old)
    metadata.prepare_update(obj, old)
    strategy.default(edit.served, obj)
    if edit.tracked:
        obj = _track(api, edit, old, obj)
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return old, obj


async def _let_go(api: Api, edit: Edit, before: Entry, old: JsonObject, obj: JsonObject) -> Written:
    """End an object that nothing holds any more: watchers see its last stored state, the writer what it wrote."""
    answer = _unstored(edit.served, before.key, obj)
    await api.commit(edit.served, before.key, old, before.rev, delete=True)
    return Written(answer)


def finished(served: ServedType, obj: JsonObject) -> bool:
    """Whether nothing holds a terminating object any more."""
    if obj["metadata"].get("finalizers"):
        return False
    return not (served.resource == NAMESPACES and (obj.get("spec") or {}).get("finalizers"))


def _track(api: Api, edit: Edit, old: JsonObject | None, obj: JsonObject) -> JsonObject:
    """The object with its owners; one that does not fit its schema has none, as in Kubernetes."""
    try:
        if edit.subresource and edit.served.custom and strategy.has_wrong_types(edit.served, obj):
            raise BadValue("", "wrong types")
        return track_update(
            old,
            obj,
            manager=edit.request.manager,
            types=type_map(api, edit.served),
            now="" if edit.subresource == "scale" else api.now(),  # Kubernetes notes no time there
            subresource=edit.subresource,
            api_version=edit.served.resource.api_version,
        )
    except BadValue:
        obj["metadata"].pop("managedFields", None)
        return obj


def _track_created(api: Api, edit: Edit, obj: JsonObject) -> JsonObject:
    """As `_track`, from memory where an object of this shape was created before."""
    if "managedFields" in obj["metadata"] or len(edit.request.body) > LONGEST_BODY:
        return _track(api, edit, None, obj)
    try:
        key = (edit.served, edit.request.manager, edit.shape or shape_of(obj))
    except HasObjects:
        return _track(api, edit, None, obj)
    known = api.created.find(key, api.now())
    if known is None:
        obj = _track(api, edit, None, obj)
        api.created.note(key, obj["metadata"].get("managedFields") or [])
    else:
        obj["metadata"]["managedFields"] = known
    return obj


def type_map(api: Api, served: ServedType) -> TypeMap:
    """The merge rules of a kind, made once."""
    found = api.type_maps.get(served)
    if found is None:
        found = api.type_maps[served] = TypeMap.of(
            served.schema, served.definitions, status="status" in served.subresources
        )
    return found


def _check_preconditions(edit: Edit, obj: JsonObject, old: JsonObject) -> None:
    meta, rt = obj["metadata"], edit.served.resource
    given = meta.get("resourceVersion")
    if given and given != old["metadata"]["resourceVersion"]:
        raise conflict(rt, edit.key.name)
    if meta.get("uid") and meta["uid"] != old["metadata"]["uid"] and edit.request.target.verb == "update":
        raise other_uid(rt, edit.key, old, meta["uid"])


def other_uid(rt: ResourceType, key: Key, old: JsonObject, uid: str) -> StatusError:
    """409 for a write that is meant for an object of another uid."""
    why = metadata.check_preconditions(old, uid, None)
    head = f"StorageError: invalid object, Code: 4, Key: /registry/{rt.plural}/{key}, ResourceVersion: 0, AdditionalErrorMsg: "
    return conflict(rt, key.name, head + why)


def _check_valid(edit: Edit, obj: JsonObject, old: JsonObject | None) -> None:
    verdict = strategy.validate(edit.served, obj, old, edit.subresource)
    if edit.served.custom or not verdict.errors:
        edit.request.warnings.extend(verdict.warnings)
    if verdict.errors:
        name = obj["metadata"].get("name") or obj["metadata"].get("generateName") or ""
        rt = edit.served.resource
        raise invalid(_EVENT if edit.served.storage == "events" else rt, name, verdict.errors)


def check_namespace(api: Api, served: ServedType, obj: JsonObject) -> None:
    """Raises 404 or 403 when nothing can be created in the namespace of `obj`."""
    namespace = obj["metadata"].get("namespace")
    if not served.resource.namespaced or not namespace:
        return
    entry = api.hub.get("namespaces", namespace)
    if entry is None:
        raise not_found(NAMESPACES, namespace)
    if b'"deletionTimestamp":' in entry.raw and entry.parse()["metadata"].get("deletionTimestamp"):
        name = obj["metadata"].get("name") or obj["metadata"].get("generateName") or ""
        refused = forbidden(
            served.resource,
            name,
            f"unable to create new content in namespace {namespace} because it is being terminated",
        )
        why = f"namespace {namespace} is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"}
        raise StatusError(403, "Forbidden", refused.message, {**(refused.details or {}), "causes": [cause]})


def _unstored(served: ServedType, path: str, obj: JsonObject) -> Entry:
    return Entry(path, 0, encode(views.ordered(served, obj)))
