"""How one container starts: image, configuration, sandbox.

Enters: a pod's worker and the record of a container that is to run. Leaves: a run, or a `waiting` state that says what is
missing. It must not decide that a container starts.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.core.errors import InputError
from moorage.node.images.rootfs import RootFs
from moorage.node.images.store import Pending
from moorage.node.pods import launch, status
from moorage.node.pods.environment import Missing
from moorage.node.pods.plan import RunAsRoot, Setting, start_of, working_directory

if TYPE_CHECKING:
    from moorage.node.pods.record import Record
    from moorage.node.pods.worker import Worker

_LOOK_AGAIN = 5.0
"""Seconds after which a container that misses something is tried again, watches apart."""


async def start_container(worker: Worker, record: Record) -> None:
    """Starts the next run of a container, if its image is there and its configuration is complete.

    Raises:
        OSError: the disk refused.
    """
    rootfs = _image(worker, record)
    if rootfs is None:
        return
    run = record.begin()
    try:
        what = _what(worker, record, rootfs, run)
    except (Missing, InputError) as error:
        _not_startable(worker, record, error)
        return
    _drop_old_logs(worker, record)
    starting = asyncio.ensure_future(launch.start(run, what, working_directory(record.container, rootfs)))
    try:
        record.run = await asyncio.shield(starting)
    except launch.StartError as error:
        _not_startable(worker, record, error)
        return
    except asyncio.CancelledError:
        record.run = await starting  # a node that stops must know of it, to end it
        raise
    record.noted, record.waiting = False, status.CREATING
    worker.tell("Started", f"Started container {record.name}")
    worker.watch(record)


def _what(worker: Worker, record: Record, rootfs: RootFs, run: Path) -> launch.Start:
    run.mkdir(parents=True, mode=0o700)
    setting = Setting(worker.host.facts(worker.pod, worker.pod_ip), worker.places, worker.folder / "etc", worker.user)
    log = worker.host.log(worker.pod, record.name, record.attempt)
    limits = (record.container.get("resources") or {}).get("limits") or {}
    what = start_of(record.container, setting, rootfs, run, log)
    cgroup = worker.host.cgroups.make(worker.uid, record.name, limits)
    return replace(what, cgroup=cgroup, supervisor=worker.host.supervisor)


def _image(worker: Worker, record: Record) -> RootFs | None:
    reference = str(record.container.get("image", ""))
    found = worker.host.images.look(reference, record.container.get("imagePullPolicy", "IfNotPresent"))
    if isinstance(found, Pending):
        record.waiting = {"waiting": {"reason": found.reason, "message": found.message}}
        if found.reason != "ImageBuilding":
            worker.warn(found.reason, found.message)
        return None
    record.image = f"{found.rootfs.reference}@{found.rootfs.root.parent.name.rpartition('-')[2]}"
    return found.rootfs


def _not_startable(worker: Worker, record: Record, error: InputError | launch.StartError) -> None:
    """A container that cannot be made from what is declared, or on this machine: no run, no restart; tried again."""
    shutil.rmtree(record.run_folder, ignore_errors=True)
    record.attempt -= 1
    refused = "CreateContainerConfigError" if isinstance(error, Missing | RunAsRoot) else "CreateContainerError"
    record.waiting = {"waiting": {"reason": refused, "message": str(error)}}
    worker.warn("Failed", f"Error: {error}")
    worker.look_at(asyncio.get_running_loop().time() + _LOOK_AGAIN)


def _drop_old_logs(worker: Worker, record: Record) -> None:
    """Logs of the run before stay for `kubectl logs --previous`, older ones go."""
    folder = worker.host.log(worker.pod, record.name, record.attempt).parent
    for old in folder.glob(f"{record.attempt - 2}.log*"):
        old.unlink(missing_ok=True)
