"""GET pods/log: what the node wrote under DATA/logs/NAMESPACE/POD/CONTAINER/N.log, N counting restarts from 0.

Lines in the files are `TIME stdout|stderr F TEXT` (the CRI form) or plain text. Follow ends when the container's last file
stops growing and the container no longer runs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from moorage.apiserver.api import Api
from moorage.apiserver.errors import bad_request, invalid, not_found
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError, forbidden
from moorage.schema import invalid as invalid_value

_OPTIONS = ResourceType("", "v1", "PodLogOptions", "podlogoptions")
_LINE = re.compile(rb"(\d{4}-\d\d-\d\dT\S+) (?:stdout|stderr) [FP] ")
_CHUNK, _POLL = 256 * 1024, 0.2
_PLAIN = "text/plain"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What of a log is wanted; `since` is empty or an RFC 3339 time."""

    container: str
    follow: bool
    previous: bool
    tail: int | None
    since: str
    timestamps: bool
    limit: int | None


async def read_log(api: Api, request: Request, served: ServedType) -> Response:
    """A container's log.

    Raises:
        StatusError: 400, 404, 422.
    """
    key = key_of_target(served, request.target)
    entry = api.hub.get("pods", str(key))
    if entry is None:
        raise not_found(served.resource, key.name)
    pod = entry.parse()
    options = _options(api, request, pod)
    folder = api.data_dir / "logs" / key.namespace / key.name / options.container
    files = _generations(folder)
    if options.previous:
        files = files[:-1]
        if not files:
            raise bad_request(f'previous terminated container "{options.container}" in pod "{key.name}" not found')
    if not files:
        raise bad_request(_waiting(pod, options.container))
    first, size = await asyncio.to_thread(_read, files[-1], options)
    if not options.follow or options.previous:
        return Response(200, first, _PLAIN)
    return Response(200, b"", _PLAIN, stream=_follow(api, str(key), options, _Place(files[-1], size, first)))


def _options(api: Api, request: Request, pod: JsonObject) -> LogOptions:
    query, errors = request.query, list[FieldError]()
    tail = _number(query.get("tailLines"), "tailLines", 0, errors)
    limit = _number(query.get("limitBytes"), "limitBytes", 1, errors)
    seconds = _number(query.get("sinceSeconds"), "sinceSeconds", 1, errors)
    since = query.get("sinceTime", "")
    if seconds is not None and since:
        errors.append(forbidden("sinceSeconds", "at most one of sinceTime or sinceSeconds may be specified"))
    if errors:
        raise invalid(_OPTIONS, pod["metadata"]["name"], errors)
    if seconds is not None:
        since = (api.clock() - timedelta(seconds=seconds)).isoformat()
    flags = {name: request.flag(name) for name in ("follow", "previous", "timestamps")}
    container = _container(pod, query.get("container", ""))
    return LogOptions(container, flags["follow"], flags["previous"], tail, since, flags["timestamps"], limit)


def _number(text: str | None, name: str, least: int, errors: list[FieldError]) -> int | None:
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    if value < least:
        errors.append(invalid_value(name, value, f"must be greater than {'or equal to ' if least == 0 else ''}0"))
    return value


def _container(pod: JsonObject, wanted: str) -> str:
    spec = pod["spec"]
    plain = [item["name"] for item in spec.get("containers") or ()]
    first = [item["name"] for item in spec.get("initContainers") or ()]
    name = pod["metadata"]["name"]
    if wanted:
        if wanted not in plain + first:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(plain) == 1:
        return str(plain[0])
    text = f"a container name must be specified for pod {name}, choose one of: [{' '.join(plain)}]"
    raise bad_request(text + (f" or one of the init containers: [{' '.join(first)}]" if first else ""))


def _waiting(pod: JsonObject, container: str) -> str:
    name = pod["metadata"]["name"]
    status = pod.get("status") or {}
    for item in (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or []):
        reason = ((item.get("state") or {}).get("waiting") or {}).get("reason")
        if item["name"] == container and reason:
            return f'container "{container}" in pod "{name}" is waiting to start: {reason}'
    return f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating'


def _generations(folder: Path) -> list[Path]:
    numbered = [(int(path.stem), path) for path in folder.glob("*.log") if path.stem.isdecimal()]
    return [path for _, path in sorted(numbered)]


def _read(path: Path, options: LogOptions) -> tuple[bytes, int]:
    """The wanted part of a file, and how far it was read."""
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    if options.since:
        since = _moment(options.since)
        lines = [line for line in lines if _at_or_after(line, since)]
    if options.tail is not None:
        lines = lines[len(lines) - min(options.tail, len(lines)) :]
    text = b"".join(_shown(line, options) for line in lines)
    return (text if options.limit is None else text[: options.limit]), len(data)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise bad_request(f'parsing time "{text}": not RFC 3339') from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _at_or_after(line: bytes, since: datetime) -> bool:
    found = _LINE.match(line)
    if found is None:
        return True
    stamp = re.sub(r"(\.\d{6})\d+", r"\1", found[1].decode())
    return datetime.fromisoformat(stamp) >= since


def _shown(line: bytes, options: LogOptions) -> bytes:
    found = _LINE.match(line)
    if found is None:
        return line
    text = line[found.end() :]
    return found[1] + b" " + text if options.timestamps else text


@dataclass(slots=True)
class _Place:
    """How far a follower has come: file, offset, bytes still to send."""

    path: Path
    offset: int
    first: bytes


async def _follow(api: Api, key: str, options: LogOptions, place: _Place) -> AsyncIterator[bytes]:
    if place.first:
        yield place.first
    rest = b""
    while True:
        ended = not _runs(api, key, options.container)
        data = await asyncio.to_thread(_more, place)
        if data:
            *lines, rest = (rest + data).splitlines(keepends=True)
            if rest.endswith(b"\n"):
                lines, rest = [*lines, rest], b""
            if lines:
                yield b"".join(_shown(line, options) for line in lines)
            continue
        if ended or _generations(place.path.parent)[-1:] != [place.path]:
            if rest:
                yield _shown(rest, options)
            return
        await asyncio.sleep(_POLL)


def _more(place: _Place) -> bytes:
    try:
        with place.path.open("rb") as file:
            if file.seek(0, 2) < place.offset:
                place.offset = 0
            file.seek(place.offset)
            data = file.read(_CHUNK)
    except FileNotFoundError:
        return b""
    place.offset += len(data)
    return data


def _runs(api: Api, key: str, container: str) -> bool:
    entry = api.hub.get("pods", key)
    if entry is None:
        return False
    status = entry.parse().get("status") or {}
    for item in (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or []):
        if item["name"] == container:
            return "terminated" not in (item.get("state") or {})
    return status.get("phase") not in ("Succeeded", "Failed")
