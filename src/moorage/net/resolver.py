"""How names become addresses: Services in one-machine mode, and names that a stranger gave us.

Enters: a name, and a callable that knows the Services: `<service>.<namespace>.svc[.cluster.local]` is the Service's ClusterIP. Leaves:
addresses; any other name goes to the system's resolver. It judges no address.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

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


class SystemResolver(AbstractResolver):
    """Asks the system in a daemon thread for each name.

    A name server that never answers, which the owner of a name can arrange, holds that thread alone: not the threads by which all other
    names are resolved, and not the end of the process.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Addresses of a host.

        Raises:
            OSError: no such host.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def settle(found: list[ResolveResult] | None, error: OSError | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found or [])

        def ask() -> None:
            found, failed = None, None
            try:
                found = _asked(host, port, family)
            except OSError as error:
                failed = error
            except UnicodeError:
                failed = OSError(None, f"{host} is no host name")
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, found, failed)

        threading.Thread(target=ask, name="resolver", daemon=True).start()
        return await answer

    async def close(self) -> None:
        """Nothing is held."""


def _asked(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return [
        ResolveResult(hostname=host, host=str(address[0]), port=port, family=kind, proto=protocol, flags=flags)
        for kind, _, protocol, _, address in found
    ]
