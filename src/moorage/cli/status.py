"""`moorage status`: one line a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from moorage.cli.options import (
    AllNamespacesOption,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    Output,
    OutputOption,
)
from moorage.cli.server import State, Target, age, nothing_declared, print_json, print_table, states, with_client
from moorage.cli.signature import Option

if TYPE_CHECKING:
    from moorage.kube.client import Client


def command(
    watch: Annotated[bool, Option("--watch", "-w", help="Print again whenever something changes.")] = False,
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    everywhere: AllNamespacesOption = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Say of each resource whether it is ready or, in one sentence, why not.

    Exit code 1 when something is not ready, or when the disk of the API server of one machine is full.

    Example:  moorage status -A
    """
    target = Target(kubeconfig, context, namespace, everywhere)

    async def show(client: Client, where: str) -> list[State]:
        found = await states(client, where)
        _print(found, output, "" if found else await nothing_declared(client, where))
        if watch:
            from moorage.cli.waiting import changes

            async for _ in changes(client, where):
                fresh = await states(client, where)
                if fresh != found:
                    found = fresh
                    _print(found, output)
        return found

    async def look(client: Client, where: str) -> tuple[list[State], str]:
        return await show(client, where), await _full_disk(client)

    found, full = with_client(target, look)
    if full:
        click.echo(f"warning: {full}", err=True)
    raise click.exceptions.Exit(0 if not full and all(state.ready for state in found) else 1)


async def _full_disk(client: Client) -> str:
    """What the API server of one machine says of its disk; "" when there is room, or where nobody knows."""
    from moorage.core.errors import WireError
    from moorage.kube.errors import ApiError

    try:
        await client.raw("GET", "/readyz/disk")
    except WireError as error:
        return error.message if isinstance(error, ApiError) and error.reason == "InsufficientStorage" else ""
    return ""


def _print(found: list[State], output: Output, nothing: str = "") -> None:
    if output is Output.json:
        print_json([state.to_wire() for state in found])
        return
    if not found:
        click.echo(nothing or "nothing is declared here any more")
        return
    rows = [(s.kind, s.namespace, s.name, "yes" if s.ready else "no", age(s.since), s.reason, s.message) for s in found]
    print_table(("KIND", "NAMESPACE", "NAME", "READY", "SINCE", "REASON", "MESSAGE"), rows)
