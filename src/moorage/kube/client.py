"""The verbs of the Kubernetes API, for plain objects and for our typed kinds.

Enters: a ResourceType with dicts, or a schema Kind with its models. Leaves: the server's answer, or an exception of
`errors`. It keeps no state but connections and counters, and never logs a body.

    async with Client(load_kubeconfig()) as client:
        secret = await client.get(SECRETS, Key("default", "ldap-bind"))
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast, overload

from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.schema.kind import Kind
from moorage.schema.model import Resource

from .config import Connection
from .transport import UNCLAIMED, Claim, Limits, Request, Transport
from .watch import Patience, Scope, WatchEvent, scope, stream, text_lines

R = TypeVar("R", bound=Resource)
T = TypeVar("T")

JsonArray: TypeAlias = list[Any]
Objects: TypeAlias = list[JsonObject]

PAGE = 500  # objects per request of a list


class PatchType(Enum):
    """Media types of PATCH; server-side apply has a method of its own."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


_APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects of one list, and the resourceVersion from which a watch goes on."""

    items: tuple[T, ...]
    resource_version: str


class Client:
    """A client of one API server.

    Args:
        field_manager: our name in `managedFields`.

    `calls` counts requests by (method, resource), a watch as ("WATCH", resource), a subresource as "pods/status".
    """

    def __init__(
        self,
        connection: Connection,
        *,
        field_manager: str = "moorage",
        limits: Limits | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.connection, self.field_manager = connection, field_manager
        self.patience = patience or Patience()
        self.calls: Counter[tuple[str, str]] = Counter()
        self._transport = Transport(connection, limits)
        self._guards: tuple[Callable[[], None], ...] = ()
        self._left: Callable[[], float] = lambda: math.inf
        self._claim = Claim(self.check_write, self._left)
        self._managed = {"fieldManager": field_manager}

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._transport.close()

    def fenced(self, guard: Callable[[], None], left: Callable[[], float] = lambda: math.inf) -> Client:
        """The same client (connections, counters), whose writes ask `guard` too; `guard` raises to refuse.

        Args:
            left: seconds after which a write that hangs is given up, because others may write then.
        """
        twin = object.__new__(Client)
        twin.__dict__.update(self.__dict__)
        twin._guards, twin._left = (*self._guards, guard), lambda: min(self._left(), left())
        twin._claim = Claim(twin.check_write, twin._left)
        return twin

    def check_write(self) -> None:
        """Ask all guards, as before a write. Raises what they raise."""
        for guard in self._guards:
            guard()

    def observe(self, observer: Callable[[str, int], None]) -> None:
        """Hear of each attempt: method and status code, 0 for no answer."""
        self._transport.observers.append(observer)

    @property
    def writes(self) -> int:
        """Writing requests so far, dry runs included."""
        return sum(count for (method, _), count in self.calls.items() if method not in ("GET", "WATCH"))

    # --- reading

    @overload
    async def get(self, rt: ResourceType, key: Key) -> JsonObject: ...
    @overload
    async def get(self, rt: Kind[R], key: Key) -> R: ...
    async def get(self, rt: ResourceType | Kind[R], key: Key) -> JsonObject | R:
        """One object.

        Raises:
            NotFound: there is none.
        """
        resource = _resource(rt)
        answer = await self._call(Request("GET", resource.path(key.namespace, key.name), resource.plural))
        return _typed(rt, answer)

    @overload
    async def list(
        self, rt: ResourceType, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> Listing[JsonObject]: ...
    @overload
    async def list(self, rt: Kind[R], namespace: str = "", *, labels: str = "", fields: str = "") -> Listing[R]: ...
    async def list(
        self, rt: ResourceType | Kind[R], namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> Listing[JsonObject] | Listing[R]:
        """All objects, page by page; an empty namespace means all namespaces.

        Raises:
            Expired: the server forgot a page's revision; list again.
        """
        resource = _resource(rt)
        found, version = await self._pages(scope(resource, namespace, labels=labels, fields=fields))
        for item in found:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        if isinstance(rt, ResourceType):
            return Listing(tuple(found), version)
        return Listing(tuple(rt.parse(item) for item in found), version)

    async def _pages(self, wanted: Scope) -> tuple[Objects, str]:
        query = {**wanted.query(), "limit": str(PAGE)}
        found: Objects = []
        while True:
            request = Request("GET", wanted.resource.path(wanted.namespace), wanted.resource.plural, query)
            page = await self._call(request)
            found += page.get("items") or ()
            meta = page.get("metadata") or {}
            if not meta.get("continue"):
                return found, meta.get("resourceVersion", "")
            query = {**query, "continue": meta["continue"]}

    def watch(
        self, rt: ResourceType | Kind[Any], namespace: str = "", *, since: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        """Events of one connection from `since`; ends when the server closes it or it falls silent.

        `watch.follow` goes on after that. Raises `Expired` on 410 and on ERROR events.
        """
        return self.watch_scope(scope(_resource(rt), namespace, labels=labels, fields=fields), since)

    def watch_scope(self, wanted: Scope, since: str) -> AsyncGenerator[WatchEvent, None]:
        """`watch` for a Scope."""
        self.calls["WATCH", wanted.resource.plural] += 1
        return stream(self._transport, wanted, since, self.patience)

    # --- writing

    @overload
    async def create(self, rt: ResourceType, obj: JsonObject, *, dry_run: bool = False) -> JsonObject: ...
    @overload
    async def create(self, rt: Kind[R], obj: R, *, dry_run: bool = False) -> R: ...
    async def create(self, rt: ResourceType | Kind[R], obj: JsonObject | R, *, dry_run: bool = False) -> JsonObject | R:
        """Create an object (`generateName` works).

        Raises:
            AlreadyExists: an object of that name exists.
            Invalid: a rule or webhook refuses it.
        """
        resource, wire = _resource(rt), _wire(rt, obj)
        path = resource.path(wire["metadata"].get("namespace", ""))
        return _typed(rt, await self._write(Request("POST", path, resource.plural, self._query(dry_run), wire)))

    @overload
    async def replace(self, rt: ResourceType, obj: JsonObject, *, dry_run: bool = False) -> JsonObject: ...
    @overload
    async def replace(self, rt: Kind[R], obj: R, *, dry_run: bool = False) -> R: ...
    async def replace(
        self, rt: ResourceType | Kind[R], obj: JsonObject | R, *, dry_run: bool = False
    ) -> JsonObject | R:
        """Replace a whole object; its `resourceVersion` guards against lost updates.

        Raises:
            Conflict: the object changed meanwhile.
        """
        resource, wire = _resource(rt), _wire(rt, obj)
        key, guarded = key_of(wire), bool(wire["metadata"].get("resourceVersion"))
        path = resource.path(key.namespace, key.name)
        request = Request("PUT", path, resource.plural, self._query(dry_run), wire, idempotent=guarded)
        return _typed(rt, await self._write(request))

    async def apply(
        self, rt: ResourceType, obj: JsonObject, *, force: bool = True, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Server-side apply: `obj` holds exactly the fields that we own.

        Raises:
            Conflict: without `force`, another manager owns one of them with another value.
        """
        key = key_of(obj)
        query = {"force": "true" if force else "false", **self._query(dry_run)}
        body = {"apiVersion": rt.api_version, "kind": rt.kind, **obj}
        path, counted = rt.path(key.namespace, key.name, subresource), _counted(rt, subresource)
        request = Request("PATCH", path, counted, query, body, _APPLY, idempotent=True)
        return cast(JsonObject, await self._write(request))

    async def patch(
        self,
        rt: ResourceType,
        key: Key,
        patch: JsonObject | JsonArray,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> JsonObject:
        """Patch an object or a subresource (`status`, `scale`).

        Raises:
            Conflict: the patch names a uid or resourceVersion that is not the object's.
        """
        path, counted = rt.path(key.namespace, key.name, subresource), _counted(rt, subresource)
        idempotent = type is not PatchType.JSON
        request = Request("PATCH", path, counted, self._managed, patch, type.value, idempotent=idempotent)
        return cast(JsonObject, await self._write(request))

    async def delete(
        self,
        rt: ResourceType,
        key: Key,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
    ) -> JsonObject | None:
        """Delete an object; the answer is the object when it lives on with finalizers, else None or a Status.

        Args:
            uid, resource_version: preconditions.
            propagation: Foreground, Background or Orphan; None is the server's default.

        Raises:
            Conflict: a precondition does not hold.
            NotFound: there is none.
        """
        named = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {name: value for name, value in named.items() if value}
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        path = rt.path(key.namespace, key.name)
        request = Request("DELETE", path, rt.plural, {}, options, idempotent=uid is not None)
        return cast("JsonObject | None", await self._write(request))

    # --- the rest

    async def raw(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
    ) -> Any:
        """Any request by path, such as `/version` or a token review; the decoded answer."""
        named = self._managed if method in ("POST", "PUT", "PATCH") else {}
        request = Request(method, path, path, named, body)
        return await (self._call(request) if method == "GET" else self._write(request))

    async def logs(
        self, pod: Key, *, container: str = "", follow: bool = False, previous: bool = False, tail: int | None = None
    ) -> AsyncIterator[str]:
        """The lines of a container's log, without their line ends.

        Raises:
            ApiError: the server refused; ConnectionFailed: it could not be reached.
        """
        flags = {"container": container, "follow": follow and "true", "previous": previous and "true"}
        query = {name: str(value) for name, value in flags.items() if value}
        if tail is not None:
            query["tailLines"] = str(tail)
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"
        self.calls["GET", "pods/log"] += 1
        request = Request("GET", path, "pods/log", query, accept="*/*")
        async with aclosing(text_lines(self._transport, request)) as lines:
            async for line in lines:
                yield line

    async def _call(self, request: Request, claim: Claim = UNCLAIMED) -> Any:
        claim.check()
        self.calls[request.method, request.resource] += 1
        return await self._transport.json(request, claim)

    def _query(self, dry_run: bool) -> Mapping[str, str]:
        return {**self._managed, "dryRun": "All"} if dry_run else self._managed

    async def _write(self, request: Request) -> Any:
        return await self._call(request, self._claim)


def _resource(rt: ResourceType | Kind[Any]) -> ResourceType:
    return rt if isinstance(rt, ResourceType) else rt.resource


def _wire(rt: ResourceType | Kind[R], obj: JsonObject | R) -> JsonObject:
    if isinstance(rt, ResourceType):
        return {"apiVersion": rt.api_version, "kind": rt.kind, **cast(JsonObject, obj)}
    return rt.to_wire(cast(R, obj))


def _typed(rt: ResourceType | Kind[R], answer: JsonObject) -> JsonObject | R:
    return answer if isinstance(rt, ResourceType) else rt.parse(answer)


def _counted(rt: ResourceType, subresource: str) -> str:
    return f"{rt.plural}/{subresource}" if subresource else rt.plural
