"""The embedded API server as a process of its own, in the same shape as the real one.

Enters: a folder. Leaves: a served `Embedded` for the time of a `with`. The child is this module run as a program.
"""

from __future__ import annotations

import asyncio
import base64
import signal
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.real.ports import free_port
from tests.real.process import Command, Process, running


@dataclass(frozen=True)
class Embedded:
    """A served API as its kubeconfig describes it."""

    url: str
    token: str
    trust: ssl.SSLContext
    client: ssl.SSLContext
    kubeconfig: Path
    process: Process


def contexts(kubeconfig: Path) -> tuple[str, str, ssl.SSLContext, ssl.SSLContext]:
    """URL, token ("" when a client certificate is used), and TLS contexts without and with the client certificate."""
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    trust = ssl.create_default_context(cadata=authority)
    client = ssl.create_default_context(cadata=authority)
    if "client-certificate-data" in user:
        pair = kubeconfig.with_suffix(".pem")
        pair.touch(mode=0o600)
        pair.write_bytes(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
        client.load_cert_chain(pair)
    return cluster["server"], user.get("token", ""), trust, client


@contextmanager
def embedded(folder: Path, *, history: float = 300.0) -> Iterator[Embedded]:
    """Serve a fresh embedded API; `history` is in seconds."""
    port, kubeconfig = free_port(), folder / "embedded.kubeconfig"
    argv = [sys.executable, "-m", "tests.real.embedded", str(folder / "data"), str(port), str(kubeconfig), str(history)]
    root = Path(__file__).parents[2]
    command = Command("embedded", ["env", f"PYTHONPATH={root}", *argv], folder)
    with running(command, port=port, ready=kubeconfig.exists) as process:
        url, token, trust, client = contexts(kubeconfig)
        yield Embedded(url, token, trust, client, kubeconfig, process)


async def _serve(data: Path, port: int, kubeconfig: Path, history: float) -> None:
    from moorage.apiserver import Server

    server = Server(data, port=port, history=history, service_cidr="10.0.0.0/24")
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await server.start()
    half = kubeconfig.with_suffix(".half")
    server.kubeconfig(half)
    half.rename(kubeconfig)
    await ended.wait()
    await server.stop()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])))
