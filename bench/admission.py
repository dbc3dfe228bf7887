"""Reviews per second over TLS at 32 connections, with 200 siblings in the reflector.

The webhook server is an operator with its admission server and no controllers, in a process of its own, against an embedded API
server in another. Compared with a recorded figure: the peer's Go webhook did 980 reviews/s on two such cores (it lists siblings from
the API server for each review), p99 not recorded.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

from tests.real.certificates import Authority
from tests.real.ports import free_port

from bench import children
from bench.contest import SIDES, installed
from bench.converge import backend
from bench.machine import cpu_seconds
from bench.plan import Plan
from bench.servers import Served, make_namespace, ours
from bench.table import Row, Spread, short, spread
from bench.target import Target
from moorage.keystone import ADMISSIONS
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig

PEER = 980.0
SIBLINGS = 200
CONNECTIONS = 32
SIDE = SIDES[0]


def measure(plan: Plan) -> list[Row]:
    """Validating reviews, and defaulting ones beside them."""
    folder, port = plan.folder, free_port()
    authority = Authority()
    certificate, key = authority.issue(folder, "server")
    certificate.rename(folder / "tls.crt")
    key.rename(folder / "tls.key")
    (folder / "ca.crt").write_bytes(authority.pem)
    target = Target("127.0.0.1", port, authority=str(folder / "ca.crt"))
    with ours(folder / "api") as served:
        asyncio.run(_siblings(served))
        spec = {
            "kubeconfig": str(served.kubeconfig),
            "bind": f"127.0.0.1:{port}",
            "certificates": str(folder),
            "siblings": SIBLINGS,
            "ready": str(folder / "ready"),
        }
        with children.serving("webhooks", spec, folder, ready=folder / "ready") as process:
            return [_row(plan, target, process.pid, mode) for mode in ("validate", "mutate")]


def _row(plan: Plan, target: Target, pid: int, mode: str) -> Row:
    runs = []
    for round_ in range(-1, plan.repetitions):
        before = cpu_seconds(pid)
        run = children.ask("load", _load(target, mode, plan.seconds if round_ >= 0 else 1.0))
        if run["bad"]:
            raise RuntimeError(run["example"])
        if round_ >= 0:
            runs.append(
                run | {"rate": run["done"] / run["seconds"], "by_cpu": run["done"] / (cpu_seconds(pid) - before)}
            )
    rate, p99 = spread([run["rate"] for run in runs]), spread([run["p99"] for run in runs], "ms")
    raw: dict[str, Spread] = {
        "reviews/s": rate,
        "p50": spread([run["p50"] for run in runs], "ms"),
        "p99": p99,
        "reviews/CPU-s of the server": spread([run["by_cpu"] for run in runs]),
    }
    aimed = mode == "validate"
    return Row(
        f"reviews over TLS ({mode}), {CONNECTIONS} connections, {SIBLINGS} siblings",
        f"{rate}/s, p99 {p99}",
        f"{short(PEER)}/s (recorded)",
        f"{short(rate.median / PEER)} x",
        ">= 3 x" if aimed else "-",
        rate.median >= 3 * PEER if aimed else None,
        raw,
    )


def _load(target: Target, mode: str, seconds: float) -> dict[str, Any]:
    admission = next(item for item in ADMISSIONS if item.kind is BACKEND)
    rt = BACKEND.resource
    wanted = backend(SIDE, "@@@@@@@@")
    if mode == "validate":
        wanted = admission.default(json.loads(json.dumps(wanted)))
    request = {
        "uid": str(uuid.uuid4()),
        "kind": {"group": rt.group, "version": rt.version, "kind": rt.kind},
        "resource": {"group": rt.group, "version": rt.version, "resource": rt.plural},
        "name": wanted["metadata"]["name"],
        "namespace": SIDE,
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": wanted,
        "oldObject": None,
        "dryRun": False,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    path = admission.validate_path if mode == "validate" else admission.mutate_path
    amount = {"connections": CONNECTIONS, "seconds": seconds, "first": 50_000_000}
    return {"target": target.wire(), "path": path, "body": json.dumps(review), **amount}


async def _siblings(served: Served) -> None:
    """The kinds, and 200 backends in one namespace."""
    async with Client(load_kubeconfig(str(served.kubeconfig))) as client:
        await installed(client, KEYSTONE, BACKEND)
        await asyncio.to_thread(make_namespace, served, SIDE)
        for number in range(SIBLINGS):
            await client.create(BACKEND.resource, backend(SIDE, f"{number:08d}"))
