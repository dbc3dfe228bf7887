"""The peer: a small kopf operator that makes the same writes as ours and reads nothing that it need not read.

Finalizer (kopf's own, because there is a deletion handler), domain by HTTP, one status patch with the same conditions, one Event.
It trusts a token that it gets once, asks no question before it creates, and probes no directory: less work than ours does.

    BENCH_KEYSTONE=http://ADDRESS:5000/v3 kopf run --namespace NAMESPACE bench/peer_kopf.py
"""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import kopf

GROUP, VERSION, PLURAL = "keystone.openstack.c5c3.io", "v1alpha1", "keystoneidentitybackends"
LOGIN = {
    "auth": {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": "admin", "domain": {"name": "Default"}, "password": "admin-password"}},
        },
        "scope": {"project": {"name": "admin", "domain": {"name": "Default"}}},
    }
}
shared: dict[str, Any] = {}


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Settings that spare kopf what ours does not do either: no annotations about progress, no log lines as Events."""
    settings.persistence.finalizer = "moorage.internal/bench-peer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage()
    settings.posting.loggers = False
    settings.queueing.worker_limit, settings.queueing.idle_timeout = (
        64,
        0.2,
    )  # without a limit it asks for 2,000 things at once
    settings.posting.worker_limit, settings.posting.idle_timeout = 16, 0.2
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    session = shared["session"] = aiohttp.ClientSession(os.environ["BENCH_KEYSTONE"].rstrip("/") + "/")
    async with session.post("auth/tokens", json=LOGIN) as answer:
        shared["token"] = answer.headers["X-Subject-Token"]
    Path(os.environ["BENCH_READY"]).write_text("{}")  # noqa: ASYNC240  once, before any work


@kopf.on.cleanup()
async def stop(**_: Any) -> None:
    """Close the session."""
    await shared["session"].close()


@kopf.on.create(GROUP, VERSION, PLURAL)
async def create(spec: Any, meta: Any, body: Any, patch: kopf.Patch, **_: Any) -> None:
    """Make the domain, then say so in the status."""
    domain = {"name": spec["domain"]["name"], "enabled": True, "explicit_domain_id": meta["uid"].replace("-", "")}
    headers = {"X-Auth-Token": shared["token"]}
    async with shared["session"].post("domains", json={"domain": domain}, headers=headers) as answer:
        answer.raise_for_status()
        made = (await answer.json())["domain"]
    now, generation = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), meta["generation"]
    patch.status["observedGeneration"] = generation
    patch.status["domainID"] = made["id"]
    patch.status["conditions"] = [
        {
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": now,
        }
        for type_, reason, message in (
            ("DomainReady", "DomainProvisioned", f"domain {made['name']!r} exists"),
            ("ConfigProjected", "ConfigProjected", "every replica runs this backend's configuration"),
            ("DirectoryReachable", "DirectoryAnswers", "the directory answers"),
            ("Ready", "AllReady", ""),
        )
    ]
    kopf.event(
        body, type="Normal", reason="DomainCreated", message=f"created domain {made['name']!r} (id {made['id']})"
    )


@kopf.on.delete(GROUP, VERSION, PLURAL)
async def delete(**_: Any) -> None:
    """Only so that kopf sets its finalizer; the bench deletes nothing."""
