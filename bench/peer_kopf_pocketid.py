"""The peer: a small kopf operator that makes the same calls as ours and reads nothing that it need not read.

Finalizer (kopf's own, because there is a deletion handler), client and secret by HTTP and a read back, the credentials Secret, one status patch
with the same fields, two Events. It trusts that no client of the name exists and asks for no
list: less work than ours does.

    BENCH_POCKETID=http://... BENCH_API_KEY=... kopf run --namespace NAMESPACE bench/peer_kopf_pocketid.py
"""

from __future__ import annotations

import base64
import logging
import os
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import yaml

GROUP, VERSION, PLURAL = "pocketid.internal", "v1alpha1", "pocketidoidcclients"
shared: dict[str, Any] = {}


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Settings that spare kopf what ours does not do either: no annotations about progress, no log lines as Events."""
    settings.persistence.finalizer = "moorage.internal/bench-peer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage()
    settings.posting.loggers = False
    settings.queueing.worker_limit, settings.queueing.idle_timeout = 64, 0.2
    settings.posting.worker_limit, settings.posting.idle_timeout = 16, 0.2
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    headers = {"X-API-Key": os.environ["BENCH_API_KEY"]}
    shared["pocketid"] = aiohttp.ClientSession(os.environ["BENCH_POCKETID"].rstrip("/") + "/", headers=headers)
    shared["kubernetes"] = _kubernetes(Path(os.environ["KUBECONFIG"]))
    Path(os.environ["BENCH_READY"]).write_text("{}")  # noqa: ASYNC240  once, before any work


def _kubernetes(path: Path) -> aiohttp.ClientSession:
    """A session for Secrets: kopf itself has none to lend."""
    config: dict[str, Any] = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return aiohttp.ClientSession(cluster["server"].rstrip("/") + "/", connector=aiohttp.TCPConnector(ssl=context))


@kopf.on.cleanup()
async def stop(**_: Any) -> None:
    """Close the sessions."""
    for name in ("pocketid", "kubernetes"):
        await shared[name].close()


@kopf.on.create(GROUP, VERSION, PLURAL)
async def create(spec: Any, meta: Any, body: Any, patch: kopf.Patch, **_: Any) -> None:
    """Make the client and its secret, keep them in a Secret, then say so in the status."""
    wanted = {
        "name": meta["name"],
        "callbackURLs": list(spec["callbackUrls"]),
        "logoutCallbackURLs": [],
        "isPublic": False,
        "pkceEnabled": False,
        "requiresReauthentication": False,
        "credentials": {"federatedIdentities": []},
        "isGroupRestricted": False,
    }
    made = await _asked("POST", "api/oidc/clients", wanted)
    secret = await _asked("POST", f"api/oidc/clients/{made['id']}/secrets", {})
    await _stored(meta, spec, made["id"], secret)
    seen = await _asked("GET", f"api/oidc/clients/{made['id']}")
    _report(meta, patch, seen)
    for reason, message in (
        ("ClientCreated", f"created client {seen['name']!r} (id {seen['id']})"),
        ("SecretCreated", "stored a new client secret (initial)"),
    ):
        kopf.event(body, type="Normal", reason=reason, message=message)


def _instance(meta: Any) -> dict[str, str]:
    return {"namespace": meta["namespace"], "name": "pocketid", "url": os.environ["BENCH_POCKETID"]}


async def _asked(method: str, path: str, body: Any = None) -> Any:
    async with shared["pocketid"].request(method, path, json=body) as answer:
        answer.raise_for_status()
        return await answer.json()


async def _stored(meta: Any, spec: Any, id: str, secret: Any) -> None:
    url = os.environ["BENCH_POCKETID"]
    data = {
        "client_id": id,
        "client_secret": secret["secret"],
        "issuer_url": url,
        "callback_urls": str(list(spec["callbackUrls"])),
        "authorization_url": f"{url}/authorize",
        "token_url": f"{url}/api/oidc/token",
        "userinfo_url": f"{url}/api/oidc/userinfo",
        "jwks_url": f"{url}/.well-known/jwks.json",
    }
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PocketIDOIDCClient",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    manifest = {
        "metadata": {
            "name": f"{meta['name']}-oidc-credentials",
            "ownerReferences": [owner],
            "labels": {"managed-by": "bench-peer"},
        },
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in data.items()},
    }
    path = f"api/v1/namespaces/{meta['namespace']}/secrets"
    async with shared["kubernetes"].post(path, json=manifest) as answer:
        answer.raise_for_status()
        await answer.json()


def _report(meta: Any, patch: kopf.Patch, seen: Any) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    patch.status["observedGeneration"] = meta["generation"]
    patch.status["clientID"], patch.status["name"], patch.status["clientType"] = seen["id"], seen["name"], "standard"
    patch.status["callbackUrls"] = list(seen["callbackURLs"])
    patch.status["credentials"] = {
        "secretName": f"{meta['name']}-oidc-credentials",
        "clientSecretKey": "client_secret",
        "labels": ["managed-by"],
    }
    patch.status["secrets"] = [{"created": now, "active": True, "current": True}]
    patch.status["lastRotatedAt"], patch.status["instance"] = now, _instance(meta)
    patch.status["conditions"] = [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Reconciled",
            "message": "Pocket-ID has the client as declared",
            "observedGeneration": meta["generation"],
            "lastTransitionTime": now,
        }
    ]


@kopf.on.delete(GROUP, VERSION, PLURAL)
async def delete(**_: Any) -> None:
    """Only so that kopf sets its finalizer; the bench deletes nothing."""
