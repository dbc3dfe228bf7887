"""Loopback addresses for pods and Services of this machine.

Enters: uids. Leaves: an address per uid, never one that another node process on the machine holds.
Pods live in 127.96.0.0/12; the other half, 127.112.0.0/12, is the API server's to give to Services. Each node process
claims a /20 by binding a guard socket to its first address, so two nodes on one machine never meet; the claim ends with
the process.
"""

from __future__ import annotations

import errno
import socket
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from moorage.core.errors import EnvironmentError_

PODS = IPv4Network("127.96.0.0/12")
SERVICES = IPv4Network("127.112.0.0/12")
_BLOCK_PREFIX = 20
_GUARD_PORT = 9


class AddressesExhausted(EnvironmentError_):
    """No free loopback address is left."""

    code = "addresses_exhausted"


@dataclass(slots=True)
class Pool:
    """The addresses of one block; the first address is the guard's."""

    block: IPv4Network
    _guard: socket.socket | None = None
    _taken: dict[str, str] = field(default_factory=dict)
    _next: int = 1

    def take(self, uid: str) -> str:
        """The address of `uid`, the same on each call.

        Raises:
            AddressesExhausted: all are in use.
        """
        if uid in self._taken:
            return self._taken[uid]
        used = set(self._taken.values())
        size = self.block.num_addresses - 2
        for step in range(size):
            number = (self._next - 1 + step) % size + 1
            address = str(self.block[number])
            if address not in used:
                self._next = number + 1
                self._taken[uid] = address
                return address
        raise AddressesExhausted(f"block {self.block}", "all addresses are in use")

    def keep(self, uid: str, address: str) -> bool:
        """Takes over an address that `uid` has already; False when it lies outside, or is another's."""
        inside = IPv4Address(address) in self.block and IPv4Address(address) != self.block[0]
        free = self._taken.get(uid, address) == address and address not in {
            value for key, value in self._taken.items() if key != uid
        }
        if inside and free:
            self._taken[uid] = address
        return inside and free

    def give_back(self, uid: str) -> None:
        """Frees the address of `uid`."""
        self._taken.pop(uid, None)

    def close(self) -> None:
        """Ends the claim on the block."""
        if self._guard is not None:
            self._guard.close()
            self._guard = None


def claim(network: IPv4Network, memory: Path, *, keep: bool = False) -> Pool:
    """Claims a block of `network`: the one noted in `memory` if it is free, else the next free one, which is noted.

    Args:
        keep: only the noted block will do, once one is noted: its addresses are stored (ClusterIPs never change).

    Raises:
        AddressesExhausted: every block, or the one to keep, is claimed by other processes.
    """
    noted = _noted(network, memory)
    for block in [noted] if keep and noted else _candidates(network, memory, noted):
        guard = _guard(str(block[0]))
        if guard is not None:
            memory.parent.mkdir(parents=True, exist_ok=True)
            memory.write_text(f"{block}\n")
            return Pool(block, guard)
    what = f"block {noted}" if keep and noted else f"every block of {network}"
    raise AddressesExhausted(what, "claimed by another node on this machine", "Stop that one first")


def _noted(network: IPv4Network, memory: Path) -> IPv4Network | None:
    try:
        noted = IPv4Network(memory.read_text().strip())
    except (OSError, ValueError):
        return None
    return noted if noted.subnet_of(network) else None


def _candidates(network: IPv4Network, memory: Path, noted: IPv4Network | None) -> Iterable[IPv4Network]:
    """The noted block, then all, from one that the path decides: folders used in turn rarely share a block."""
    if noted is not None:
        yield noted
    blocks = list(network.subnets(new_prefix=_BLOCK_PREFIX))
    first = zlib.crc32(str(memory).encode()) % len(blocks)
    yield from blocks[first:] + blocks[:first]


def _guard(address: str) -> socket.socket | None:
    """A bound UDP socket on the discard port or, for plain users, on an agreed high port; None when it is taken."""
    for port in (_GUARD_PORT, 50096):
        guard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            guard.bind((address, port))
        except OSError as error:
            guard.close()
            if error.errno == errno.EADDRINUSE:
                return None
            if error.errno != errno.EACCES:
                raise
        else:
            return guard
    return None
