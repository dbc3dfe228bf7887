"""What the commands that need a server share: the connection, the kinds, one resource's state in one sentence."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.printable import printable
from moorage.core import conditions
from moorage.core.durations import format_age
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, ResourceType, key_of

if TYPE_CHECKING:
    from moorage.kube.client import Client
    from moorage.schema import Kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """Which server and namespace a command talks about."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    everywhere: bool = False


def with_client(target: Target, work: Callable[[Client, str], Awaitable[T]]) -> T:
    """Run `work(client, namespace)` against the server that kubectl would use."""
    import asyncio

    from moorage.kube.client import Client
    from moorage.kube.config import load_kubeconfig

    connection = load_kubeconfig(target.kubeconfig, target.context)
    namespace = "" if target.everywhere else target.namespace or connection.namespace

    async def session() -> T:
        async with Client(connection) as client:
            return await work(client, namespace)

    return asyncio.run(session())


def kind_named(name: str) -> Kind[Any]:
    """The kind of ours that a person means, as kubectl takes it: kind, singular, plural, short name, `plural.group`; any case.

    Raises:
        InputError: none of ours is named so.
    """
    from moorage.cli.systems import KINDS

    wanted = name.lower()
    for kind in KINDS:
        if wanted in {kind.kind.lower(), kind.plural, *kind.short_names, *_qualified(kind)}:
            return kind
    known = ", ".join(kind.kind for kind in KINDS)
    raise InputError(name, "no kind of Moorage has this name", f"Use one of {known}")


def _qualified(kind: Kind[Any]) -> tuple[str, ...]:
    return f"{kind.plural}.{kind.group}", f"{kind.plural}.{kind.version}.{kind.group}"


def condition_named(kind: Kind[Any], name: str) -> str:
    """The condition of a kind that a person means, in any case.

    Raises:
        InputError: this kind has none of that name.
    """
    from moorage.cli.systems import reasons_of

    known = tuple(reasons_of(kind.kind))
    for type_ in known:
        if type_.lower() == name.lower():
            return str(type_)
    raise InputError(f"--for {name}", f"a {kind.kind} has no such condition", f"It has {', '.join(sorted(known))}")


async def resource_of(client: Client, api_version: str, kind: str) -> ResourceType:
    """How the server addresses a kind, as its discovery says.

    Raises:
        InputError: the server does not serve it.
    """
    from moorage.kube.errors import NotFound

    group, slash, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if slash else f"/api/{api_version}"
    try:
        served = (await client.raw("GET", path))["resources"]
    except NotFound:
        served = []
    for item in served:
        if item["kind"] == kind and "/" not in item["name"]:
            return ResourceType(group, version, kind, item["name"], item["namespaced"])
    raise InputError(f"{api_version} {kind}", "the server does not serve this kind", "Are its CRDs installed?")


@dataclass(frozen=True, slots=True)
class State:
    """One resource in one line: ready or the first cause why not."""

    kind: str
    namespace: str
    name: str
    ready: bool
    reason: str
    message: str
    since: str
    conditions: tuple[JsonObject, ...]

    def to_wire(self) -> JsonObject:
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "ready": self.ready,
            "reason": self.reason,
            "message": self.message,
            "since": self.since,
            "conditions": list(self.conditions),
        }


_INFORMATIONAL = {"Ready", "DirectoryReachable", "ExtraConfigHealthy"}


def state_of(obj: JsonObject) -> State:
    """The state of one wire object; reason and message are those of the first cause, not of the aggregate."""
    status = obj.get("status") or {}
    found = conditions.from_wire(status.get("conditions"))
    ready = conditions.find(found, "Ready")
    current = status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
    is_ready = bool(ready and ready.is_true and current)
    causes = [item for item in found if not item.is_true and item.type not in _INFORMATIONAL]
    named = ready.message.partition(":")[0] if ready else ""  # Ready names the first cause by its type
    cause = ready if is_ready or not causes else conditions.find(causes, named) or causes[0]
    if obj["metadata"].get("deletionTimestamp"):
        reason, message = "Deleting", "the deletion has not been looked at yet"
        if ready and not ready.is_true:
            message = ready.message
    elif cause is None:
        reason, message = (
            "NotReconciled",
            "no controller has looked at it yet; is `moorage up` or `moorage run` running?",
        )
    elif ready and ready.is_true and not current:
        reason, message = "Reconciling", "the latest change has not been looked at yet"
    else:
        reason, message = cause.reason, cause.message
    key = key_of(obj)
    since = cause.last_transition_time if cause else obj["metadata"].get("creationTimestamp", "")
    return State(
        obj["kind"], key.namespace, key.name, is_ready, reason, message, since, tuple(status.get("conditions") or ())
    )


async def states(client: Client, namespace: str) -> list[State]:
    """The states of all resources of our kinds that may be seen; a kind whose CRD is absent counts as none.

    Raises:
        Forbidden: no kind may be seen.
    """
    from moorage.cli.systems import KINDS
    from moorage.kube.errors import Forbidden, NotFound

    found: list[State] = []
    hidden: dict[str, Forbidden] = {}
    for kind in KINDS:
        try:
            listing = await client.list(kind.resource, namespace)
        except NotFound:
            continue
        except Forbidden as error:
            hidden[kind.kind] = error
            continue
        found += [state_of(item) for item in listing.items]
    if hidden and not found:
        raise next(iter(hidden.values()))
    if hidden:
        click.echo(f"warning: not shown, since you may not list them: {', '.join(hidden)}", err=True)
    return found


def print_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Columns padded to their widest cell, two blanks apart."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(printable(line).rstrip())


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def age(since: str) -> str:
    """How long ago an RFC 3339 time was, as kubectl prints ages; empty for none."""
    from datetime import UTC, datetime

    if not since:
        return ""
    return format_age((datetime.now(UTC) - datetime.fromisoformat(since.replace("Z", "+00:00"))).total_seconds())


async def nothing_declared(client: Client, namespace: str) -> str:
    """What to say of a namespace in which nothing is declared.

    Raises:
        InputError: there is no such namespace.
    """
    from moorage.core.errors import InputError
    from moorage.core.meta import Key
    from moorage.kube.errors import Forbidden, NotFound
    from moorage.kube.resources import NAMESPACES

    hint = "apply a Keystone and a KeystoneIdentityBackend"
    try:
        if namespace:
            await client.get(NAMESPACES, Key("", namespace))
        others = await states(client, "")
    except NotFound as error:
        raise InputError(
            f"namespace {namespace}", "does not exist", "`moorage status -A` shows all namespaces"
        ) from error
    except Forbidden:
        others = []
    if others:
        hint = f"other namespaces hold {len(others)}: -A shows all"
    return f"nothing is declared {f'in namespace {namespace}' if namespace else 'here'}; {hint}"
