"""A private single-member etcd.

Enters: a folder. Leaves: a served `Etcd` for the time of a `with`. Built by tools/conformance.py; Debian's 3.4 lacks progress
requests, which watches with bookmarks need.
"""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

from tests.real.ports import free_port
from tests.real.process import Command, Process, running

CACHE = Path(os.environ.get("MOORAGE_CACHE", Path.home() / ".cache" / "moorage"))
BINARY = CACHE / "etcd-3.5.21" / "bin" / "etcd"


class NotBuilt(Exception):
    """A program of tools/conformance.py is missing."""


def built(binary: Path) -> Path:
    """The path, when the program is there; raises NotBuilt with the command that builds it."""
    if not binary.exists():
        raise NotBuilt(f"{binary} is missing. Run `python3 tools/conformance.py` once")
    return binary


@dataclass(frozen=True)
class Etcd:
    """A running etcd: its client URL and its process."""

    url: str
    process: Process


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return b'"true"' in answer.read()
    except (URLError, OSError):
        return False


@contextmanager
def etcd(folder: Path, *, fsync: bool = False) -> Iterator[Etcd]:
    """Serve an empty etcd from `folder`; `fsync` makes its writes durable, as in production."""
    client, peer = free_port(), free_port()
    url, peer_url = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    argv = [
        str(built(BINARY)),
        *("--data-dir", str(folder / "etcd")),
        *("--listen-client-urls", url, "--advertise-client-urls", url),
        *("--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url),
        *("--initial-cluster", f"default={peer_url}"),
        *(() if fsync else ("--unsafe-no-fsync",)),
    ]
    with running(Command("etcd", argv, folder), port=client, ready=lambda: _healthy(url)) as process:
        yield Etcd(url, process)
