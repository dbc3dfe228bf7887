"""CustomResourceDefinitions: checked when written, served at once, their names and conditions kept, cleaned up when deleted.

Enters: CRD objects. Leaves: kinds in the registry and the CRD's status. One served version: several are refused.
Source: apiextensions validation; the naming, establishing and finalizing controllers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from moorage.apiserver.api import Api
from moorage.apiserver.apply import track_update
from moorage.apiserver.delete import CRD_CLEANUP, collect, let_go
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Change, Entry
from moorage.apiserver.registry import CRDS
from moorage.apiserver.served import ServedType
from moorage.apiserver.settling import settle
from moorage.apiserver.write import type_map
from moorage.core.conditions import Condition, from_wire, merge
from moorage.core.meta import JsonObject, ResourceType

STORAGE = CRDS.group_resource
_RETRY = 1.0
_MANAGER = "kube-apiserver"
log = structlog.get_logger(__name__)


def served_type(crd: JsonObject, revision: int) -> ServedType:
    """The kind that a CRD defines."""
    spec, names = crd["spec"], crd["spec"]["names"]
    version = spec["versions"][0]
    subresources = frozenset(name for name in (version.get("subresources") or {}) if name in ("status", "scale"))
    rt = ResourceType(spec["group"], version["name"], names["kind"], names["plural"], spec["scope"] == "Namespaced")
    return ServedType(
        rt,
        version["schema"]["openAPIV3Schema"],
        subresources,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        storage=rt.group_resource,
        crd=crd,
        since=revision,
    )


class Definitions:
    """Keeps the registry and the status of CRDs in step with what is stored."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._serving: dict[str, tuple[ServedType, JsonObject]] = {}
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._crds = api.registry.builtin(STORAGE)
        api.hub.listeners.append(self._notice)

    def load(self) -> None:
        """Serve what is stored."""
        for entry in self._api.hub.collections[STORAGE].select(""):
            self._serve(entry)
            self._queue.put_nowait(entry.key)

    def _notice(self, change: Change) -> None:
        if change.storage != STORAGE:
            return
        if change.type == "DELETED":
            self._withdraw(change.entry.key)
            self._wake_others()
        else:
            self._serve(change.entry)
            self._queue.put_nowait(change.entry.key)

    def _serve(self, entry: Entry) -> None:
        crd = entry.parse()
        known = self._serving.get(entry.key)
        if known is not None and known[1] == crd["spec"]:
            return
        if not served_version(crd) or self._conflicts(crd):
            self._withdraw(entry.key)
            return
        served = served_type(crd, entry.rev)
        if known is not None:
            self._api.registry.forget(known[0])
        self._serving[entry.key] = (served, crd["spec"])
        self._api.registry.define(served)

    def _withdraw(self, key: str) -> None:
        known = self._serving.pop(key, None)
        if known is not None:
            self._api.registry.forget(known[0])
            self._api.type_maps.pop(known[0], None)
            collection = self._api.hub.collections[known[0].storage]
            for watcher in [one for one in self._api.watchers if one.watches(collection)]:
                watcher.end()

    def _conflicts(self, crd: JsonObject) -> list[Condition]:
        taken = self._taken(crd)
        names = crd["spec"]["names"]
        asked = [
            ("PluralConflict", [names["plural"]]),
            ("SingularConflict", [names.get("singular") or names["kind"].lower()]),
            ("ShortNamesConflict", names.get("shortNames") or []),
            ("KindConflict", [names["kind"]]),
            ("ListKindConflict", [names.get("listKind") or f"{names['kind']}List"]),
        ]
        found = []
        for reason, wanted in asked:
            used = [name for name in wanted if name in taken]
            if used:
                text = ", ".join(f'"{name}" is already in use' for name in used)
                found.append(Condition("NamesAccepted", "False", reason, text))
        return found

    def _taken(self, crd: JsonObject) -> set[str]:
        taken: set[str] = set()
        for key, (served, _) in self._serving.items():
            if served.resource.group == crd["spec"]["group"] and key != crd["metadata"]["name"]:
                rt = served.resource
                taken |= {rt.plural, served.singular, rt.kind, served.list_kind, *served.short_names}
        return taken

    async def run(self) -> None:
        """Write conditions, finalizers and clean-ups as they come due."""
        await settle(self._queue, self._reconcile, "crd", _RETRY)

    async def _reconcile(self, key: str) -> None:
        hub = self._api.hub
        entry = await hub.settled(STORAGE, key)
        if entry is None:
            return
        crd = entry.parse()
        if crd["metadata"].get("deletionTimestamp"):
            await self._clean_up(crd, entry)
            return
        if key not in self._serving:
            self._serve(entry)
        wanted = self._settled(crd)
        if wanted != crd:
            types, now = type_map(self._api, self._crds), self._api.now()
            owned = track_update(crd, wanted, manager=_MANAGER, types=types, now=now, subresource="status")
            await self._api.commit(self._crds, key, owned, entry.rev)

    def _settled(self, crd: JsonObject) -> JsonObject:
        conflicts = self._conflicts(crd)
        names = dict(crd["spec"]["names"])
        status = dict(crd.get("status") or {})
        accepted = (
            conflicts[-1] if conflicts else Condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        )
        established = (
            Condition("Established", "False", "NotAccepted", "not all names are accepted")
            if conflicts
            else Condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
        )
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
        status["acceptedNames"] = (
            {"plural": "", "kind": "", **(status.get("acceptedNames") or {})} if conflicts else names
        )
        status["storedVersions"] = status.get("storedVersions") or [crd["spec"]["versions"][0]["name"]]
        merged = merge(from_wire(status.get("conditions")), (accepted, established), generation=0, now=self._api.now())
        status["conditions"] = [condition.to_wire() for condition in merged]
        return {**crd, "status": status}

    async def _clean_up(self, crd: JsonObject, entry: Entry) -> None:
        """Delete all objects of a CRD that is going, then let it go."""
        if CRD_CLEANUP not in (crd["metadata"].get("finalizers") or ()):
            return
        left = await self._delete_instances(entry.key)
        if left:
            asyncio.get_running_loop().call_later(_RETRY, self._queue.put_nowait, entry.key)
            return
        await let_go(self._api, self._crds, entry, CRD_CLEANUP)

    async def _delete_instances(self, key: str) -> int:
        known = self._serving.get(key)
        if known is None:
            return 0
        served = known[0]
        collection = self._api.hub.collections[served.storage]
        for entry in list(collection.select("")):
            try:
                await collect(self._api, served, entry.key)
            except StatusError as error:
                log.warning("instance_not_deleted", crd=key, name=entry.key, why=error.message)
        return len(collection.entries)

    def _wake_others(self) -> None:
        """A CRD went: names that it held may be taken by another one."""
        for key in self._keys_waiting():
            self._queue.put_nowait(key)

    def _keys_waiting(self) -> Iterable[str]:
        return [key for key in self._api.hub.collections[STORAGE].order if key not in self._serving]


def served_version(crd: JsonObject) -> bool:
    """Whether the (only) version is served."""
    return bool(crd["spec"]["versions"][0].get("served"))
