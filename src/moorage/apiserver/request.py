"""One request and one answer, and what a path means. Pure.

Source: apiserver `RequestInfo` (the attributes that authorization and audit see).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from moorage.serving.connection import Response as Response

_LONG = 512
"""Paths from this length on are not remembered."""
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a path addresses. `resource` is empty for paths that are no API resource (`/version`, discovery)."""

    path: str
    verb: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMIN_GROUP = "system:masters"


@dataclass(slots=True)
class Request:
    """A request as the verbs see it; `warnings` gathers what the answer must carry.

    `actor` is who really asks when `user` is impersonated.
    """

    method: str
    target: Target
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    user: User = ANONYMOUS
    actor: User | None = None
    warnings: list[str] = field(default_factory=list)
    peer: str = ""

    def flag(self, name: str) -> bool:
        """Whether a boolean query parameter is set, as Kubernetes reads them (`?watch` alone counts as true)."""
        value = self.query.get(name)
        return value is not None and value.lower() not in ("false", "0")

    @property
    def manager(self) -> str:
        """The field manager: the parameter, else the first word of the user agent."""
        given = self.query.get("fieldManager", "")
        return given or self.headers.get("user-agent", "unknown").partition("/")[0][:128] or "unknown"


def parse_query(text: str) -> dict[str, str]:
    """Query parameters; the first value of a repeated one counts."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        found.setdefault(name, value)
    return found


def parse_target(method: str, raw_path: str, query: Mapping[str, str]) -> Target:
    """The target of a path, `raw_path` still percent-encoded."""
    read = _target if len(raw_path) < _LONG else _read_target
    if not query:
        return read(method, raw_path, False, "")
    return read(method, raw_path, _watches(query), _selected_name(query))


def _read_target(method: str, raw_path: str, watches: bool, selected: str) -> Target:
    verb = _VERBS.get(method, method.lower())
    parts = [unquote(part) for part in raw_path.split("/") if part]
    path = unquote(raw_path)
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return Target(path, verb)
    watching = rest[0] == "watch" and len(rest) > 1
    rest = rest[1:] if watching else rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource, name, subresource, *more = [*rest, "", "", ""][: max(3, len(rest))]
    if not name:
        verb = _collection_verb(verb, watching or watches)
        name = selected if verb in ("list", "watch", "deletecollection") else ""
        subresource = ""
    elif watching:
        verb = "watch"
    return Target(
        path, verb, group, version, namespace, resource, name, subresource, tuple(part for part in more if part)
    )


_target = lru_cache(maxsize=4096)(_read_target)


def _watches(query: Mapping[str, str]) -> bool:
    value = query.get("watch")
    return value is not None and value.lower() not in ("false", "0")


def _collection_verb(verb: str, watching: bool) -> str:
    if verb == "get":
        return "watch" if watching else "list"
    return "deletecollection" if verb == "delete" else verb


def _selected_name(query: Mapping[str, str]) -> str:
    for term in query.get("fieldSelector", "").split(","):
        if term.startswith("metadata.name=") and not term.startswith("metadata.name=="):
            return term.removeprefix("metadata.name=")
    return ""
