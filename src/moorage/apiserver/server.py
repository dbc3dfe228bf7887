"""The embedded API server as one object: start, stop, kubeconfig.

Enters: a data folder. Leaves: a Kubernetes-compatible HTTPS endpoint. It must not know controllers or nodes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import structlog

from moorage.apiserver.access import Access
from moorage.apiserver.addresses import Addresses
from moorage.apiserver.admission import Webhooks
from moorage.apiserver.aggregation import Aggregation
from moorage.apiserver.api import Api
from moorage.apiserver.app import App
from moorage.apiserver.audit import Audit
from moorage.apiserver.auth import Authenticator
from moorage.apiserver.crds import Definitions
from moorage.apiserver.gc import Collector
from moorage.apiserver.http import Listener
from moorage.apiserver.hub import Hub
from moorage.apiserver.namespaces import Namespaces
from moorage.apiserver.pages import Pages
from moorage.apiserver.registry import Registry
from moorage.apiserver.reserve import Reserve
from moorage.apiserver.reviews import Reviews
from moorage.apiserver.store import WriteRefused
from moorage.apiserver.tls import ensure_pki, signing_key, write_private
from moorage.apiserver.tokens import Tokens
from moorage.apiserver.ttl import Expiry
from moorage.apiserver.webhook import Caller
from moorage.core.meta import JsonObject

Handler = Callable[[JsonObject], Awaitable[JsonObject]]
_LEAST_REVISIONS = 10_000
_SWEEP = 5.0
_SCARCE = 1024 * 1024
"""Bytes below which a disk counts as full: programs that need a page more fail by then."""
log = structlog.get_logger(__name__)


class Server:
    """One embedded API server.

    Args:
        data_dir: holds the store, certificates, audit log and pod logs.
        port: 0 takes a free one.
        history: seconds for which old revisions can be watched and listed; 10,000 revisions are always kept.
        in_process: AdmissionReview handlers by webhook path, for the service moorage-system/moorage-webhook.
        service_cidr: where ClusterIPs are taken from.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        history: float = 300.0,
        in_process: Mapping[str, Handler] | None = None,
        service_cidr: str = "127.112.0.0/16",
    ) -> None:
        self._dir, self._host, self._port = data_dir, host, port
        self._history, self._in_process, self._cidr = history, dict(in_process or {}), service_cidr
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = "starting"

    async def start(self) -> None:
        """Open the store and serve.

        Raises:
            StorageError: the data folder cannot be used.
        """
        _own(self._dir)
        self._pki = ensure_pki(
            self._dir / "pki", (self._host, "127.0.0.1", "localhost", "kubernetes.default.svc", "kubernetes")
        )
        self._reserve = Reserve(self._dir / "store.reserve")
        self.hub = Hub(self._dir / "store.db")
        self.hub.open()
        self.app = self._assemble()
        self._listener = Listener(self.app, self._pki.server_context())
        self._port = await self._listener.open(self._host, self._port)
        await self._namespaces.bootstrap()
        await self._access.bootstrap(self.api)
        workers = (
            self._definitions,
            self._namespaces,
            self._collector,
            Expiry(self.api),
            Aggregation(self.api, self._access),
        )
        for worker in workers:
            self._begin(worker.run())
        self._begin(self._sweep())
        self._ready = ""

    def _assemble(self) -> App:
        """All parts, wired; nothing runs yet."""
        registry = Registry()
        tokens = Tokens(signing_key(self._dir / "pki"), self.hub, lambda: datetime.now(UTC))
        self._access = Access(self.hub)
        self.api = Api(
            self.hub,
            registry,
            self._dir,
            tokens,
            Reviews(tokens, self._access),
            Webhooks(self.hub, registry, Caller(self.hub, self._in_process)),
            Addresses(self.hub, self._cidr).allocate,
            self._access.check_escalation,
        )
        self._definitions = Definitions(self.api)
        self._namespaces = Namespaces(self.api, self._pki.authority.certificate)
        self._collector = Collector(self.api)
        self._definitions.load()
        self._collector.load()
        self._audit = Audit(self._dir / "audit.log")
        pages = Pages(self.hub, registry, lambda: self._ready, self._disk_full)
        return App(self.api, Authenticator(tokens), self._access, pages, self._audit)

    def _begin(self, work: Awaitable[None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))

    async def stop(self) -> None:
        """End watches, finish requests, close the store."""
        self._ready = "stopping"
        for watcher in list(self.api.watchers):
            watcher.end()
        await self._listener.close(5.0)
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
        self.api.aside.close()
        await asyncio.to_thread(self.hub.close)
        self._audit.close()

    @property
    def url(self) -> str:
        """Where the server is reached."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"https://{host}:{self._port}"

    def kubeconfig(self, path: Path) -> None:
        """Write the administrator's kubeconfig, readable by its owner only."""
        cluster = {"server": self.url, "certificate-authority-data": self._data("ca.crt")}
        user = {"client-certificate-data": self._data("admin.crt"), "client-key-data": self._data("admin.key")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "moorage", "cluster": cluster}],
            "users": [{"name": "moorage-admin", "user": user}],
            "contexts": [{"name": "moorage", "context": {"cluster": "moorage", "user": "moorage-admin"}}],
            "current-context": "moorage",
        }
        write_private(path, json.dumps(config, indent=1).encode())

    def _data(self, name: str) -> str:
        return base64.b64encode(self._pki.path(name).read_bytes()).decode()

    async def _sweep(self) -> None:
        """Compact the log now and then."""
        while True:
            await asyncio.sleep(_SWEEP)
            try:
                await self.relieve()
                await self.compact()
            except (WriteRefused, OSError) as error:
                log.warning("compaction_failed", why=str(error))

    async def relieve(self) -> None:
        """On a full disk give up the reserve and all history, so that deleting works; take the reserve again when there is room.

        Raises:
            WriteRefused: the disk is too full for that.
        """
        if not self.hub.store.full:
            self._reserve.keep()
            return
        self._reserve.give()
        await self.hub.store.compact(self.hub.revision)
        log.warning("disk_full", what="history was given up to make room: watches list again, deleting works")

    def _disk_full(self) -> bool:
        """A write was refused for it, or not even our reserve would find room now."""
        found = os.statvfs(self._dir)
        return self.hub.store.full or found.f_bavail * found.f_frsize < _SCARCE

    async def compact(self) -> None:
        """Forget revisions that are older than the history and beyond the least number kept."""
        old = await self.hub.store.revision_at(datetime.now(UTC).timestamp() - self._history)
        target = min(old, self.hub.revision - _LEAST_REVISIONS)
        if target > self.hub.store.compacted + _LEAST_REVISIONS // 10:
            await self.hub.store.compact(target)


def _own(folder: Path) -> None:
    """Make the data folder, or take one that exists, for its owner alone; so is the store, also one of an earlier day."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    store = folder / "store.db"
    os.close(os.open(store, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for path in folder.glob("store.db*"):
        path.chmod(0o600)
