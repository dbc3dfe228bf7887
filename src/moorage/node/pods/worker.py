"""Keeps one pod as declared: starts, restarts, probes, ends its containers, and reports.

Enters: the pod from the API server, and wishes to look again. Leaves: processes and one status patch when something
changed. It must not choose which pods exist. One worker per pod; level, not edge: each pass looks at all containers.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from moorage.core.errors import InputError, MoorageError
from moorage.core.meta import JsonObject, is_terminating
from moorage.kube.errors import NotFound
from moorage.kube.resources import PODS
from moorage.node import times
from moorage.node.network.names import hosts_text, write_hosts
from moorage.node.pods import container as containers
from moorage.node.pods import status
from moorage.node.pods.asking import Asker, named_ports
from moorage.node.pods.ending import Deadline, end_container, end_pod
from moorage.node.pods.environment import Missing
from moorage.node.pods.folders import remove
from moorage.node.pods.host import Host
from moorage.node.pods.plan import hostname
from moorage.node.pods.probes import Events, Prober
from moorage.node.pods.record import Record
from moorage.node.pods.shim import write_json
from moorage.node.pods.starting import start_container
from moorage.node.pods.users import user_of
from moorage.node.pods.volumes import Place, Shelf
from moorage.runtime.room import Event

_log = structlog.get_logger("moorage.node.pod")
_LOOK_AGAIN = 5.0
"""Seconds after which a pod that misses something looks again, watches apart."""


class Worker:
    """One pod. `forget` is called when the pod is gone for good."""

    def __init__(self, host: Host, pod: JsonObject, forget: Callable[[], None]) -> None:
        self.host, self.pod, self.uid = host, pod, str(pod["metadata"]["uid"])
        self.folder = host.pod_folder(self.uid)
        self.shelf = Shelf(self.folder / "volumes", host.claims, forbidden=host.data)
        self.records: dict[str, Record] = {}
        self.failed: tuple[str, str] | None = None
        self.pod_ip, self.gone = "", False
        self.user: int | None = None
        self.places: Mapping[str, Place] = {}
        self.heard = asyncio.Event()
        """Set, and replaced by a new one, when the API server says something new of the pod."""
        self._wake, self._forget, self._next_look = asyncio.Event(), forget, 0.0

    # --- from outside

    def wake(self) -> None:
        """Look again soon."""
        self._wake.set()

    def changed(self, pod: JsonObject | None) -> None:
        """The API server has this now; None when the pod is gone there."""
        if pod is None:
            self.gone = True
        else:
            self.pod = pod
        self.heard.set()
        self.heard = asyncio.Event()
        self.wake()

    async def run(self) -> None:
        """Works until the pod is gone."""
        await self.recover()
        loop = asyncio.get_running_loop()
        while True:
            try:
                if await self._pass():
                    break
            except (MoorageError, OSError) as error:
                _log.warning("pod pass failed", pod=self._name, error=str(error))
                self.look_at(loop.time() + _LOOK_AGAIN)
            except Exception:  # noqa: BLE001  a bug met by one pass must not leave the pod without a keeper
                _log.exception("pod pass broke", pod=self._name)
                self.look_at(loop.time() + _LOOK_AGAIN)
            await self._sleep()
        self._forget()

    def release(self) -> None:
        """Stops looking after the pod without touching it; a later node adopts it."""
        for record in self.records.values():
            if record.prober is not None:
                record.prober.stop()
            if record.run is not None:
                record.run.forget()

    async def end(self) -> None:
        """Ends the containers gracefully; the pod stays on the API server and starts again with the next node."""
        if not self.records:
            await self.recover()
        await end_pod(self, drained=True)
        await self._report()

    # --- the pass

    async def _pass(self) -> bool:
        """One look at everything; True when the pod is gone."""
        self._next_look = asyncio.get_running_loop().time() + self.host.options.resync
        if self.gone or is_terminating(self.pod):
            await self._finish()
            return True
        if (self.pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._put_away()
            return False
        if self._too_late():
            await end_pod(self)
        elif self._prepare():
            await self._advance()
            if status.phase_of(self.pod, self._view()) in ("Succeeded", "Failed"):
                await end_pod(self)  # sidecars go when the others are done
        await self._report()
        return False

    async def recover(self) -> None:
        """What an earlier node left of this pod: its address, its running containers."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        noted = self.folder / "pod.json"
        known: dict[str, Any] = json.loads(noted.read_text()) if noted.exists() else {}
        address = known.get("ip", "")
        if (self.pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            kept = bool(address) and self.host.addresses.keep(self.uid, address)
            self.pod_ip = address if kept else self.host.addresses.take(self.uid)
        if self.pod_ip:
            wanted = user_of(self.pod, self.pod_ip, self.host.data)
            self.user = known.get("user") or wanted if wanted is not None else None
            self.shelf = replace(self.shelf, owner=self.user)
        meta = self.pod["metadata"]
        named = {"namespace": meta["namespace"], "name": meta["name"], "uid": self.uid}
        facts = {**named, "ip": self.pod_ip, "user": self.user}
        write_json(str(self.folder), "pod.json", facts)
        spec = self.pod["spec"]
        for item in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            record = await Record.load(item, self.folder / "containers" / item["name"])
            self.records[item["name"]] = record
            if record.running:
                self.watch(record)

    def _prepare(self) -> bool:
        """Hosts file and volumes; False when something is missing (the containers then say what)."""
        self.refresh_hosts()
        facts = self.host.facts(self.pod, self.pod_ip)
        volumes = self.pod["spec"].get("volumes") or []
        try:
            if self.places:
                self.shelf.refresh(volumes, facts)
            else:
                self.places = self.shelf.prepare(volumes, facts)
        except (Missing, InputError) as error:
            self._block_all("ContainerCreating", str(error))
            self.warn("FailedMount", str(error))
            return False
        return True

    def refresh_hosts(self) -> None:
        """Brings the pod's hosts file up to date."""
        etc = self.folder / "etc"
        name = hostname(self.pod)
        write_hosts(etc, hosts_text(self.pod, self.pod_ip, name, self.host.service_lines()))
        (etc / "hostname").write_text(f"{name}\n")
        for path, mode in ((etc, 0o755), (etc / "hosts", 0o644), (etc / "hostname", 0o644)):
            path.chmod(mode)

    async def _advance(self) -> None:
        """Starts what may start now: init containers one by one, then all others."""
        spec = self.pod["spec"]
        for item in spec.get("initContainers") or ():
            record = self.records[item["name"]]
            await self._keep(record)
            if status.is_sidecar(item):
                ready = record.prober is not None and record.prober.started
            else:
                ready = record.exit is not None and record.exit.code == 0
            if not ready:
                self._hold_back()
                return
        for item in spec["containers"]:
            await self._keep(self.records[item["name"]])

    def _hold_back(self) -> None:
        for item in self.pod["spec"]["containers"]:
            if not self.records[item["name"]].born:
                self.records[item["name"]].waiting = status.INITIALIZING

    async def _keep(self, record: Record) -> None:
        """Brings one container nearer to what is declared."""
        if record.running:
            return
        now = asyncio.get_running_loop().time()
        if record.exit is not None:
            record.note_exit(now, self.host.options)
            if not status.restarts(self.pod, record.container, record.exit.code):
                return
            if now < record.not_before:
                self._back_off(record, now)
                return
        await start_container(self, record)

    def _back_off(self, record: Record, now: float) -> None:
        left = record.not_before - now
        text = f"back-off {self.host.options.restart_backoff.delay(max(record.failures - 2, 0), 0.0):g}s restarting failed container={record.name}"
        record.waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        self.warn("BackOff", f"Back-off restarting failed container {record.name}")
        self.look_at(now + left)

    # --- a running container

    def watch(self, record: Record) -> None:
        """Probes a running container and waits for its end."""
        assert record.run is not None
        run = record.run
        record.noted = False
        asker = Asker(self.pod_ip, named_ports(record.container), run)

        def failed(kind: str, message: str, last: bool) -> None:
            self.warn("Unhealthy", f"{kind} probe failed: {message}")
            if last and kind in ("Liveness", "Startup"):
                self.tell("Killing", f"Container {record.name} failed {kind.lower()} probe, will be restarted")
                self._kill_later(record)

        record.prober = Prober(record.container, asker, Events(self.wake, failed))
        before = self._reported(record)
        record.prober.start(was_started=bool(before.get("started")), was_ready=bool(before.get("ready")))
        task = asyncio.create_task(self._await_end(record, run))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _reported(self, record: Record) -> JsonObject:
        """What the status says of this very run: an adopted container stays ready until a probe says otherwise."""
        reported = self.pod.get("status") or {}
        known = [*(reported.get("containerStatuses") or ()), *(reported.get("initContainerStatuses") or ())]
        mine = record.seen(restarting=False).container_id
        found: JsonObject = next((item for item in known if mine and item.get("containerID") == mine), {})
        return found

    async def _await_end(self, record: Record, run: containers.Run) -> None:
        if hook := ((record.container.get("lifecycle") or {}).get("postStart")):
            asker = Asker(self.pod_ip, named_ports(record.container), run)
            answer = await asker.attempt(hook, float(self.grace))
            if not answer.good and not run.ended.is_set():
                self.warn("FailedPostStartHook", answer.message)
                self._kill_later(record)
        await run.ended.wait()
        if record.run is run and record.prober is not None:
            record.prober.stop()
        self.wake()

    def _kill_later(self, record: Record) -> None:
        task = asyncio.get_running_loop().create_task(end_container(self, record, Deadline.of(self)))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def grace(self) -> float:
        """Seconds that containers get to end."""
        meta, spec = self.pod["metadata"], self.pod["spec"]
        asked = meta.get("deletionGracePeriodSeconds")
        return float(spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked)

    # --- the end

    def _too_late(self) -> bool:
        """Whether the pod's activeDeadlineSeconds are over; looks again when they will be."""
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        began = (self.pod.get("status") or {}).get("startTime")
        if self.failed is not None:
            return True
        if limit is None or began is None:
            return False
        left = limit - times.age(began, times.now())
        if left <= 0:
            self.failed = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
            return True
        self.look_at(asyncio.get_running_loop().time() + left)
        return False

    async def _finish(self) -> None:
        """Ends everything and takes the pod away, here and on the API server."""
        await end_pod(self)
        self._put_away()
        shutil.rmtree(self.folder, ignore_errors=True)
        remove(self.host.log_folder(self.pod), self.host.logs)
        if not self.gone:
            await self._report()
            await self.host.api.finish_pod(self.pod)

    def _put_away(self) -> None:
        """What a pod without processes needs no more."""
        self.shelf.remove()
        self.places = {}
        self.host.addresses.give_back(self.uid)
        self.host.cgroups.remove(self.uid)

    # --- telling

    async def _report(self) -> None:
        try:
            await self.host.api.set_status(PODS, self.pod, status.pod_status(self.pod, self._view()))
        except NotFound:
            self.gone = True
            self.wake()

    def _view(self) -> status.View:
        seen = {name: self._seen(record) for name, record in self.records.items()}
        return status.View(seen, self.pod_ip, "127.0.0.1", times.stamp(times.now()), self.failed, self._notes())

    def _seen(self, record: Record) -> status.Seen:
        code = record.exit.code if record.exit is not None else 0
        again = record.exit is not None and self.failed is None and status.restarts(self.pod, record.container, code)
        return record.seen(restarting=again)

    def _notes(self) -> list[JsonObject]:
        """A condition for what this machine cannot do: limits without a writable cgroup v2."""
        limited = any((item.get("resources") or {}).get("limits") for item in self.pod["spec"]["containers"])
        if not limited or self.host.cgroups.base is not None:
            return []
        said = {"type": "moorage.internal/ResourceLimits", "status": "False", "reason": "CgroupUnavailable"}
        return [{**said, "message": f"limits are not enforced: {self.host.cgroups.reason}"}]

    def _block_all(self, reason: str, message: str) -> None:
        for record in self.records.values():
            if not record.born:
                record.waiting = {"waiting": {"reason": reason, "message": message}}
        self.look_at(asyncio.get_running_loop().time() + _LOOK_AGAIN)

    def warn(self, reason: str, message: str) -> None:
        """Records a Warning about the pod."""
        self.host.api.tell(self.pod, Event("Warning", reason, message))

    def tell(self, reason: str, message: str) -> None:
        """Records a Normal Event about the pod."""
        self.host.api.tell(self.pod, Event("Normal", reason, message))

    def look_at(self, when: float) -> None:
        """Look again at this time of the loop's clock at the latest."""
        self._next_look = min(self._next_look, when)

    async def _sleep(self) -> None:
        left = self._next_look - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(left, 0.0)):
                await self._wake.wait()
        except TimeoutError:
            return
        finally:
            self._wake.clear()

    @property
    def _name(self) -> str:
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"
