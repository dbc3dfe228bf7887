"""Resolves what a client refers to among our own kinds: groups that may use it, APIs that it may use.

Enters: the world, a client, the shared lists. Leaves: Groups and Apis, with a fault for each reference that leads nowhere. Every group is
checked at the server, since Pocket-ID drops ids that it does not know. Source: spec/pocketid.md 1.4, 1.5, 3.5; case B72; seed 004.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from moorage.core import conditions
from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.reach import Facts, Lists
from moorage.pocketid.references import READY
from moorage.pocketid.rest import Access, Group, NotFound, PocketID, PocketIDError, nfc
from moorage.pocketid.selection import admits, counts_at, trusts
from moorage.pocketid.usergroup.types import KIND as USER_GROUP
from moorage.runtime.world import World

from .seen import Seen
from .seen_parts import ApiNeed, Apis, Fault, Groups
from .types import GROUP_FINALIZER
from .types_access import ApiAccess, GroupRef

BY_LISTED: Final = "pocketid-group-by-client"
NOT_FOUND: Final = "UserGroupNotFound"


def listing_groups(world: World, seen: Seen) -> Groups:
    """The groups that list the client, stay, and may: what others list is none of its business."""
    here = None if seen.instance is None else world.cache.get(INSTANCE.resource, seen.instance.key)
    listing = world.cache.list(USER_GROUP.resource, index=BY_LISTED, value=str(seen.key))
    found = [item for item in listing if _may_list(item, seen, here)]
    vanished = not found and seen.client.spec.allowed_user_groups is None and _are_gone(world, seen, here)
    return Groups(lists_us=tuple(sorted(str(key_of(item)) for item in found)), vanished=vanished)


def _may_list(group: JsonObject, seen: Seen, here: JsonObject | None) -> bool:
    """Whether a group stays, is of this instance, and of a namespace that may let people into the client: its own, or one that the instance trusts."""
    if here is None or is_terminating(group) or not counts_at(group, here):
        return False
    space = group["metadata"]["namespace"]
    return bool(space == seen.key.namespace or trusts(here, space))


def _are_gone(world: World, seen: Seen, here: JsonObject | None) -> bool:
    """Whether a group listed the client (our second finalizer says so) and is not there any more.

    To take the client out of a list opens it; a group that is deleted, moved or not admitted any more does not.
    """
    status = seen.client.status
    if status.groups_vanished or GROUP_FINALIZER not in seen.client.metadata.finalizers:
        return bool(status.groups_vanished)
    staying = (item for item in world.cache.list(USER_GROUP.resource) if _may_list(item, seen, here))
    known = {(item.get("status") or {}).get("groupID") for item in staying}
    recorded = status.allowed_user_group_ids
    return not recorded or not known.issuperset(recorded)


async def groups_of(world: World, seen: Seen, lists: Lists) -> Groups:
    """The union of both directions, each group proven to be on the server."""
    refs, listing = seen.client.spec.allowed_user_groups or (), seen.groups.lists_us
    if not refs and not listing:
        return seen.groups
    assert seen.remote is not None
    try:
        known = await lists.groups.get(seen.remote.reader, seen.remote.list_user_groups, seen.now, seen.settings.resync)
        search = _Search(seen.remote, dict(known), lists)
        direct = [await _direct(world, seen, ref, search) for ref in refs]
        reverse = [(name, await _reverse(world, seen, name, search)) for name in listing]
    except PocketIDError as error:
        return replace(seen.groups, faults=(Fault("ReconcileError", f"groups cannot be looked up: {error}"),))
    ids = {item for item in direct if isinstance(item, str)} | {id for _, id in reverse if id}
    return replace(
        seen.groups,
        ids=tuple(sorted(ids)),
        faults=tuple(item for item in direct if isinstance(item, Fault)),
        pending=tuple(name for name, id in reverse if not id),
    )


class _Search:
    """Groups at the server: from the shared list, and one by one when the list, which is of a moment ago, does not have them."""

    def __init__(self, remote: PocketID, known: dict[str, Group], lists: Lists) -> None:
        self._remote, self._known, self._lists = remote, known, lists

    async def has(self, id: str) -> bool:
        """Whether there is a group of that id."""
        if id not in self._known:
            try:
                group = await self._remote.get_user_group(id)
            except NotFound:
                return False
            self._known[id] = group
            self._lists.groups.note(group)
        return True

    async def named(self, name: str) -> str | None:
        """The id of the group of exactly that name."""
        wanted = nfc(name)
        found = next((item for item in self._known.values() if nfc(item.name) == wanted), None)
        found = found or await self._remote.find_user_group_named(name)
        return None if found is None else found.id


async def _direct(world: World, seen: Seen, ref: GroupRef, search: _Search) -> str | Fault:
    """A group that the client names itself: any failure is an error."""
    if ref.group_id is not None:
        if await search.has(ref.group_id):
            return ref.group_id
        return Fault(NOT_FOUND, f"Pocket-ID has no group with the id {ref.group_id}")
    if ref.group_name is not None:
        id = await search.named(ref.group_name)
        return id or Fault(NOT_FOUND, f"Pocket-ID has no group with the name {ref.group_name!r}")
    key = Key(ref.namespace or seen.key.namespace, ref.name or "")
    return await _declared_group(world, seen, key, search)


async def _declared_group(world: World, seen: Seen, key: Key, search: _Search) -> str | Fault:
    group = world.cache.get(USER_GROUP.resource, key)
    if group is None:
        return Fault(NOT_FOUND, f"PocketIDUserGroup {key} does not exist")
    if (why := _elsewhere(group, seen.instance)) is not None:
        return Fault("ReconcileError", f"PocketIDUserGroup {key} {why}")
    status = group.get("status") or {}
    ready, id = conditions.find(conditions.from_wire(status.get("conditions")), READY), status.get("groupID")
    if not id or ready is None or not ready.is_true:
        return Fault("ReconcileError", f"PocketIDUserGroup {key} is not ready")
    if not await search.has(id):
        return Fault(NOT_FOUND, f"the group of PocketIDUserGroup {key} is gone from Pocket-ID")
    return str(id)


async def _reverse(world: World, seen: Seen, name: str, search: _Search) -> str:
    """A group that lists the client: its id once it is on the server, "" before.

    It counts before it is Ready, since a group is Ready only when the clients that it lists are.
    """
    namespace, _, plain = name.partition("/")
    group = world.cache.get(USER_GROUP.resource, Key(namespace, plain))
    if group is None or _elsewhere(group, seen.instance) is not None:
        return ""
    id = (group.get("status") or {}).get("groupID") or ""
    return id if id and await search.has(id) else ""


def _elsewhere(obj: JsonObject, instance: Facts | None) -> str | None:
    """Why an object cannot be used: it is on another server."""
    bound = (obj.get("status") or {}).get("instance")
    if not bound or instance is None or Key(bound["namespace"], bound["name"]) == instance.key:
        return None
    return f"belongs to another PocketIDInstance ({bound['namespace']}/{bound['name']})"


# --- APIs


def apis_of(world: World, seen: Seen) -> tuple[Apis, Mapping[Key, str]]:
    """Every entry of `apiAccess`, and the audience of each API that can be read."""
    client = seen.client
    needs: list[ApiNeed] = []
    faults: list[Fault] = []
    audiences: dict[Key, str] = {}
    barred: set[str] = set()
    for entry in client.spec.api_access or ():
        key = Key(entry.api_ref.namespace or client.metadata.namespace, entry.api_ref.name)
        api = world.cache.get(API.resource, key)
        found = _need(key, api, entry, seen.instance)
        if api is not None and not admits(api, seen.key.namespace):
            barred.add((api.get("status") or {}).get("apiID") or "")
            why = f"PocketIDAPI {key} admits no clients of namespace {seen.key.namespace}: spec.allowedNamespaces there says which"
            found = Fault("APIAccessReconcileError", why)
        if isinstance(found, Fault):
            faults.append(found)
            continue
        audiences[key] = found.audience
        if found.access.grants_anything:
            needs.append(found)
    return Apis(tuple(needs), tuple(faults), frozenset(barred)), audiences


def _need(key: Key, api: JsonObject | None, entry: ApiAccess, instance: Facts | None) -> ApiNeed | Fault:
    if api is None:
        return Fault("APIAccessReconcileError", f"PocketIDAPI {key} does not exist")
    if (why := _elsewhere(api, instance)) is not None:
        return Fault("APIAccessReconcileError", f"PocketIDAPI {key} {why}")
    status = api.get("status") or {}
    ready = conditions.find(conditions.from_wire(status.get("conditions")), READY)
    if not status.get("apiID") or ready is None or not ready.is_true:
        return Fault("APIAccessReconcileError", f"PocketIDAPI {key} is not ready")
    ids = {item["key"]: item["id"] for item in status.get("permissions") or ()}
    wanted = (*(entry.delegated_permissions or ()), *(entry.client_permissions or ()))
    if unknown := sorted({name for name in wanted if name not in ids}):
        return Fault("APIAccessReconcileError", f"PocketIDAPI {key} has no permission {', '.join(unknown)}")
    delegated, own = (
        frozenset(ids[name] for name in names or ())
        for names in (entry.delegated_permissions, entry.client_permissions)
    )
    access = Access(entry.delegates, entry.acts_alone, delegated, own)
    return ApiNeed(key.name, status["apiID"], status.get("resource") or "", access, entry.client_permissions or ())
