"""A server in the test's own event loop, and a plain client that speaks JSON to it."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from moorage.apiserver import Server
from moorage.apiserver.store import Store

MERGE = "application/merge-patch+json"
NAMESPACED = "/api/v1/namespaces/default"
CONFIG_MAPS = f"{NAMESPACED}/configmaps"


@dataclass
class Answer:
    """Status, body and headers of an answer."""

    status: int
    body: Any
    headers: Any


class Client:
    """Asks one server, as the administrator or as somebody else."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.kubeconfig = folder / "kubeconfig"
        server.kubeconfig(self.kubeconfig)
        config = json.loads(self.kubeconfig.read_text())
        self.authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        user = config["users"][0]["user"]
        pair = folder / "admin.pem"
        pair.write_bytes(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
        context = ssl.create_default_context(cadata=self.authority)
        context.load_cert_chain(pair)
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0))

    async def ask(
        self, method: str, path: str, body: Any = None, *, media: str = "application/json", **headers: str
    ) -> Answer:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent["Content-Type"] = media
        async with self.session.request(
            method, self.server.url + path, data=data and io.BytesIO(data), headers=sent
        ) as answer:
            raw = await answer.read()
            kind = answer.content_type
            return Answer(answer.status, json.loads(raw) if kind == "application/json" else raw, answer.headers)

    async def create(self, path: str, body: Any) -> Any:
        answer = await self.ask("POST", path, body)
        assert answer.status == 201, answer.body
        return answer.body

    async def events(self, path: str, number: int) -> list[Any]:
        """The first `number` events of a watch."""
        found: list[Any] = []
        async with self.session.get(self.server.url + path) as answer:
            assert answer.status == 200, await answer.text()
            async for line in answer.content:
                found.append(json.loads(line))
                if len(found) == number:
                    break
            answer.close()
        return found

    async def until(self, path: str, holds: Any) -> Answer:
        """Ask until the answer satisfies `holds`."""
        async with asyncio.timeout(30):
            while True:
                answer = await self.ask("GET", path)
                if holds(answer):
                    return answer
                await asyncio.sleep(0.02)


async def limit_pages(store: Store, pages: int) -> None:
    """Fill the disk: let the store's file grow to this many pages at most (0: make room again)."""
    await store._run(lambda connection: connection.execute(f"PRAGMA max_page_count={pages or 4294967294}"))


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def crd(group: str = "example.test", plural: str = "things", **version: Any) -> dict[str, Any]:
    """A CRD of kind Thing with a free specification and a status."""
    kind = plural[:-1].capitalize()
    schema = {
        "type": "object",
        "properties": {
            name: {"type": "object", "x-kubernetes-preserve-unknown-fields": True} for name in ("spec", "status")
        },
    }
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    first["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{**first, **version}],
        },
    }


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    server = Server(tmp_path / "data")
    await server.start()
    client = Client(server, tmp_path)
    yield client
    await client.session.close()
    await server.stop()
