"""Looks for secrets and open doors: in everything that a running machine says, shows or listens on.

Enters: a Machine, a Cloud. Leaves: texts by place, secret values by name, addresses. It must not print what it finds: a place
and the name of a secret are enough.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import tarfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

from tests.e2e.cloud import Cloud
from tests.e2e.one_machine.machine import Machine, command_line
from tests.real.ports import children

from moorage.core.meta import JsonObject, ResourceType
from moorage.kube import resources
from moorage.kube.transport import Request
from moorage.kube.watch import text_lines

PERIOD = 0.1
LOOKS = 100
"""Ten seconds, in which a supervisor has long become what it supervises."""
SHORTEST = 6


class Arguments(threading.Thread):
    """Collects the arguments of the machine's process, of its pods, and of all their descendants while it runs.

    A process is looked at `LOOKS` times from when it is first seen, which is when it becomes the program that it stays: who reads all of them all the
    time takes a tenth of a processor from those that are watched.
    """

    def __init__(self, up: Machine) -> None:
        super().__init__(daemon=True)
        self.seen: set[str] = set()
        self._up, self._over = up, threading.Event()
        self._looked: Counter[int] = Counter()
        self._ours: set[int] = set()

    def run(self) -> None:
        while not self._over.wait(PERIOD):
            self._look()

    def _look(self) -> None:
        there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        self._looked = Counter({pid: count for pid, count in self._looked.items() if pid in there})
        self._ours &= there
        if self._up.process:
            self._ours.add(self._up.process.pid)
        for pid in sorted(there):  # a parent mostly comes before its child; where it does not, the next look finds it
            if self._looked[pid] < LOOKS:
                self._looked[pid] += 1
                words = command_line(pid)
                if pid in self._ours or str(self._up.data / "node" / "pods") in words or _parent(pid) in self._ours:
                    self._ours.add(pid)
                    self.seen.add(words)

    def end(self) -> None:
        self._over.set()
        self.join()


def _parent(pid: int) -> int:
    """The process that a process is a child of; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def files(up: Machine) -> Iterator[tuple[str, str]]:
    """Logs of the machine, its pods, its audit log."""
    places = [
        *up.logs,
        *up.data.glob("audit.log*"),
        *(path for path in (up.data / "logs").rglob("*") if path.is_file()),
    ]
    for path in places:
        yield str(path), path.read_text(errors="replace")


async def objects(site: Cloud) -> list[JsonObject]:
    """Every object that the API serves, the data of Secrets left out."""
    found = []
    for rt in await _served(site):
        for item in (await site.client.list(rt)).items:
            if item["kind"] == "Secret":
                item = {key: value for key, value in item.items() if key != "data"}
            found.append(item)
    return found


async def _served(site: Cloud) -> list[ResourceType]:
    groups = ["/api/v1"]
    for group in (await site.client.raw("GET", "/apis"))["groups"]:
        groups += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    found = []
    for path in groups:
        listing = await site.client.raw("GET", path)
        group, _, version = listing["groupVersion"].rpartition("/")
        found += [
            ResourceType(group, version, item["kind"], item["name"], item["namespaced"])
            for item in listing["resources"]
            if "list" in item["verbs"] and "/" not in item["name"]
        ]
    return found


async def metrics(site: Cloud) -> str:
    """What /metrics of the API server says."""
    asked = Request("GET", "/metrics", "metrics", accept="text/plain")
    return "\n".join([line async for line in text_lines(site.client._transport, asked)])


def bundle(path: Path) -> Iterator[tuple[str, str]]:
    """The files of a support bundle."""
    with tarfile.open(path) as archive:
        for entry in archive:
            opened = archive.extractfile(entry)
            if opened is not None:
                yield entry.name, opened.read().decode(errors="replace")


async def secrets(site: Cloud) -> dict[str, str]:
    """Secret values by `<Secret>/<key>`: keys, passwords, domain files' passwords; not names and addresses."""
    harmless = {"username", "ca.crt", "tls.crt", "namespace", "entityID"}
    public = (".xml", ".provider", ".digest", "ca.pem", "cert.pem", "bundle.pem", "httpd-base.conf")
    found = {}
    for item in (await site.client.list(resources.SECRETS)).items:
        for key, value in (item.get("data") or {}).items():
            text = base64.b64decode(value).decode(errors="replace").strip()
            name = f"{item['metadata']['name']}/{key}"
            if key.endswith(public):
                continue
            if key.endswith(".conf"):
                lines = [line for line in text.splitlines() if line.startswith(("password", "OIDCCryptoPassphrase"))]
                for line in lines[:1]:
                    found[name] = line.partition(" = ")[2] or line.partition(" ")[2].strip('"')
            elif key not in harmless and len(text) >= SHORTEST and not text.startswith("sqlite:"):
                found[name] = text
    return found


def leaks(texts: Iterable[tuple[str, str]], values: Mapping[str, str]) -> list[str]:
    """`<place>: <name of the secret>` for each secret that stands in a text, plain, base64 or percent-encoded."""
    forms = {
        name: {value, json.dumps(value)[1:-1], base64.b64encode(value.encode()).decode(), quote(value, safe="")}
        for name, value in values.items()
    }
    return [
        f"{place}: {name}"
        for place, text in texts
        for name, variants in forms.items()
        if any(variant in text for variant in variants)
    ]


def family(pids: Iterable[int]) -> list[int]:
    """Processes and all their descendants."""
    members = list(pids)
    for member in members:
        members += [child for child in children(member) if child not in members]
    return members


def listening(pids: Iterable[int]) -> set[str]:
    """Addresses on which these processes take connections or datagrams."""
    inodes = set()
    for pid in pids:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
    return {address for table in ("tcp", "tcp6", "udp", "udp6") for address in _bound(table, inodes)}


def _bound(table: str, inodes: set[str]) -> Iterator[str]:
    for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
        cells = line.split()
        if cells[9] in inodes and (cells[3] == "0A" or (table.startswith("udp") and cells[3] == "07")):
            yield _address(cells[1].rpartition(":")[0])


def _address(text: str) -> str:
    words = b"".join(bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8))
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, words)


def is_loopback(address: str) -> bool:
    """127.0.0.0/8, ::1, and the first in its IPv6 form."""
    found = ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback
