"""`moorage pocketid` when something is missing or wrong: what is said, with what to do, and the exit code of spec/cli.md."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.fakes.pocketid import API_KEY, Fake, running
from tests.real.embedded import Embedded
from tests.real.ports import free_port

from moorage.core.meta import JsonObject
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.pocketid import KINDS

INSTANCE = KINDS[0].resource


@pytest.fixture(scope="module")
def fake() -> Iterator[tuple[Fake, str]]:
    """An empty server."""
    found = Fake()
    with running(found) as url:
        yield found, url


def said(moorage: Run, *words: object, given: str = "") -> tuple[int, str]:
    """Exit code and the line on standard error."""
    done = moorage("pocketid", *words, given=given)
    assert done.stdout == ""
    return done.returncode, done.stderr.strip()


def test_an_address_and_a_key_that_cannot_be_used_are_told(moorage: Run, tmp_path: Path) -> None:
    """Exit 2; nothing is asked."""
    (tmp_path / "empty").write_text("\n")
    url = "https://id.example.org"
    for words, why in (
        (("--url", url), "--url: needs an API key"),
        (("--url", url, "--api-key-file", "none"), "none: no such file or directory"),
        (("--url", url, "--api-key-file", "empty"), "--api-key-file empty: is empty"),
        (("--url", "id.example.org", "--api-key-file", "-"), "--url id.example.org: is no http or https URL"),
        (("--url", "http://[", "--api-key-file", "-"), "--url http://[: is no http or https URL"),
        (("--url", url, "--instance", "main"), "--url: cannot stand beside --instance"),
        (("--api-key-file", "-"), "--api-key-file: belongs to --url"),
    ):
        code, line = said(moorage, "export", *words)
        assert (code, line.startswith(f"error: {why}")) == (2, True), line


def test_a_password_in_the_address_is_not_repeated(moorage: Run) -> None:
    """It belongs into a file."""
    code, line = said(
        moorage, "export", "--url", "https://me:hunter22@id.example.org", "--api-key-file", "-", given="k"
    )
    assert code == 2
    assert "hunter22" not in line


def test_a_server_that_is_down_or_refuses_the_key_is_told(moorage: Run, fake: tuple[Fake, str]) -> None:
    """Exit 3, with what to do."""
    gone = f"http://127.0.0.1:{free_port()}"
    code, line = said(moorage, "export", "--url", gone, "--api-key-file", "-", given=API_KEY)
    assert (code, line.startswith(f"error: Pocket-ID at {gone}: ")) == (3, True), line
    assert line.endswith("Check the address, and that the server runs")
    code, line = said(moorage, "export", "--url", fake[1], "--api-key-file", "-", given="another-key-0123456789")
    assert (code, line.endswith("Is the API key of this server, and still valid?")) == (3, True), line
    assert "another-key" not in line


def test_a_server_that_asks_to_slow_down_is_obeyed(moorage: Run, fake: tuple[Fake, str]) -> None:
    """429 with Retry-After: the request is sent again."""
    server, url = fake
    struck = server.faults.add("rate_limit", method="GET", path="/api/users", times=2)
    done = moorage("pocketid", "export", "--url", url, "--api-key-file", "-", given=API_KEY)
    server.faults.clear()
    assert (done.returncode, struck.struck) == (0, 2), done.stderr
    assert done.stderr.splitlines()[0] == "exported: 0 clients, 0 groups, 0 apis, 0 users"


def instance(name: str, url: str, **labels: str) -> JsonObject:
    """An instance in `default`."""
    external = {"url": url, "apiKeySecretRef": {"name": "key", "key": "token"}}
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": INSTANCE.api_version, "kind": INSTANCE.kind, "metadata": meta, "spec": {"external": external}}


def test_which_instance_is_meant_is_asked_when_it_is_not_clear(
    moorage: Run, served: Embedded, fake: tuple[Fake, str]
) -> None:
    """No kinds, none, a wrong name, no key, several, and two that no label tells apart."""
    where = ("--kubeconfig", served.kubeconfig)
    code, line = said(moorage, "orphans", *where)
    assert (code, line) == (3, "error: PocketIDInstance: the server does not serve this kind. Apply `moorage crds`")

    async def put(*objects: JsonObject) -> None:
        async with Client(load_kubeconfig(served.kubeconfig)) as client:
            for item in objects:
                await client.apply(INSTANCE if item["kind"] == INSTANCE.kind else resources.SECRETS, item)

    async def install() -> None:
        async with Client(load_kubeconfig(served.kubeconfig)) as client:
            for kind in KINDS:
                await client.apply(resources.CRDS, kind.crd())
            async with asyncio.timeout(30):
                for kind in KINDS:
                    while not await _serves(client, kind.resource.plural):  # noqa: ASYNC110
                        await asyncio.sleep(0.02)

    asyncio.run(install())
    code, line = said(moorage, "export", *where)
    assert (code, line.startswith("error: PocketIDInstance: does not exist in any namespace")) == (2, True), line
    asyncio.run(put(instance("one", fake[1], env="prod")))
    code, line = said(moorage, "export", "--instance", "two", *where)
    assert (code, line) == (
        2, "error: PocketIDInstance two: does not exist in any namespace. There are: default/one",
    )  # fmt: skip
    code, line = said(moorage, "export", *where)
    assert (code, line.startswith("error: PocketIDInstance default/one: Secret default/key has no API key")) == (
        3,
        True,
    )
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "default"}}
    asyncio.run(put({**secret, "stringData": {"token": API_KEY}}, instance("two", fake[1], env="prod")))
    code, line = said(moorage, "export", *where)
    assert (code, line.endswith("default/one, default/two. Choose with --instance and -n")) == (2, True), line
    code, line = said(moorage, "export", "--instance", "one", *where)
    assert (
        code,
        line.endswith("no label selects it alone, so no manifest could name it. Give it a label that no other one has"),
    ) == (2, True)
    asyncio.run(put(instance("two", fake[1], env="test")))
    done = moorage("pocketid", "export", "--instance", "one", *where)
    assert done.returncode == 0, done.stderr
    assert moorage("pocketid", "orphans", *where).returncode == 0
    code, line = said(moorage, "orphans", "--kind", "Keystone", *where)
    assert (code, line.startswith("error: --kind Keystone: has no counterpart in a Pocket-ID")) == (2, True), line


async def _serves(client: Client, plural: str) -> bool:
    try:
        served = await client.raw("GET", "/apis/pocketid.internal/v1alpha1")
    except Exception:  # noqa: BLE001 - not yet
        return False
    return any(item["name"] == plural for item in served["resources"])
