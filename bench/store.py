"""Durable creates of a 1 KB ConfigMap over TLS at 64 writers; writes a sync; watchers; the start with many objects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from bench import children
from bench.plan import Plan
from bench.servers import NAMESPACE, Served, config_maps, ours, peer
from bench.table import Row, paired, short, spread

SYNC_MS = 4
WATCHERS = 100


def measure(plan: Plan) -> list[Row]:
    """Four questions about the store."""
    return [*creates(plan), *syncs(plan), watchers(plan), start(plan)]


def creates(plan: Plan) -> list[Row]:
    """Both servers run; they are loaded in turn."""
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    with ours(plan.folder / "ours") as mine, peer(plan, plan.folder / "peer") as theirs:
        for round_ in range(-1, plan.repetitions):  # round -1 warms both up and is not counted
            for served in (mine, theirs) if round_ % 2 else (theirs, mine):
                sample = _loaded(served, f"r{round_ + 1}", min(plan.seconds, 2.0) if round_ < 0 else plan.seconds)
                if round_ >= 0:
                    found[served.name].append(sample)
    rate = {name: [run["rate"] for run in runs] for name, runs in found.items()}
    ratio = paired(rate["ours"], rate["peer"])
    raw = {"ratio": ratio}
    for name, runs in found.items():
        raw[f"{name} creates/s"] = spread(rate[name])
        raw[f"{name} p50"] = spread([run["p50"] for run in runs], "ms")
        raw[f"{name} p99"] = spread([run["p99"] for run in runs], "ms")
    question = "durable creates of 1 KB over TLS, 64 writers"
    rows = [_row(question, rate, "/s", ratio, raw)]
    if all(run["per_cpu"] for runs in found.values() for run in runs):
        by_cpu = {name: [run["per_cpu"] for run in runs] for name, runs in found.items()}
        shares = paired(by_cpu["ours"], by_cpu["peer"])
        raw = {"ratio": shares} | {f"{name} creates/CPU-s": spread(values) for name, values in by_cpu.items()}
        rows.append(_row("the same, by CPU second of the server", by_cpu, "/CPU-s", shares, raw, aim=None))
    return rows


def _row(question: str, by: dict[str, list[float]], unit: str, ratio: Any, raw: Any, aim: float | None = 2.0) -> Row:
    mine, theirs = spread(by["ours"]), spread(by["peer"])
    met = None if aim is None else ratio.median >= aim
    return Row(
        question,
        f"{mine}{unit}",
        f"{theirs}{unit}",
        str(ratio),
        f">= {aim:.0f} x (hoped 5 x)" if aim else "-",
        met,
        raw,
    )


def _loaded(served: Served, prefix: str, seconds: float) -> dict[str, Any]:
    cpu = served.cpu()
    run: dict[str, Any] = children.ask("load", config_maps(served, prefix, seconds=seconds))
    if run["bad"]:
        raise RuntimeError(f"{served.name} refused {run['bad']} creates: {run['example']}")
    used = served.cpu() - cpu
    return run | {"rate": run["done"] / run["seconds"], "per_cpu": run["done"] / used if used else 0.0}


def syncs(plan: Plan) -> list[Row]:
    """Acknowledged writes for each commit, when a commit takes 4 ms more: at the store's own door, and over TLS."""
    inner, outer = [], []
    with ours(plan.folder / "slow", sync_ms=SYNC_MS) as mine:
        for round_ in range(plan.repetitions):
            folder = plan.folder / f"door-{round_}"
            folder.mkdir()
            spec = {"folder": str(folder), "sync_ms": SYNC_MS, "writers": 64, "seconds": plan.seconds / 2}
            inner.append(float(children.ask("door", spec)["per_sync"]))
            before = mine.stats()["commits"]
            run = children.ask("load", config_maps(mine, f"s{round_}", seconds=plan.seconds / 2))
            outer.append(run["done"] / (mine.stats()["commits"] - before))
    at_door, by_tls = spread(inner), spread(outer)
    question = f"acknowledged writes a sync, {SYNC_MS} ms added to it, 64 writers"
    aim = ">= 60"
    return [
        Row(
            f"{question}, at the store",
            str(at_door),
            "-",
            str(at_door),
            aim,
            at_door.median >= 60,
            {"writes/sync": at_door},
        ),
        Row(f"{question}, over TLS", str(by_tls), "-", str(by_tls), aim, by_tls.median >= 60, {"writes/sync": by_tls}),
    ]


def watchers(plan: Plan) -> Row:
    """100 watches see every create exactly once and in order."""
    count = plan.count(1000)
    with ours(plan.folder / "watched") as mine:
        spec = {
            "target": mine.target.wire(),
            "path": f"/api/v1/namespaces/{NAMESPACE}/configmaps?watch=1",
            "watchers": WATCHERS,
        }
        child = children.begin("watchers", spec | {"count": count})
        _until_watching(child)
        run = children.ask("load", config_maps(mine, "w", count=count))
        seen = children.outcome(child)
    lost = run["done"] * WATCHERS - seen["events"] + seen["wrong"]
    result = f"{lost} of {run['done'] * WATCHERS} events lost"
    raw = {"events lost, doubled or out of order": spread([lost])}
    return Row(
        f"{WATCHERS} watchers while {count} objects are made",
        str(seen["events"]),
        "-",
        result,
        "0 lost",
        lost == 0,
        raw,
    )


def _until_watching(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    if child.stdout.readline().strip() != "watching":
        raise RuntimeError("the watchers did not start")


def start(plan: Plan) -> Row:
    """From the call of `start` to a server that serves, with 10,000 objects in its file."""
    count, folder = plan.count(10_000), plan.folder / "start"
    with ours(folder) as mine:
        run = children.ask("load", config_maps(mine, "o", count=count))
        if run["done"] != count:
            raise RuntimeError(run["example"])
    took = [_started(folder) for _ in range(plan.repetitions)]
    wall, cpu = spread([one["start"] for one in took], "s"), spread([one["cpu"] for one in took], "s")
    raw = {"wall": wall, "CPU": cpu}
    return Row(f"start with {count} objects", str(wall), "-", f"{short(wall.median)} s", "< 1 s", wall.median < 1, raw)


def _started(folder: Path) -> dict[str, float]:
    with ours(folder) as mine:
        found: dict[str, float] = json.loads(mine.ready.read_text())
        return found
