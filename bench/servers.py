"""The two API servers that are compared: ours, and kube-apiserver with an etcd that syncs to disk.

Enters: a folder. Leaves: a Served for the time of a `with`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.real.kubernetes import kubernetes, write_kubeconfig
from tests.real.process import Process, poll

from bench import children
from bench.children import serving
from bench.machine import cpu_seconds
from bench.plan import Plan
from bench.target import Target, of_kubeconfig

NAMESPACE = "bench"


@dataclass(frozen=True)
class Served:
    """An API server with the processes that make it up; none when it runs elsewhere."""

    name: str
    target: Target
    kubeconfig: Path
    processes: tuple[Process, ...] = ()
    ready: Path = field(default_factory=Path)

    def cpu(self) -> float:
        """CPU seconds of all its processes so far."""
        return sum(cpu_seconds(process.pid) for process in self.processes)

    def stats(self) -> dict[str, Any]:
        """Commits and revision of ours."""
        path = self.ready.with_suffix(".stats")
        path.unlink(missing_ok=True)
        os.kill(self.processes[0].pid, signal.SIGUSR1)
        poll(path.exists, what="statistics of the store")
        found: dict[str, Any] = json.loads(path.read_text())
        return found


@contextmanager
def ours(folder: Path, **options: Any) -> Iterator[Served]:
    """The embedded server on the data of `folder`; `options` as bench.serve takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    ready, kubeconfig = folder / "ready", folder / "kubeconfig"
    spec = {"data": str(folder / "data"), "kubeconfig": str(kubeconfig), "ready": str(ready), **options}
    with serving("serve", spec, folder, ready=ready) as process:
        served = Served("ours", of_kubeconfig(kubeconfig), kubeconfig, (process,), ready)
        make_namespace(served)
        yield served


@contextmanager
def peer(plan: Plan, folder: Path) -> Iterator[Served]:
    """kube-apiserver and etcd, or the one that the plan names."""
    folder.mkdir(parents=True, exist_ok=True)
    if plan.peer_url:
        where = urlsplit(plan.peer_url)
        kubeconfig = write_kubeconfig(folder / "kubeconfig", plan.peer_url, plan.peer_token)
        served = Served("peer", Target(where.hostname or "", where.port or 443, token=plan.peer_token), kubeconfig)
        make_namespace(served)
        yield served
        return
    with kubernetes(folder, controllers="", fsync=True) as made:
        served = Served("peer", of_kubeconfig(made.kubeconfig), made.kubeconfig, made.processes)
        make_namespace(served)
        yield served


def make_namespace(served: Served, name: str = NAMESPACE) -> None:
    """A namespace to write to; it may be there already."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    spec = {
        "target": served.target.wire(),
        "path": "/api/v1/namespaces",
        "body": json.dumps(body),
        "connections": 1,
        "count": 1,
    }
    answer = children.ask("load", spec)
    if answer["bad"] and " 409 " not in answer["example"]:
        raise RuntimeError(answer["example"])


def config_maps(served: Served, prefix: str, **amount: Any) -> dict[str, Any]:
    """What the load generator is told: ConfigMaps of 1 KB."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{prefix}-@@@@@@@@", "namespace": NAMESPACE},
        "data": {"payload": "x" * 1024},
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    return {"target": served.target.wire(), "path": path, "body": json.dumps(body), "connections": 64, **amount}
