"""Paths that are no resources: version, health, metrics, OpenAPI, index."""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from moorage.apiserver import openapiproto
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Hub, encode
from moorage.apiserver.openapi import openapi_v2, openapi_v3, openapi_v3_index
from moorage.apiserver.registry import Registry
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType

MAJOR, MINOR, PATCH = "1", "36", "3"
DISK = "/readyz/disk"
"""Whether the disk of the data folder has room; `moorage status` asks."""
_FULL = "the disk of the data folder is full: writes and pods that write there fail, new logins among them; free space on it"
_DOCUMENTS = 8
_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0)


def _v2_in_protobuf(types: Sequence[ServedType]) -> bytes:
    return openapiproto.encode_document(openapi_v2(types))


class Pages:
    """Answers for the paths that the registry does not know.

    Args:
        ready: tells why the server is not ready; empty when it is.
        disk_full: whether the data folder, in which the pods of this machine write too, has no room. The server stays ready: it can be read.
    """

    def __init__(self, hub: Hub, registry: Registry, ready: Callable[[], str], disk_full: Callable[[], bool]) -> None:
        self._hub, self._registry, self._ready, self._disk_full = hub, registry, ready, disk_full
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, int]] = Counter()
        self._spent: Counter[str] = Counter()
        self._documents: dict[str, tuple[int, bytes]] = {}

    def open(self, path: str, query: Mapping[str, str]) -> Response:
        """Health and version: open to everybody."""
        if path.startswith("/version"):
            return Response(200, encode(self._version()))
        if path == DISK:
            return self._disk()
        why = self._ready() if path.startswith("/readyz") else ""
        if why:
            return Response(503, f"[-]{why}\nreadyz check failed\n".encode(), "text/plain; charset=utf-8")
        body = b"[+]ping ok\n[+]store ok\nhealth check passed\n" if "verbose" in query else b"ok"
        return Response(200, body, "text/plain; charset=utf-8")

    def _disk(self) -> Response:
        if not self._disk_full():
            return Response(200, encode({"full": False}))
        return Response(507, encode(StatusError(507, "InsufficientStorage", _FULL).to_wire()))

    def _version(self) -> dict[str, str]:
        return {
            "major": MAJOR,
            "minor": MINOR,
            "gitVersion": f"v{MAJOR}.{MINOR}.{PATCH}+moorage",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "CPython",
            "platform": f"linux/{ {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }",
        }

    def page(self, path: str, accept: str) -> Response | None:
        """The page of a path, or None when there is none."""
        if path == "/":
            return Response(200, encode({"paths": self._paths()}))
        if path == "/openapi/v2":
            if openapiproto.ASKED in accept or openapiproto.MEDIA_TYPE in accept:
                return self._document(path, _v2_in_protobuf, openapiproto.MEDIA_TYPE)
            return self._document(path, lambda types: encode(openapi_v2(types)))
        if path == "/openapi/v3":
            return self._document(path, lambda types: encode(openapi_v3_index(types)), "text/plain; charset=utf-8")
        if path.startswith("/openapi/v3/"):
            found = self._document(path, lambda types: encode(openapi_v3(types, path.removeprefix("/openapi/v3/"))))
            return found or Response(404, b"", "")
        if path == "/metrics":
            return Response(200, self._metrics().encode(), "text/plain; version=0.0.4; charset=utf-8")
        return None

    def _document(
        self, path: str, make: Callable[[Sequence[ServedType]], bytes], media: str = "application/json"
    ) -> Response | None:
        """An OpenAPI document, kept until the served kinds change."""
        place = f"{path} {media}"
        kept = self._documents.get(place)
        if kept is None or kept[0] != self._registry.changes:
            try:
                body = make(self._registry.types())
            except KeyError:
                return None
            if len(self._documents) > _DOCUMENTS:
                self._documents.clear()
            kept = self._documents[place] = (self._registry.changes, body)
        return Response(200, kept[1], media, [("Cache-Control", "public"), ("Vary", "Accept")])

    def _paths(self) -> list[str]:
        versions = {served.resource.api_version for served in self._registry.types()}
        found = {"/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
        for version in versions:
            found |= (
                {f"/apis/{version}", f"/apis/{version.partition('/')[0]}"} if "/" in version else {f"/api/{version}"}
            )
        return sorted(found)

    def count(self, request: Request, code: int, seconds: float) -> None:
        """Note a finished request for the metrics."""
        verb = request.target.verb.upper()
        self._requests[verb, request.target.resource, code] += 1
        self._spent[verb] += seconds  # type: ignore[assignment]
        self._seconds[verb, bisect_left(_SECONDS, seconds)] += 1

    def _metrics(self) -> str:
        lines = [
            "# HELP apiserver_request_total Requests by verb, resource and HTTP code.",
            "# TYPE apiserver_request_total counter",
        ]
        for (verb, resource, code), number in sorted(self._requests.items()):
            lines.append(f'apiserver_request_total{{verb="{verb}",resource="{resource}",code="{code}"}} {number}')
        lines += [
            "# HELP apiserver_request_duration_seconds Response latency.",
            "# TYPE apiserver_request_duration_seconds histogram",
        ]
        for verb in sorted(self._spent):
            lines += self._histogram(verb)
        lines += [
            "# HELP apiserver_storage_objects Stored objects by resource.",
            "# TYPE apiserver_storage_objects gauge",
        ]
        for storage, collection in sorted(self._hub.collections.items()):
            lines.append(f'apiserver_storage_objects{{resource="{storage}"}} {len(collection.entries)}')
        lines += [
            "# HELP moorage_store_commits_total Durable commits; several writes share one.",
            "# TYPE moorage_store_commits_total counter",
            f"moorage_store_commits_total {self._hub.store.commits}",
            "# HELP moorage_store_revision The newest durable revision.",
            "# TYPE moorage_store_revision gauge",
            f"moorage_store_revision {self._hub.revision}",
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self, verb: str) -> list[str]:
        total = sum(number for (name, _, _), number in self._requests.items() if name == verb)
        name = "apiserver_request_duration_seconds"
        counts = accumulate(self._seconds[verb, at] for at in range(len(_SECONDS)))
        lines = [
            f'{name}_bucket{{verb="{verb}",le="{bound}"}} {number}'
            for bound, number in zip(_SECONDS, counts, strict=True)
        ]
        return [
            *lines,
            f'{name}_bucket{{verb="{verb}",le="+Inf"}} {total}',
            f'{name}_sum{{verb="{verb}"}} {self._spent[verb]:.6f}',
            f'{name}_count{{verb="{verb}"}} {total}',
        ]
