"""`python -m tests.fakes.pocketid.deployed`: the fake as the program of a pod, set up from the variables that the real server reads.

Enters: HOST, PORT, APP_URL, ENCRYPTION_KEY, STATIC_API_KEY; FAKE_POCKETID_VERSION comes with the image. Leaves: a served port until SIGTERM. What it
holds lies in `data` of the working directory, and is read with the encryption key that it was written with, or not at all.
Source: spec/pocketid.md 5.3.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import pickle
import signal
import sys
from dataclasses import fields
from pathlib import Path

from .fake import Fake
from .server import serving

DATA = Path("data/pocket-id.db")
LEAST = 16


def _key(name: str) -> str:
    value = os.environ.get(name, "")
    if len(value) < LEAST:
        sys.exit(f"{name} must be at least {LEAST} characters long")
    return value


def _seal(key: str, rows: bytes) -> bytes:
    return hmac.new(key.encode(), rows, hashlib.sha256).digest()


def load(fake: Fake, key: str) -> None:
    """Rows of the life before; SystemExit when another key wrote them."""
    if not DATA.exists():
        return
    seal, rows = DATA.read_bytes()[:32], DATA.read_bytes()[32:]
    if not hmac.compare_digest(seal, _seal(key, rows)):
        sys.exit("the data was encrypted with another key")
    before = pickle.loads(rows)
    for item in fields(before):
        getattr(fake.store, item.name).update(getattr(before, item.name))


def save(fake: Fake, key: str) -> None:
    """All rows, whole or not at all."""
    rows = pickle.dumps(fake.store)
    fresh = DATA.with_suffix(".new")
    fresh.write_bytes(_seal(key, rows) + rows)
    fresh.replace(DATA)


async def _main() -> None:
    key = _key("ENCRYPTION_KEY")
    fake = Fake(os.environ["FAKE_POCKETID_VERSION"], api_key=_key("STATIC_API_KEY"), app_url=os.environ["APP_URL"])
    load(fake, key)
    save(fake, key)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving(fake, int(os.environ["PORT"]), os.environ["HOST"]):
        await stop.wait()
    save(fake, key)


if __name__ == "__main__":
    asyncio.run(_main())
