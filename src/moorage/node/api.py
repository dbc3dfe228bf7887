"""The API server as this node uses it: reads from reflectors, writes noted at once.

Enters: a client. Leaves: objects. It decides nothing. The node is no room of the walk (it has no kind of its own), so it
uses the runtime's reflectors and queues directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from moorage.core.meta import JsonObject, Key, ResourceType, controller_of, key_of, ref_of
from moorage.kube.client import Client
from moorage.kube.errors import Conflict, NotFound
from moorage.kube.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    DEPLOYMENTS,
    ENDPOINTS,
    JOBS,
    PDBS,
    PODS,
    PVCS,
    REPLICA_SETS,
    SECRETS,
    SERVICES,
)
from moorage.runtime.events import Recorder
from moorage.runtime.reflector import Reflector
from moorage.runtime.room import Event

WATCHED = (PODS, SERVICES, ENDPOINTS, CONFIG_MAPS, SECRETS, PVCS, DEPLOYMENTS, REPLICA_SETS, JOBS, CRON_JOBS, PDBS)
_BY_OWNER = "owner"


def _owner_uid(obj: JsonObject) -> Iterable[str]:
    owner = controller_of(obj)
    return (owner.uid,) if owner else ()


@dataclass(slots=True)
class Api:
    """One connection, one reflector for each watched type, one recorder of Events."""

    client: Client
    recorder: Recorder
    reflectors: dict[ResourceType, Reflector] = field(default_factory=dict)

    @classmethod
    def over(cls, client: Client) -> Api:
        """An API over a client, with reflectors that do not run yet."""
        api = cls(client, Recorder(client, "moorage-node"))
        for resource in WATCHED:
            api.reflectors[resource] = Reflector(client, resource)
        for resource in (PODS, REPLICA_SETS, JOBS):
            api.reflectors[resource].add_index(_BY_OWNER, _owner_uid)
        return api

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())
            group.create_task(self.recorder.run())

    async def synced(self) -> None:
        """Waits until every type was listed once."""
        for reflector in self.reflectors.values():
            await reflector.synced.wait()

    def get(self, resource: ResourceType, key: Key) -> JsonObject | None:
        """The object as last seen, or None."""
        return self.reflectors[resource].get(key)

    def list(self, resource: ResourceType, namespace: str | None = None) -> tuple[JsonObject, ...]:
        """All objects of a namespace, or of all (None)."""
        return self.reflectors[resource].list(namespace)

    def owned(self, resource: ResourceType, owner: JsonObject) -> tuple[JsonObject, ...]:
        """The objects whose controller is `owner`."""
        return self.reflectors[resource].list(index=_BY_OWNER, value=str(owner["metadata"]["uid"]))

    async def create(self, resource: ResourceType, obj: JsonObject) -> JsonObject:
        """Creates and notes."""
        answer = await self.client.create(resource, obj)
        self.reflectors[resource].note(answer)
        return answer

    async def patch(
        self, resource: ResourceType, obj: JsonObject, patch: JsonObject, subresource: str = ""
    ) -> JsonObject:
        """Merge-patches exactly this object (its uid is a precondition) and notes the answer."""
        uid = obj["metadata"].get("uid")
        body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid}}
        answer = await self.client.patch(resource, key_of(obj), body, subresource=subresource)
        self.reflectors[resource].note(answer)
        return answer

    async def set_status(self, resource: ResourceType, obj: JsonObject, status: JsonObject) -> None:
        """Makes the status `status`: one merge patch of what differs, or no request when nothing does."""
        before = obj.get("status") or {}
        changed = {name: value for name, value in status.items() if before.get(name) != value}
        changed |= {name: None for name in before if name not in status}
        if changed:
            await self.patch(resource, obj, {"status": changed}, "status")

    async def delete(self, resource: ResourceType, obj: JsonObject, *, propagation: str = "Background") -> None:
        """Deletes exactly this object; one that is gone already, or was replaced, is done."""
        try:
            answer = await self.client.delete(
                resource, key_of(obj), uid=obj["metadata"]["uid"], propagation=propagation
            )
        except (NotFound, Conflict):
            answer = None
        self._gone(resource, obj, answer)

    async def finish_pod(self, pod: JsonObject) -> None:
        """Takes away a pod that has ended: deletion without grace."""
        key = key_of(pod)
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        try:
            answer = await self.client.raw("DELETE", PODS.path(key.namespace, key.name), body=body)
        except (NotFound, Conflict):
            answer = None
        self._gone(PODS, pod, answer)

    async def bind(self, pod: JsonObject, node: str) -> None:
        """Gives a pod to a node; the watch tells what came of it.

        Raises:
            NotFound: it is gone; Conflict: it has a node, or ends.
        """
        key = key_of(pod)
        meta = {"name": key.name, "namespace": key.namespace, "uid": pod["metadata"]["uid"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self.client.raw("POST", f"{PODS.path(key.namespace, key.name)}/binding", body=body)

    def tell(self, obj: JsonObject, event: Event) -> None:
        """Records an Event about an object."""
        self.recorder.tell(ref_of(obj), event)

    def _gone(self, resource: ResourceType, obj: JsonObject, answer: JsonObject | None) -> None:
        if answer is not None and (answer.get("metadata") or {}).get("deletionTimestamp"):
            self.reflectors[resource].note(answer)
        else:
            self.reflectors[resource].forget(key_of(obj), obj["metadata"]["uid"])
