"""A real Keystone 30 for a test, out of the packages of our own local image, which is built once when it is missing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.ports import free_port
from tests.real.process import Command, running

import moorage.keystone.service
from moorage.node.images.store import ImageStore, Recipe, default_cache

PASSWORD = "admin-password"
PROGRAM = Path(__file__).with_name("keystone_process.py")
RECIPE = Path(moorage.keystone.service.__file__).with_name("image")


@dataclass(frozen=True)
class RealKeystone:
    """A served Keystone; `domains` is its domain_config_dir, read when it starts."""

    url: str
    domains: Path


def packages() -> str:
    """PYTHONPATH of Keystone's packages."""
    store = ImageStore((Recipe(("moorage/keystone",), RECIPE),), default_cache(), say=lambda _line: None)
    with ThreadPoolExecutor(1) as aside:  # a test's own loop may be running here
        root = aside.submit(asyncio.run, store.prepare("moorage/keystone")).result()
    folders = ("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages")
    return ":".join(str(root.source(folder)) for folder in folders)


@contextmanager
def real_keystone(folder: Path, path: str) -> Iterator[RealKeystone]:
    """Serve for the time of a `with`; the same folder again is the same Keystone, started anew."""
    port = free_port()
    argv = ["/usr/bin/python3.11", str(PROGRAM), str(folder), str(port)]
    env = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    with running(Command("keystone", argv, folder, env), port=port, limit=120):
        yield RealKeystone(f"http://127.0.0.1:{port}/v3", folder / "domains")
