"""`moorage run`, wired: options of the command line become an Operator against a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moorage.cli.systems import ADMISSIONS, KINDS, ROOMS
from moorage.core.addresses import Network, UnusableNetwork, parse_networks
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.kube.client import Client
from moorage.kube.config import Connection, in_cluster, load_kubeconfig
from moorage.kube.errors import NotFound
from moorage.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from moorage.runtime import logs
from moorage.runtime.admission_server import CertificateSource, Files, OwnAuthority, Place
from moorage.runtime.controller import Pace
from moorage.runtime.install import NAMESPACE, webhook_configurations
from moorage.runtime.operator import Leadership, Operator, Options, WebhookServing
from moorage.runtime.room import Room


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `moorage run` was told."""

    kinds: tuple[str, ...]
    namespace: str
    leader_elect: bool
    webhooks: bool
    webhook_bind: str
    webhook_url: str | None
    webhook_certificates: str | None
    metrics_bind: str
    health_bind: str
    workers: int
    resync: float
    allowed: tuple[Network, ...]
    kubeconfig: str | None
    context: str | None


def run_operator(options: RunOptions) -> None:
    """Run until SIGINT or SIGTERM.

    Raises:
        InputError: an option cannot be used.
    """
    import uvloop

    logs.configure()
    uvloop.run(_run(options))


async def _run(options: RunOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with Client(_connection(options)) as client:
        if options.webhooks and options.webhook_url:
            await _register(client, options.webhook_url)
        await Operator(_rooms(options.kinds), client, _options(options, client)).run(stop)


def _connection(options: RunOptions) -> Connection:
    """The kubeconfig when one is named; otherwise the ServiceAccount of the pod we run in; otherwise as kubectl would."""
    named = options.kubeconfig or options.context or os.environ.get("KUBECONFIG")
    if not named and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    return load_kubeconfig(options.kubeconfig, options.context)


def _rooms(kinds: Sequence[str]) -> list[Room[Any, Any]]:
    wanted = {name.lower() for name in kinds}
    unknown = wanted - {room.kind.kind.lower() for room in ROOMS}
    if unknown:
        known = ", ".join(kind.kind for kind in KINDS)
        raise InputError("--kinds", f"no such kind: {', '.join(sorted(unknown))}", f"Known kinds: {known}")
    return [room for room in ROOMS if not wanted or room.kind.kind.lower() in wanted]


def _options(options: RunOptions, client: Client) -> Options:
    namespace = os.environ.get("POD_NAMESPACE") or NAMESPACE
    source = _certificates(options, client, namespace)
    return Options(
        namespace=options.namespace,
        pace=Pace(workers=options.workers, resync=options.resync),
        leadership=Leadership(Key(namespace, "moorage")) if options.leader_elect else None,
        health_bind=options.health_bind,
        metrics_bind=options.metrics_bind,
        admissions=ADMISSIONS,
        webhooks=WebhookServing(options.webhook_bind, source) if options.webhooks else None,
        allowed=options.allowed,
    )


def _certificates(options: RunOptions, client: Client, namespace: str) -> CertificateSource:
    """Files that somebody else renews and whose authority he writes into the webhook configurations; without them our own authority."""
    if options.webhook_certificates:
        return Files(Path(options.webhook_certificates))
    host = urlsplit(options.webhook_url or "").hostname
    return OwnAuthority(client, Place(namespace=namespace, extra_names=(host,) if host else ()))


def allowed_networks(text: str) -> tuple[Network, ...]:
    """The networks of `--federation-metadata-allow-cidrs`.

    Raises:
        InputError: an entry cannot be used.
    """
    try:
        return parse_networks(text)
    except UnusableNetwork as error:
        raise InputError("--federation-metadata-allow-cidrs", str(error)) from error


async def _register(client: Client, url: str) -> None:
    """Webhook configurations that call this address; the admission server fills in the CA.

    The list of webhooks is replaced as a whole, because those of `moorage crds` name the Service and a webhook has one of the two.
    """
    if not url.startswith("https://"):
        raise InputError("--webhook-url", f"{url} is not https", "The API server calls webhooks over https only")
    for configuration in webhook_configurations(ADMISSIONS, {"url": url}):
        mutating = configuration["kind"] == "MutatingWebhookConfiguration"
        await _registered(client, MUTATING_WEBHOOKS if mutating else VALIDATING_WEBHOOKS, configuration)


async def _registered(client: Client, rt: ResourceType, configuration: JsonObject) -> None:
    """Create or change one configuration; a CA that is trusted already stays. Nothing is written when it calls us already."""
    try:
        stored = await client.get(rt, key_of(configuration))
    except NotFound:
        await client.create(rt, configuration)
        return
    before = {hook["name"]: hook["clientConfig"] for hook in stored.get("webhooks") or ()}
    for hook in configuration["webhooks"]:
        if bundle := before.get(hook["name"], {}).get("caBundle"):
            hook["clientConfig"]["caBundle"] = bundle
    if before != {hook["name"]: hook["clientConfig"] for hook in configuration["webhooks"]}:
        await client.patch(rt, key_of(configuration), {"webhooks": configuration["webhooks"]})
