"""Resident memory: `moorage up` as it stands idle, and with 20,000 objects beside kube-apiserver with as many."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.process import Command

from bench import children
from bench.machine import cpu_seconds, rss_mib
from bench.plan import Plan
from bench.servers import Served, config_maps, make_namespace, peer
from bench.table import Row, short, spread
from bench.target import of_kubeconfig

IDLE_MIB = 150


def measure(plan: Plan) -> list[Row]:
    """Two questions; memory is stable, so each is asked once."""
    count = plan.count(20_000)
    with up(plan.folder / "up") as mine:
        idle = _settled(mine)
        full = _filled(mine, count)
    with peer(plan, plan.folder / "peer") as theirs:
        bare, loaded, store = (0.0, 0.0, 0.0)
        if theirs.processes:
            bare = _settled(theirs)
            loaded, store = _filled(theirs, count), rss_mib(theirs.processes[0].pid)
    raw_idle = {"ours": spread([idle], "MiB"), "kube-apiserver, without controllers": spread([bare], "MiB")}
    raw_full = {
        "ours": spread([full], "MiB"),
        "kube-apiserver": spread([loaded], "MiB"),
        "its etcd": spread([store], "MiB"),
    }
    question = f"RSS of `moorage up` with {count} objects"
    ratio = f"{full / loaded:.2f} x (etcd beside it: {short(store)} MiB)" if loaded else "-"
    return [
        Row(
            "RSS of `moorage up`, idle",
            _mib(idle),
            _mib(bare),
            _mib(idle),
            f"< {IDLE_MIB} MiB",
            idle < IDLE_MIB,
            raw_idle,
        ),
        Row(question, _mib(full), _mib(loaded), ratio, "< kube-apiserver", full < loaded if loaded else None, raw_full),
    ]


def _mib(value: float) -> str:
    return f"{short(value)} MiB"


@contextmanager
def up(folder: Path) -> Iterator[Served]:
    """`moorage up` with everything that belongs to it."""
    folder.mkdir(parents=True)
    kubeconfig = folder / "data" / "kubeconfig"
    argv = [sys.executable, "-m", "moorage.cli", "up", "--data", str(folder / "data")]
    process = Command("up", argv, folder, children.ENVIRONMENT).start()
    try:
        process.wait_until(lambda: "kubeconfig:" in process.tail())
        served = Served("ours", of_kubeconfig(kubeconfig), kubeconfig, (process,))
        make_namespace(served)
        yield served
    finally:
        process.stop()


def _api(served: Served) -> int:
    """The process that is compared: the API server's, which is the last one."""
    return served.processes[-1].pid


def _settled(served: Served) -> float:
    """RSS once the process is idle, or after half a minute."""
    pid = _api(served)
    for _ in range(30):
        before = cpu_seconds(pid)
        time.sleep(1.0)
        if cpu_seconds(pid) - before < 0.1:
            break
    return rss_mib(pid)


def _filled(served: Served, count: int) -> float:
    run = children.ask("load", config_maps(served, "m", count=count))
    if run["done"] != count:
        raise RuntimeError(f"{served.name}: {run['bad']} creates refused: {run['example']}")
    return _settled(served)
