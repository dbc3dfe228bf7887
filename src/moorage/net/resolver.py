"""Names of Services in one-machine mode: `<service>.<namespace>.svc[.cluster.local]` is the Service's ClusterIP.

Enters: a callable that knows the Services. Leaves: addresses; any other name goes to the system's resolver.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

Lookup = Callable[[str, str], str | None]
"""(namespace, service) to its ClusterIP; None when there is no such Service."""

_SERVICE = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?\.?")


class ServiceResolver(AbstractResolver):
    """Resolves Services through `lookup` and everything else as the system does."""

    def __init__(self, lookup: Lookup, fallback: AbstractResolver | None = None) -> None:
        self._lookup, self._fallback = lookup, fallback or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of a host.

        Raises:
            OSError: no such Service or host.
        """
        found = _SERVICE.fullmatch(host)
        if found is None:
            return await self._fallback.resolve(host, port, family)
        address = self._lookup(found[2], found[1])
        if address is None:
            raise OSError(None, f"Service {found[1]} does not exist in namespace {found[2]}")
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Close the system's resolver."""
        await self._fallback.close()
