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

    Exit code 1 when something is not ready.

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

    found = with_client(target, show)
    raise click.exceptions.Exit(0 if all(state.ready for state in found) else 1)


def _print(found: list[State], output: Output, nothing: str = "") -> None:
    if output is Output.json:
        print_json([state.to_wire() for state in found])
        return
    if not found:
        click.echo(nothing or "nothing is declared here any more")
        return
    rows = [(s.kind, s.namespace, s.name, "yes" if s.ready else "no", age(s.since), s.reason, s.message) for s in found]
    print_table(("KIND", "NAMESPACE", "NAME", "READY", "SINCE", "REASON", "MESSAGE"), rows)
