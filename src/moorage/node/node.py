"""The node: pods, controllers and Services of one machine, until told to stop.

Enters: a client of an API server, a data folder, options. Leaves: processes while it runs; none after a clean stop. After a
crash the processes stay, and the next node on the same data folder adopts them, or ends those that nobody wants any more.
It must not reach into the API server: it is a client like any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from pathlib import Path

import structlog

from moorage.core.meta import JsonObject, Key
from moorage.kube.client import Client
from moorage.kube.resources import CONFIG_MAPS, PODS, PVCS, SECRETS, SERVICES
from moorage.node.api import Api
from moorage.node.cgroups import Cgroups
from moorage.node.controllers import binding, cronjob, deployment, disruption, job, replicaset
from moorage.node.controllers import claim as claims
from moorage.node.controllers.loop import Controller, run_all
from moorage.node.images.store import ImageStore
from moorage.node.network.addresses import PODS as POD_NETWORK
from moorage.node.network.addresses import claim
from moorage.node.network.traffic import Traffic
from moorage.node.options import HOST_IMAGE, NodeOptions
from moorage.node.pods.folders import remove
from moorage.node.pods.host import Host
from moorage.node.pods.launch import install
from moorage.node.pods.orphans import end_orphans
from moorage.node.pods.worker import Worker

_log = structlog.get_logger("moorage.node")


class Node:
    """One node. `run` once; a new process makes a new one over the same folder."""

    def __init__(self, client: Client, data_dir: Path, options: NodeOptions | None = None) -> None:
        self.options = options or NodeOptions()
        self.api = Api.over(client)
        self.traffic = Traffic(self.api)
        self._data = data_dir.resolve()
        self._workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self._stopping = False
        self._host: Host | None = None
        self._last_lines = ""

    async def run(self, stop: asyncio.Event, *, leave_pods: bool = False) -> None:
        """Works until `stop` is set, then ends all pods gracefully.

        Args:
            leave_pods: leave the processes to the next node instead of ending them.

        Raises:
            AddressesExhausted: no loopback block is free.
        """
        self._data.chmod(0o700)
        os.umask(0o022)  # images and hosts files are read by the pods' users; the data folder is closed to all others
        pool = claim(POD_NETWORK, self._data / "node" / "addresses")
        recipes = (*self.options.recipes, HOST_IMAGE)
        images = ImageStore(recipes, self.options.cache, self.options.say, self.wake_all)
        supervisor = install(self._data / "node" / "supervisor")
        self._host = Host(
            self.api, images, pool, Cgroups.detect(), self.options, self._data, self.traffic.lines, supervisor
        )
        watching = asyncio.create_task(self.api.run())
        controllers: asyncio.Task[None] | None = None
        try:
            await _first(self.api.synced(), stop, watching)
            if not stop.is_set():
                await self._end_orphans(self._host)
                controllers = asyncio.create_task(run_all(self.api, self._connect(self._host)))
                await _first(stop.wait(), stop, watching, controllers)
        finally:
            self._stopping = True
            await _cancelled(controllers)
            await (self._leave() if leave_pods else self.stop_all())
            await self.traffic.close()
            await images.close()
            await self.api.recorder.drain(1.0)
            await _cancelled(watching)
            pool.close()

    async def stop_all(self) -> None:
        """Ends all pods gracefully, in parallel; they stay on the API server and start again with the next node.

        Services accept no more connections from here on, so nothing has to wait for clients to go elsewhere.
        """
        self._stopping = True
        await self.traffic.drain()
        workers = [worker for worker, _ in self._workers.values()]
        await self._cancel_workers()
        ended = await asyncio.gather(*(worker.end() for worker in workers), return_exceptions=True)
        for worker, outcome in zip(workers, ended, strict=True):
            worker.release()
            if isinstance(outcome, Exception):
                _log.warning("pod not ended cleanly", pod=worker.uid, error=str(outcome))
        self._workers.clear()

    async def _leave(self) -> None:
        await self._cancel_workers()
        for worker, _ in self._workers.values():
            worker.release()
        self._workers.clear()

    async def _cancel_workers(self) -> None:
        tasks = [task for _, task in self._workers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- wiring

    def _connect(self, host: Host) -> list[Controller]:
        """Subscribes everything to everything it must hear of. Traffic first: it hears of an ending pod before its worker."""
        budgets = disruption.controller()
        controllers = [
            self.traffic.controller(),
            binding.controller(self.options.name),
            deployment.controller(),
            replicaset.controller(self.options.name),
            job.controller(self.options.name, self.options.job_backoff),
            cronjob.controller(),
            claims.controller(self.api, host.claims),
            budgets,
        ]
        for controller in controllers:
            controller.connect(self.api)
        listen = self.api.reflectors
        listen[PODS].subscribe(lambda old, new: disruption.wake_for(self.api, budgets, new or old or {}))
        listen[PODS].subscribe(lambda old, new: self._pod_changed(host, old, new))
        listen[SERVICES].subscribe(lambda _old, _new: self._refresh_hosts())
        for resource in (CONFIG_MAPS, SECRETS, PVCS):
            listen[resource].subscribe(self._named_changed)
        return controllers

    def _pod_changed(self, host: Host, old: JsonObject | None, new: JsonObject | None) -> None:
        pod = new or old or {}
        uid = str(pod["metadata"]["uid"])
        if old is not None and new is not None and old["metadata"]["uid"] != uid:
            self._pod_changed(host, old, None)
        known = self._workers.get(uid)
        if known is not None:
            known[0].changed(new)
        elif new is not None and not self._stopping and self._is_ours(new):
            worker = Worker(host, new, lambda: self._forget(uid))
            self._workers[uid] = (worker, asyncio.get_running_loop().create_task(worker.run()))
        if any(item is None or (item.get("status") or {}).get("podIP") is None for item in (old, new)):
            self._refresh_hosts()

    def _is_ours(self, pod: JsonObject) -> bool:
        return bool(pod["spec"].get("nodeName") == self.options.name)

    def _forget(self, uid: str) -> None:
        self._workers.pop(uid, None)

    def _named_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        namespace = (new or old or {})["metadata"]["namespace"]
        for worker, _ in self._workers.values():
            if worker.pod["metadata"]["namespace"] == namespace:
                worker.wake()

    def _refresh_hosts(self) -> None:
        lines = self.traffic.lines()
        if lines != self._last_lines:
            self._last_lines = lines
            for worker, _ in self._workers.values():
                worker.refresh_hosts()

    def wake_all(self) -> None:
        """Every pod looks again soon."""
        for worker, _ in self._workers.values():
            worker.wake()

    async def _end_orphans(self, host: Host) -> None:
        """Pods of an earlier node that the API server does not have any more."""
        wanted = {str(pod["metadata"]["uid"]) for pod in self.api.list(PODS)}
        folder = self._data / "node" / "pods"
        left = [item for item in folder.iterdir() if item.name not in wanted] if folder.is_dir() else []
        await asyncio.gather(*(end_orphans(item) for item in left))
        for item in left:
            self._forget_logs(item)
            host.cgroups.remove(item.name)
            shutil.rmtree(item, ignore_errors=True)

    def _forget_logs(self, folder: Path) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            facts = json.loads((folder / "pod.json").read_text())
            if self.api.get(PODS, Key(facts["namespace"], facts["name"])) is None:
                logs = self._data / "logs"
                remove(logs / facts["namespace"] / facts["name"], logs)


async def _first(work: object, stop: asyncio.Event, *tasks: asyncio.Task[None] | None) -> None:
    """Waits for `work` or `stop`; a background task that fails meanwhile fails the node."""
    assert asyncio.iscoroutine(work)
    mine = [asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())]
    others = [task for task in tasks if task is not None]
    try:
        done, _ = await asyncio.wait([*mine, *others], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)


async def _cancelled(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
