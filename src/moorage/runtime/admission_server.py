"""The admission server: TLS whose certificate changes without a restart.

Enters: an application, and either certificate files that somebody else renews (cert-manager) or our own authority. Leaves: a
listener. With our own authority its key lives in the Secret `moorage-webhook-ca`, shared by all replicas; each replica issues
its own server certificate, and the authority's certificate stands as caBundle in the webhook configurations. While the
authority changes, both old and new are trusted. Conflicts between replicas are settled by resourceVersion.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import structlog

from moorage.core.errors import InputError, MoorageError
from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.core.secret import SecretText
from moorage.kube.client import Client
from moorage.kube.errors import Conflict, NotFound
from moorage.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from moorage.kube.tls import load_pair
from moorage.serving.certificates import Pair, is_ageing, issue, live_bundle, make_authority
from moorage.serving.connection import Application

from .admission_http import MOST
from .install import CONFIGURATION
from .serving import Listener

_log = structlog.get_logger("moorage.admission")


class CertificateSource(Protocol):
    """Where the server certificate comes from."""

    async def refresh(self) -> Pair:
        """The certificate to serve from now on, whether it is a new one or not."""
        ...


@dataclass(frozen=True, slots=True)
class Files:
    """`tls.crt` and `tls.key` in a folder, as cert-manager's Secret is mounted."""

    folder: Path

    async def refresh(self) -> Pair:
        """Raises InputError when the files cannot be read; a half-written pair is noticed when it is loaded."""
        try:
            certificate = (self.folder / "tls.crt").read_text()
            key = (self.folder / "tls.key").read_text()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", "") or "it is no text"
            raise InputError(str(self.folder), f"the certificate cannot be read: {why}") from error
        return Pair(certificate, SecretText(key))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the webhook lives: its Service, the Secret of its authority, the name of the configurations that call it."""

    namespace: str = "moorage-system"
    service: str = "moorage-webhook"
    secret: str = "moorage-webhook-ca"  # noqa: S105  a name
    extra_names: tuple[str, ...] = ()
    configuration: str = CONFIGURATION

    @property
    def names(self) -> tuple[str, ...]:
        """DNS names under which an API server may call it."""
        base = f"{self.service}.{self.namespace}.svc"
        return (base, f"{base}.cluster.local", f"{self.service}.{self.namespace}", *self.extra_names)


_PLACE = Place()


@dataclass
class OwnAuthority:
    """Our own authority, in a Secret."""

    client: Client
    place: Place = _PLACE
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _issued: Pair | None = field(default=None, init=False)
    _issuer: str = field(default="", init=False)

    async def refresh(self) -> Pair:
        """Renew what is ageing and see to the caBundle; a new certificate is served only when it is trusted."""
        authority, bundle = await self._authority()
        await self._inject(bundle)
        if self._issued and self._issuer == authority.certificate and not is_ageing(self._issued, self.now()):
            return self._issued
        self._issued, self._issuer = issue(authority, self.place.names, self.now()), authority.certificate
        return self._issued

    async def _authority(self) -> tuple[Pair, str]:
        """The authority and the bundle to trust, made or renewed when needed."""
        for _ in range(5):
            stored = await self._stored()
            pair = _pair_in(stored)
            if stored is not None and pair is not None and not is_ageing(pair, self.now()):
                return pair, _bundle_in(stored, pair, self.now())
            try:
                await self._renew(stored, pair)
            except Conflict:
                _log.info("another replica renewed the webhook authority")
        raise MoorageError(f"Secret {self.place.namespace}/{self.place.secret}", "it changes all the time")

    async def _stored(self) -> JsonObject | None:
        try:
            return await self.client.get(SECRETS, Key(self.place.namespace, self.place.secret))
        except NotFound:
            return None

    async def _renew(self, stored: JsonObject | None, before: Pair | None) -> None:
        fresh = make_authority("moorage-webhook", self.now())
        old = "" if stored is None or before is None else _bundle_in(stored, before, self.now())
        data = {"tls.crt": fresh.certificate, "tls.key": fresh.key.reveal(), "ca.crt": fresh.certificate + old}
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
        if stored is None:
            meta = {"name": self.place.secret, "namespace": self.place.namespace}
            await self.client.create(SECRETS, {"metadata": meta, "type": "kubernetes.io/tls", "data": encoded})
        else:
            await self.client.replace(SECRETS, {**stored, "data": encoded})
        _log.info("made a webhook authority", secret=self.place.secret)

    async def _inject(self, bundle: str) -> None:
        encoded = base64.b64encode(bundle.encode()).decode()
        for rt in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            with suppress(NotFound):  # webhooks may be registered later, or never
                await self._inject_into(rt, await self.client.get(rt, Key("", self.place.configuration)), encoded)

    async def _inject_into(self, rt: ResourceType, configuration: JsonObject, encoded: str) -> None:
        for _ in range(5):
            if not self._changes(configuration, encoded):
                return
            try:
                await self.client.replace(rt, configuration)
            except Conflict:
                configuration = await self.client.get(rt, key_of(configuration))
            except NotFound:
                return
            else:
                return
        raise MoorageError(f"{rt.kind} {configuration['metadata']['name']}", "it changes all the time")

    def _changes(self, configuration: JsonObject, encoded: str) -> bool:
        """Put the bundle into our webhooks of this configuration; whether that changed anything."""
        changed = False
        for webhook in configuration.get("webhooks") or ():
            called = webhook["clientConfig"]
            if self._is_ours(called) and called.get("caBundle") != encoded:
                called["caBundle"] = encoded
                changed = True
        return changed

    def _is_ours(self, called: JsonObject) -> bool:
        """By our Service, or by a URL on one of our extra names (an operator outside the cluster)."""
        service = called.get("service") or {}
        if service:
            return (service.get("namespace"), service.get("name")) == (self.place.namespace, self.place.service)
        return any(f"//{name}:" in called.get("url", "") for name in self.place.extra_names)


def _pair_in(stored: JsonObject | None) -> Pair | None:
    try:
        pair = Pair(_text(stored or {}, "tls.crt"), SecretText(_text(stored or {}, "tls.key")))
        return pair if pair.parsed and pair.key else None
    except ValueError:
        return None


def _bundle_in(stored: JsonObject, pair: Pair, now: datetime) -> str:
    return live_bundle(_text(stored, "ca.crt"), now) or pair.certificate


def _text(stored: JsonObject, name: str) -> str:
    return base64.b64decode((stored.get("data") or {}).get(name, "")).decode()


class AdmissionServer:
    """Serves webhooks over TLS and looks after its certificate every `period` seconds."""

    def __init__(self, app: Application, bind: str, source: CertificateSource, *, period: float = 10.0) -> None:
        self._source, self._period = source, period
        self._served: Pair | None = None
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        self.listener = Listener(app, bind, tls=self._context, limit=MOST)
        self.serving = False

    async def run(self) -> None:
        """Serve until cancelled."""
        while not await self.renew():  # noqa: ASYNC110  files and Secrets tell nobody when they change
            await asyncio.sleep(self._period)
        await self.listener.start()
        self.serving = True
        try:
            while True:
                await asyncio.sleep(self._period)
                await self.renew()
        finally:
            self.serving = False
            await self.listener.stop()

    async def renew(self) -> bool:
        """Take over a new certificate if there is one; False when none could be had. New connections get it.

        A pair that does not fit together is tried on a context of its own first: it never breaks the one in use.
        """
        try:
            pair = await self._source.refresh()
            if pair != self._served:
                load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pair.certificate, pair.key)
                load_pair(self._context, pair.certificate, pair.key)
                _log.info("serving a new certificate", until=str(pair.parsed.not_valid_after_utc))
                self._served = pair
        except (MoorageError, OSError, ValueError) as error:  # ssl.SSLError is an OSError
            _log.warning("no new certificate", error=str(error))
            return False
        return True
