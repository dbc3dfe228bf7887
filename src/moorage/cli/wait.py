"""`moorage wait`: progress while waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from moorage.cli.options import ContextOption, KubeconfigOption, NamespaceOption, Output, OutputOption, span
from moorage.cli.printable import printable
from moorage.cli.server import Target, condition_named, kind_named, print_json, state_of, with_client
from moorage.cli.signature import Argument, Option
from moorage.core import conditions
from moorage.core.errors import RefusedError
from moorage.core.meta import JsonObject, Key, ResourceType

if TYPE_CHECKING:
    from moorage.kube.client import Client


def command(
    kind: Annotated[str, Argument(help="Kind, such as KeystoneIdentityBackend.")],
    name: Annotated[str, Argument(help="Name of the resource.")],
    condition: Annotated[str, Option("--for", help="Condition that must become True.")] = "Ready",
    timeout: Annotated[str, Option("--timeout", help="How long to wait, such as 90s or 5m.")] = "5m",
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Wait until a condition is True, and say meanwhile what is awaited.

    Example:  moorage wait KeystoneIdentityBackend planetexpress -n openstack --timeout 5m
    """
    import asyncio

    seconds = span("--timeout", timeout)
    wanted = kind_named(kind)
    condition = condition_named(wanted, condition)
    progress = Progress(f"{condition} did not become True within {timeout}", quiet=output is Output.json)

    async def follow(client: Client, where: str) -> None:
        try:
            async with asyncio.timeout(seconds):
                await _follow(client, wanted.resource, Key(where, name), condition, progress)
        except TimeoutError as error:
            fix = "`moorage status` and `moorage tree` show more"
            said = progress.said.removeprefix(f"{where}/{name}: ").rstrip("?")
            raise RefusedError(f"gave up after {timeout}: {wanted.kind} {where}/{name}", said, fix) from error

    with_client(Target(kubeconfig, context, namespace), follow)
    if output is Output.json and progress.last is not None:
        print_json(state_of(progress.last).to_wire())


@dataclass
class Progress:
    """What was said and seen last while waiting; `quiet` only remembers."""

    said: str
    quiet: bool = False
    last: JsonObject | None = None

    def tell(self, line: str) -> None:
        """Print a line that is new."""
        if line != self.said:
            self.said = line
            if not self.quiet:
                click.echo(printable(line))


async def _follow(client: Client, resource: ResourceType, key: Key, condition: str, progress: Progress) -> None:
    from moorage.cli.waiting import until

    async for obj in until(client, resource, key):
        progress.last = obj
        progress.tell(f"{key}: does not exist" if obj is None else _line(obj, condition))
        if obj is not None and _holds(obj, condition):
            return


def _current(obj: JsonObject) -> bool:
    return int((obj.get("status") or {}).get("observedGeneration", 0)) >= int(obj["metadata"].get("generation", 0))


def _holds(obj: JsonObject, condition: str) -> bool:
    found = conditions.find(conditions.from_wire((obj.get("status") or {}).get("conditions")), condition)
    return found is not None and found.is_true and _current(obj)


def _line(obj: JsonObject, condition: str) -> str:
    state = state_of(obj)
    if _holds(obj, condition):
        return f"{state.namespace}/{state.name}: {condition}"
    return f"{state.namespace}/{state.name}: waiting for {condition}: {state.reason}: {state.message}"
