"""Namespaces: the ones that always exist, what each one holds, and deletion that ends.

Enters: namespace objects. Leaves: a default ServiceAccount and the CA in each, and, for one that is being deleted, its
emptiness, then its end; conditions say what it waits for. Source: the namespace, serviceaccount and root-ca controllers.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter

import structlog

from moorage.apiserver.api import Api
from moorage.apiserver.delete import collect
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Change, Entry
from moorage.apiserver.registry import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from moorage.apiserver.served import ServedType
from moorage.apiserver.settling import settle, together
from moorage.core.conditions import Condition, from_wire, merge
from moorage.core.meta import JsonObject, ResourceType

INITIAL = ("default", "kube-system", "kube-public", "kube-node-lease")
_RETRY = 1.0
_CA = "kube-root-ca.crt"
log = structlog.get_logger(__name__)


class Namespaces:
    """Keeps namespaces furnished and lets deleted ones end."""

    def __init__(self, api: Api, ca: str) -> None:
        self._api, self._ca = api, ca
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._namespaces = api.registry.builtin(NAMESPACES.group_resource)
        api.hub.listeners.append(self._notice)

    def _notice(self, change: Change) -> None:
        if change.storage == "namespaces":
            self._queue.put_nowait(change.entry.key)
        elif change.type == "DELETED" and "/" in change.entry.key:
            namespace, _, name = change.entry.key.partition("/")
            home = self._api.hub.get("namespaces", namespace)
            if home is not None and (b'"deletionTimestamp"' in home.raw or name in ("default", _CA)):
                self._queue.put_nowait(namespace)

    async def bootstrap(self) -> None:
        """Create the namespaces that always exist; furnish all."""
        namespaces = self._api.hub.collections["namespaces"]
        await together(self._create(name) for name in INITIAL if namespaces.entries.get(name) is None)
        await together(self._reconcile(key) for key in list(namespaces.order))

    async def _create(self, name: str) -> None:
        meta = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
        obj = {"metadata": meta, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        await self._put(NAMESPACES, name, obj)

    async def _put(self, rt: ResourceType, key: str, obj: JsonObject, seen: int = 0) -> None:
        served = self._api.registry.builtin(rt.group_resource)
        if not seen:
            obj["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=self._api.now())
        await self._api.commit(served, key, obj, seen)

    async def run(self) -> None:
        """Work through namespaces as they change."""
        await settle(self._queue, self._reconcile, "namespace", _RETRY)

    async def _reconcile(self, key: str) -> None:
        entry = await self._api.hub.settled("namespaces", key)
        if entry is None:
            return
        obj = entry.parse()
        if obj["metadata"].get("deletionTimestamp"):
            await self._finish(obj, entry)
        else:
            await self._furnish(key)

    async def _furnish(self, namespace: str) -> None:
        hub = self._api.hub
        if await hub.settled("serviceaccounts", f"{namespace}/default") is None:
            await self._put(
                SERVICE_ACCOUNTS, f"{namespace}/default", {"metadata": {"name": "default", "namespace": namespace}}
            )
        path = f"{namespace}/{_CA}"
        entry = await hub.settled("configmaps", path)
        old = entry.parse() if entry else None
        if old is not None and (old.get("data") or {}).get("ca.crt") == self._ca:
            return
        note = "Contains a CA bundle that can be used to verify the server, as internal clients reach it."
        meta: JsonObject = old["metadata"] if old else {"name": _CA, "namespace": namespace}
        meta["annotations"] = {**(meta.get("annotations") or {}), "kubernetes.io/description": note}
        obj = {"metadata": meta, "data": {"ca.crt": self._ca}}
        await self._put(CONFIG_MAPS, path, obj, entry.rev if entry else 0)

    async def _finish(self, obj: JsonObject, entry: Entry) -> None:
        """Empty a namespace that is being deleted; when it is empty, let it go."""
        left = await self._empty(entry.key)
        entry_now = await self._api.hub.settled("namespaces", entry.key)
        if entry_now is None:
            return
        obj = entry_now.parse()
        if left:
            await self._tell(obj, entry_now, left)
            asyncio.get_running_loop().call_later(_RETRY, self._queue.put_nowait, entry.key)
            return
        spec = dict(obj.get("spec") or {})
        spec["finalizers"] = [name for name in spec.get("finalizers") or () if name != "kubernetes"]
        gone = not spec["finalizers"] and not obj["metadata"].get("finalizers")
        wanted = {**obj, "spec": spec}
        if gone or wanted != obj:
            await self._api.commit(self._namespaces, entry.key, wanted, entry_now.rev, delete=gone)

    async def _empty(self, namespace: str) -> list[tuple[ServedType, JsonObject]]:
        """Delete all that stands in a namespace; what is left."""
        left: list[tuple[ServedType, JsonObject]] = []
        for served in {served.storage: served for served in self._api.registry.types()}.values():
            if not served.resource.namespaced or "delete" not in served.verbs:
                continue
            collection = self._api.hub.collections[served.storage]
            for entry in collection.select(namespace):
                await self._delete(served, entry)
            left += [(served, entry.parse()) for entry in collection.select(namespace)]
        return left

    async def _delete(self, served: ServedType, entry: Entry) -> None:
        try:
            await collect(self._api, served, entry.key)
        except StatusError as error:
            if error.code != 404:
                log.warning("content_not_deleted", key=entry.key, kind=served.resource.kind, why=error.message)

    async def _tell(self, obj: JsonObject, entry: Entry, left: list[tuple[ServedType, JsonObject]]) -> None:
        """Say in the status what the namespace waits for."""
        status = dict(obj.get("status") or {})
        merged = merge(from_wire(status.get("conditions")), _conditions(left), generation=0, now=self._api.now())
        wires = [condition.to_wire() for condition in merged]
        if wires != status.get("conditions"):
            status["conditions"] = wires
            await self._api.commit(self._namespaces, entry.key, {**obj, "status": status}, entry.rev)


def _conditions(left: list[tuple[ServedType, JsonObject]]) -> tuple[Condition, ...]:
    kinds = Counter(served.resource.group_resource for served, _ in left)
    holders = Counter(name for _, obj in left for name in obj["metadata"].get("finalizers") or ())
    remaining = ", ".join(f"{kind} has {number} resource instances" for kind, number in sorted(kinds.items()))
    holding = ", ".join(f"{name} in {number} resource instances" for name, number in sorted(holders.items()))
    return (
        Condition("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
        Condition("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        Condition("NamespaceDeletionContentFailure", "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        Condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {remaining}"),
        Condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {holding}")
        if holders
        else Condition("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    )  # fmt: skip
