"""Plain HTTPS to one API server: requests as they are written, answers as they come.

Enters: method, path, headers, bytes. Leaves: `Answer`, or an open `Stream` of watch events. It must not interpret.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 20.0
"""Seconds that any answer may take."""

QUIET = 15.0
"""Seconds after which a watch that says nothing counts as silent."""


@dataclass(frozen=True)
class Access:
    """How a test reaches a server as its administrator."""

    url: str
    trust: ssl.SSLContext
    token: str = ""
    client: ssl.SSLContext | None = None

    def connect(self, *, as_admin: bool) -> http.client.HTTPSConnection:
        context = self.client if as_admin and self.client else self.trust
        address = urlsplit(self.url)
        return http.client.HTTPSConnection(address.hostname or "", address.port, context=context, timeout=PATIENCE)


@dataclass(frozen=True)
class Request:
    """One request; `token` "" is the administrator, None is nobody."""

    method: str
    path: str
    headers: Mapping[str, str | list[str]]
    body: bytes | None = None
    token: str | None = ""


@dataclass(frozen=True)
class Answer:
    """Status, the headers that the suite looks at, and the body."""

    status: int
    content_type: str
    warnings: tuple[str, ...]
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        """JSON where it is JSON, the list of events of a finished watch, else the text."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self._lines()

    def _lines(self) -> Any:
        try:
            return [json.loads(line) for line in self.text.splitlines()]
        except ValueError:
            return self.text


class Stream:
    """A watch that is open."""

    def __init__(self, connection: http.client.HTTPSConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response
        if connection.sock:
            connection.sock.settimeout(QUIET)

    def events(self, count: int | None) -> list[Any]:
        """The next `count` events, or all up to the end; silence ends with the word `quiet`."""
        found: list[Any] = []
        while count is None or len(found) < count:
            try:
                line = self._response.readline()
            except TimeoutError:
                return [*found, "quiet"]
            if not line:
                return [*found, "closed"]
            found.append(json.loads(line))
        return found

    def close(self) -> None:
        self._connection.close()


class Wire:
    """A client with one kept connection for each identity."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._kept: dict[bool, http.client.HTTPSConnection] = {}

    def _send(self, connection: http.client.HTTPSConnection, request: Request) -> http.client.HTTPResponse:
        token = self._access.token if request.token == "" else request.token
        connection.putrequest(request.method, request.path, skip_accept_encoding=True)
        headers: dict[str, str | list[str]] = {"User-Agent": "conformance", "Accept": "application/json"}
        headers |= request.headers
        if token:
            headers["Authorization"] = f"Bearer {token}"
        for name, value in headers.items():
            for one in value if isinstance(value, list) else [value]:
                connection.putheader(name, one)
        if request.body is not None:
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        return connection.getresponse()

    def ask(self, request: Request) -> Answer:
        """Send and read the whole answer; a kept connection that the server closed is opened again once."""
        admin = request.token == ""
        for attempt in (1, 2):
            connection = self._kept.pop(admin, None) or self._access.connect(as_admin=admin)
            try:
                response = self._send(connection, request)
                text = response.read().decode(errors="replace")
                break
            except (http.client.HTTPException, ConnectionError):
                connection.close()
                if attempt == 2:
                    raise
        if not response.will_close:
            self._kept[admin] = connection
        return Answer(
            response.status,
            response.headers.get("Content-Type", "").split(";")[0],
            tuple(response.headers.get_all("Warning", [])),
            {name.lower(): value for name, value in response.headers.items()},
            text,
        )

    def open(self, request: Request) -> Stream | Answer:
        """Open a watch; an answer other than 200 comes back whole."""
        connection = self._access.connect(as_admin=request.token == "")
        response = self._send(connection, request)
        if response.status == 200:
            return Stream(connection, response)
        text = response.read().decode(errors="replace")
        connection.close()
        return Answer(response.status, response.headers.get("Content-Type", ""), (), {}, text)

    def close(self) -> None:
        for connection in self._kept.values():
            connection.close()
