"""One HTTP listener inside our own event loop.

Enters: an application and an address. Leaves: a running server with its port. It binds before it starts, so that a taken port is an
error and not an exit.
"""

from __future__ import annotations

import socket
import ssl

from moorage.core.errors import EnvironmentError_, InputError
from moorage.serving import listener
from moorage.serving.connection import BODY_LIMIT, Application, Shared

_GRACE = 5.0


def parse_bind(bind: str) -> tuple[str, int]:
    """Host and port of `0.0.0.0:8080`, `[::]:8080` or `:8080`.

    Raises:
        InputError: it is no address.
    """
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(bind, "not an address", "Write it like 127.0.0.1:8080")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104  what an empty host means


class Listener:
    """A listener; `port` is known after `start`.

    Args:
        limit: bytes that a body may have.
    """

    def __init__(
        self, app: Application, bind: str, *, tls: ssl.SSLContext | None = None, limit: int = BODY_LIMIT
    ) -> None:
        self.host, self.port = parse_bind(bind)
        self._listener = listener.Listener(Shared(app, limit=limit), tls)

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            EnvironmentError_: the address cannot be bound.
        """
        self.port = await self._listener.listen(self._bind())

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self.host, self.port))
        except OSError as error:
            sock.close()
            raise EnvironmentError_(f"{self.host}:{self.port}", f"cannot listen: {error.strerror}") from error
        return sock

    async def stop(self) -> None:
        """Answer what is under way, for a few seconds at most, then close."""
        await self._listener.close(_GRACE)
