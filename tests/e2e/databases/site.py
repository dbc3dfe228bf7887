"""A Keystone on a database server, and clients that never stop to log in.

Enters: a served database, a directory. Leaves: manifests, and counts of what logins answered. It must not know what a test expects.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e import example
from tests.e2e.cloud import KEYSTONE, Cloud, Login, holds
from tests.real.database import NAME, USER, Database
from tests.real.directory import Directory

from moorage.core.meta import JsonObject
from moorage.kube import resources

DB_SECRET = "keystone-database"
PACE = 0.2
"""Seconds between the beginnings of two logins of one client at least: a pod that goes or comes is met by some, and the processors are there for it, too."""


def on_server(database: Database, directory: Directory, replicas: int) -> list[JsonObject]:
    """The example with its Keystone on a database server, `replicas` pods, and a NetworkPolicy."""
    found = example.manifests(directory)
    spec = example.of_kind(found, "Keystone")["spec"]
    spec["database"] = {
        "engine": database.engine, "host": "127.0.0.1", "port": database.port, "database": NAME,
        "secretRef": {"name": DB_SECRET},
    }  # fmt: skip
    spec["deployment"] = {"replicas": replicas}
    spec |= example.QUICK
    spec["networkPolicy"] = {"ingress": [{"namespaceSelector": {"matchLabels": {"clients": "yes"}}}]}
    found.insert(1, credentials(database.password))
    return found


def credentials(password: str) -> JsonObject:
    """The Secret of the database account."""
    meta = {"name": DB_SECRET, "namespace": "openstack"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "stringData": {"username": USER, "password": password},
    }


@dataclass
class Load:
    """Logins made one after another, by each client for itself: statuses by name, and the first failures whole."""

    statuses: dict[str, Counter[int]]
    failures: list[str] = field(default_factory=list)
    _noted: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, name: str, found: Login, good: int) -> None:
        self.statuses[name][found.status] += 1
        if found.status != good and len(self.failures) < 5:
            self.failures.append(f"{name}: {found.status} {found.body}")
        self._noted.set()

    @property
    def total(self) -> int:
        """Logins that were answered, or not."""
        return sum(counter.total() for counter in self.statuses.values())

    async def reaches(self, each: int) -> None:
        """Wait until every client has logged in that many times."""
        while any(counter.total() < each for counter in self.statuses.values()):
            self._noted.clear()
            await self._noted.wait()

    def assert_flawless(self) -> None:
        """Every client logged in, and no login failed."""
        assert not self.failures, (self.failures, self.statuses)
        assert all(counter[201] for counter in self.statuses.values()), self.statuses


@contextlib.asynccontextmanager
async def load(clients: dict[str, Callable[[], Awaitable[Login]]]) -> AsyncIterator[Load]:
    """Each client logs in again when it has its answer, five times a second at most, for as long as the block runs; the last answers are awaited."""
    noted, ended, clock = Load({name: Counter() for name in clients}), asyncio.Event(), asyncio.get_running_loop().time

    async def loop(name: str, client: Callable[[], Awaitable[Login]]) -> None:
        while not ended.is_set():
            next_one = clock() + PACE
            noted.note(name, await client(), 201)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), next_one - clock())

    tasks = [asyncio.create_task(loop(name, client)) for name, client in clients.items()]
    try:
        yield noted
    finally:
        ended.set()
        await asyncio.gather(*tasks)


async def rollout(cloud: Cloud, since: int) -> None:
    """Wait until a rollout later than revision `since` has begun, and Keystone is Ready again."""
    mark = "deployment.kubernetes.io/revision"
    await cloud.until(resources.DEPLOYMENTS, "keystone", lambda obj: int(obj["metadata"]["annotations"][mark]) > since)
    await cloud.until(KEYSTONE, "keystone", holds("Ready"))


def people(cloud: Cloud, **more: Any) -> dict[str, Callable[[], Awaitable[Login]]]:
    """The administrator, whose password is in the database, and a user of the directory."""
    return {"administrator": cloud.administrator_of_a_project, "leela": lambda: cloud.login("leela", "leela"), **more}
