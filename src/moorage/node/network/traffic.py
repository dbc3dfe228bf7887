"""Services at work: forwarders that listen on ClusterIPs, and Endpoints objects that say who is behind.

Enters: Services, pods, Endpoints from the API. Leaves: open sockets and Endpoints. Who is behind a Service is known at once
from the same event that tells a pod's worker that its pod ends; so no new connection goes to a pod that is told to stop.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.kube.errors import AlreadyExists
from moorage.kube.resources import ENDPOINTS, PODS, SERVICES
from moorage.node.api import Api
from moorage.node.controllers.loop import Controller
from moorage.node.network.affinity import Affinity
from moorage.node.network.forward import Backend, Forwarder
from moorage.node.network.names import address_of, service_lines
from moorage.node.network.services import (
    backends,
    backends_of_endpoints,
    selects,
    subsets,
    targets,
    tcp_ports,
)
from moorage.runtime.room import Event

_log = structlog.get_logger("moorage.node.traffic")
_BIND_AGAIN = 5.0


@dataclass(slots=True)
class _Open:
    """One port of a Service that is served. `where`: ClusterIP and port."""

    where: Backend
    forwarder: Forwarder
    affinity: Affinity


@dataclass(slots=True)
class Traffic:
    """All Services of a node."""

    api: Api
    _open: dict[tuple[Key, int], _Open] = field(default_factory=dict)
    _written: set[Key] = field(default_factory=set)
    _turn: itertools.count[int] = field(default_factory=itertools.count)

    def controller(self) -> Controller:
        """The controller that opens and closes forwarders and writes Endpoints."""
        services = Controller(SERVICES, lambda _, service: self._reconcile(service))

        def service_changed(old: JsonObject | None, new: JsonObject | None) -> None:
            if new is None and old is not None:
                services.queue.add(key_of(old))

        def pod_changed(old: JsonObject | None, new: JsonObject | None) -> None:
            pod = new or old or {}
            for service in self.api.list(SERVICES, pod["metadata"]["namespace"]):
                if any(selects(service, item) for item in (old, new) if item is not None):
                    services.queue.add(key_of(service))

        def endpoints_changed(old: JsonObject | None, new: JsonObject | None) -> None:
            services.queue.add(key_of(new or old or {}))

        services.gone = self._closed
        self.api.reflectors[SERVICES].subscribe(service_changed)
        self.api.reflectors[PODS].subscribe(pod_changed)
        self.api.reflectors[ENDPOINTS].subscribe(endpoints_changed)
        return services

    def lines(self) -> str:
        """Hosts lines of all Services."""
        headless: dict[Key, str] = {}
        services = [item for item in self.api.list(SERVICES) if not is_terminating(item)]
        for service in services:
            if address_of(service) is None:
                ready = [target.ip for target in targets(service, self._pods(service)) if target.ready]
                if ready:
                    headless[key_of(service)] = ready[0]
        return service_lines(services, headless)

    async def drain(self) -> None:
        """Accepts no new connection on any Service; those that stand go on."""
        for item in self._open.values():
            await item.forwarder.stop_listening()

    async def close(self) -> None:
        """Ends all forwarders and their connections."""
        for item in self._open.values():
            await item.forwarder.close()
        self._open.clear()

    def _pods(self, service: JsonObject) -> Sequence[JsonObject]:
        return self.api.list(PODS, service["metadata"]["namespace"])

    def _behind(self, key: Key, port: int) -> list[Backend]:
        service = self.api.get(SERVICES, key)
        if service is None:
            return []
        if service["spec"].get("selector"):
            return backends(service, self._pods(service)).get(port, [])
        return backends_of_endpoints(service, self.api.get(ENDPOINTS, key)).get(port, [])

    async def _reconcile(self, service: JsonObject) -> float | None:
        key, address = key_of(service), address_of(service)
        external = service["spec"].get("type") == "ExternalName"
        wanted = (
            {}
            if address is None or external
            else {port["port"]: (address, port["port"]) for port in tcp_ports(service)}
        )
        for (owner, number), item in list(self._open.items()):
            if owner == key and wanted.get(number) != item.where:
                await self._open.pop((owner, number)).forwarder.close()
        failed = False
        for number, where in wanted.items():
            failed |= not await self._serve(service, number, where)
        if service["spec"].get("selector") and not is_terminating(service):
            await self._write_endpoints(service)
        return _BIND_AGAIN if failed else None

    async def _serve(self, service: JsonObject, number: int, where: Backend) -> bool:
        """Listens while somebody is behind; refuses connections otherwise, as a ClusterIP without endpoints does."""
        key = key_of(service)
        item = self._open.get((key, number))
        if item is None:
            item = self._open[key, number] = self._make(key, number, where)
        item.affinity.configure(service["spec"])
        if not self._behind(key, number):
            await item.forwarder.stop_listening()
            return True
        if item.forwarder.listening:
            return True
        try:
            await item.forwarder.listen(*where)
        except OSError as error:
            why = "this port needs root" if error.errno == errno.EACCES else error.strerror
            text = f"cannot listen on {where[0]}:{where[1]}: {why}"
            self.api.tell(service, Event("Warning", "ListenFailed", text))
            return False
        return True

    def _make(self, key: Key, number: int, where: Backend) -> _Open:
        affinity = Affinity()

        def choose(client: str) -> Sequence[Backend]:
            behind = self._behind(key, number)
            if not behind:
                return ()
            start = next(self._turn) % len(behind)
            turned = behind[start:] + behind[:start]
            return affinity.order(client, turned, asyncio.get_running_loop().time())

        return _Open(where, Forwarder(choose), affinity)

    async def _closed(self, key: Key) -> None:
        """A Service is gone: so are its sockets."""
        for owner, number in [item for item in self._open if item[0] == key]:
            await self._open.pop((owner, number)).forwarder.close()
        endpoints = self.api.get(ENDPOINTS, key)
        if endpoints is not None and self.api.get(SERVICES, key) is None and key in self._written:
            self._written.discard(key)
            await self.api.delete(ENDPOINTS, endpoints)

    async def _write_endpoints(self, service: JsonObject) -> None:
        key = key_of(service)
        self._written.add(key)
        wanted = subsets(service, self._pods(service))
        stored = self.api.get(ENDPOINTS, key)
        labels = dict(service["metadata"].get("labels") or {})
        if stored is None:
            meta = {"name": key.name, "namespace": key.namespace, "labels": labels}
            made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": wanted}
            try:
                await self.api.create(ENDPOINTS, made)
            except AlreadyExists:
                _log.info("endpoints appeared meanwhile", service=str(key))
        elif (stored.get("subsets") or []) != wanted:
            await self.api.patch(ENDPOINTS, stored, {"subsets": wanted})
