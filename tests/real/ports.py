"""Free loopback ports, and proof that a port is held by the process that we started.

Enters: addresses, pids. Leaves: numbers and facts of this machine's /proc. It must not talk to anything on a port.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from pathlib import Path


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port that nobody listens on now; another process may take it, so check with `holds` after the start."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def free_address(port: int) -> str:
    """A loopback address on which this port is free: for servers whose port is fixed."""
    for _ in range(100):
        address = f"127.77.{random.randrange(256)}.{random.randrange(1, 255)}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, port))
            return address
    raise OSError(f"port {port} is taken everywhere")


def _listening(port: int) -> set[str]:
    """Socket inodes that listen on the port, over both address families."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and int(cells[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(cells[9])
    return inodes


def children(pid: int) -> list[int]:
    """The direct children of a process; none when it has ended."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    for task in tasks:
        try:
            found += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
        except OSError:
            continue
    return found


def _family(pid: int) -> list[int]:
    """The process and its descendants."""
    members = [pid]
    for member in members:
        members += children(member)
    return members


def holds(pid: int, port: int) -> bool:
    """Whether the process, or a child of it, is the one that listens on the port."""
    inodes = {f"socket:[{inode}]" for inode in _listening(port)}
    for member in _family(pid):
        try:
            entries = os.listdir(f"/proc/{member}/fd")
            if any(os.readlink(f"/proc/{member}/fd/{entry}") in inodes for entry in entries):
                return True
        except OSError:
            continue
    return False
