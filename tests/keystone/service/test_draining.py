"""The preStop hook of a Keystone behind a sidecar: when it takes the sidecar for gone."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

from tests.keystone.service.given import keystone

from moorage.keystone.service import draining

HERE = {"POD_IP": "127.0.0.1", "POD_DRAINED": "1"}
BOUND = 2
"""Seconds that the hook waits at most, where it must not end before."""


def hook(port: int, bound: int) -> float:
    """Seconds that it lasts."""
    argv = draining.behind(keystone().spec, port)
    began = time.monotonic()
    subprocess.run([sys.executable, *argv[1:-3], "0", str(bound), str(port)], env=HERE, check=True, timeout=60)
    return time.monotonic() - began


def test_a_sidecar_whose_queue_is_full_has_not_ended() -> None:
    """It listens, and answers nobody until it has the time: just then Keystone must not go."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as busy:
        address = busy.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        try:
            assert hook(address[1], BOUND) >= BOUND
        finally:
            for one in waiting:
                one.close()


def test_a_sidecar_that_never_listened_is_not_waited_for() -> None:
    """Its pod is ended before it has begun; the bound of ten minutes is never reached."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    hook(port, 600)
