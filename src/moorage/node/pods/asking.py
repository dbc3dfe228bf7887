"""One attempt of a probe or hook: exec, httpGet, tcpSocket.

Enters: a handler as a pod spec writes it, the pod's address, a run. Leaves: an `Answer`; it never raises for a failure.
It must not follow redirects to other hosts, nor trust or check certificates: kubelets do neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from moorage.core.errors import MoorageError
from moorage.core.meta import JsonObject
from moorage.node.pods.container import Run
from moorage.node.pods.inside import run_inside
from moorage.node.pods.probes import Answer

_BODY_LIMIT = 10 * 1024


def named_ports(container: JsonObject) -> dict[str, int]:
    """The ports of a container that have names."""
    return {item["name"]: item["containerPort"] for item in container.get("ports") or () if item.get("name")}


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks one container. `ports`: its named ports; `more`: further variables of commands."""

    pod_ip: str
    ports: Mapping[str, int]
    run: Run
    more: Mapping[str, str] = field(default_factory=dict)

    async def __call__(self, probe: JsonObject) -> Answer:
        """One attempt of a probe within its own timeout."""
        return await self.attempt(probe, float(probe.get("timeoutSeconds", 1)))

    async def attempt(self, handler: JsonObject, timeout: float) -> Answer:
        """One attempt of any handler."""
        try:
            async with asyncio.timeout(timeout):
                return await self._ask(handler, timeout)
        except TimeoutError:
            return Answer(False, f"no answer within {timeout:g}s")
        except (OSError, MoorageError) as error:
            return Answer(False, str(error))

    async def _ask(self, handler: JsonObject, timeout: float) -> Answer:
        if part := handler.get("exec"):
            ran = await run_inside(self.run, part["command"], timeout, self.more)
            return Answer(ran.code == 0, ran.output.strip() or f"exit code {ran.code}")
        if part := handler.get("httpGet"):
            return await self._http(part)
        if part := handler.get("tcpSocket"):
            _, writer = await asyncio.open_connection(part.get("host") or self.pod_ip, self._port(part["port"]))
            await _closed(writer)
            return Answer(True)
        if part := handler.get("sleep"):
            await asyncio.sleep(part["seconds"])
            return Answer(True)
        return Answer(False, f"handler {', '.join(handler)} is not served here")

    def _port(self, port: int | str) -> int:
        if isinstance(port, int) or port.isdecimal():
            return int(port)
        if port not in self.ports:
            raise OSError(f"couldn't find port: {port!r}")
        return self.ports[port]

    async def _http(self, part: JsonObject) -> Answer:
        host, port = part.get("host") or self.pod_ip, self._port(part["port"])
        tls = _any_certificate() if part.get("scheme", "HTTP").upper() == "HTTPS" else None
        reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        try:
            writer.write(_request(part, host, port))
            await writer.drain()
            status = await _status_of(reader)
        finally:
            await _closed(writer)
        return Answer(200 <= status < 400, f"HTTP probe failed with statuscode: {status}")


def _request(part: JsonObject, host: str, port: int) -> bytes:
    headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/moorage", "Accept": "*/*", "Connection": "close"}
    for header in part.get("httpHeaders") or ():
        headers[header["name"].title()] = header["value"]
    path = part.get("path") or "/"
    lines = [f"GET {path if path.startswith('/') else '/' + path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", errors="replace")


async def _status_of(reader: asyncio.StreamReader) -> int:
    line = await reader.readline()
    words = line.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise OSError("the answer is not HTTP")
    with contextlib.suppress(ConnectionError):
        await reader.read(_BODY_LIMIT)
    return int(words[1])


def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
