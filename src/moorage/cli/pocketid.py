"""`moorage pocketid export|orphans`: what a Pocket-ID holds, as manifests, and what of it no resource owns."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import click

from moorage.cli.options import ContextOption, KubeconfigOption, Output, OutputOption
from moorage.cli.printable import printable
from moorage.cli.server import Target, kind_named, print_json, print_table, with_client
from moorage.cli.signature import Option, group_of
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject

if TYPE_CHECKING:
    from moorage.cli.pocketid_export import Export
    from moorage.cli.pocketid_orphans import Orphan
    from moorage.kube.client import Client

InstanceOption = Annotated[
    str | None, Option("--instance", help="Name of a PocketIDInstance; default: the only one there is.")
]
NamespaceOption = Annotated[
    str | None,
    Option(
        "--namespace",
        "-n",
        help="Namespace of the instance; default: wherever it is. With --url that of the manifests.",
    ),
]


def export_all(
    instance: InstanceOption = None,
    url: Annotated[
        str | None,
        Option("--url", help="Address of a server that no instance stands for yet; no cluster is asked."),
    ] = None,
    api_key_file: Annotated[
        str | None,
        Option("--api-key-file", help="File with an administrator's API key, for --url; - for standard input."),
    ] = None,
    users: Annotated[bool, Option("--users/--no-users", help="Whether people are exported, too.")] = True,
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Write manifests of a live server's users, groups, APIs and clients. Applied, they adopt what is there and change nothing at the server.

    No secret is written: a client keeps the one it has (storeClientSecret: false). What a resource owns already is not exported again.
    Nothing is changed by the export. Exit code 1 when something cannot be declared; what and why stands on standard error, and above the
    manifests.

    Example:  moorage pocketid export --url https://id.example.org --api-key-file ./key > pocketid.yaml
    """
    from moorage.cli.pocketid_work import export_of_instance, export_of_server

    if url is not None and instance is not None:
        raise InputError("--url", "cannot stand beside --instance", "Name the one or the other")
    if url is not None:
        found = export_of_server(url, api_key_file, namespace or "", users=users)
    elif api_key_file is not None:
        raise InputError(
            "--api-key-file", "belongs to --url", "An instance has its own key, in the Secret that it names"
        )
    else:

        async def work(client: Client, _where: str) -> Export:
            return await export_of_instance(client, instance, namespace or "", users=users)

        found = with_client(Target(kubeconfig, context, namespace), work)
    _print_export(found, output)
    raise click.exceptions.Exit(1 if found.left_out else 0)


def orphans(
    instance: InstanceOption = None,
    kinds: Annotated[
        list[str] | None,
        Option("--kind", help="Only this kind (repeat the option); default: clients, groups and APIs, not people."),
    ] = None,
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """List what the servers of all PocketIDInstances hold and no resource owns: made by hand, or left behind.

    Objects of a directory (LDAP) are not listed. Exit code 1 when there is something.

    Example:  moorage pocketid orphans --instance main --kind PocketIDOIDCClient
    """
    from moorage.cli.pocketid_owners import IDS
    from moorage.cli.pocketid_work import BY_DEFAULT, orphans_of

    wanted = frozenset(kind_named(name).kind for name in kinds) if kinds else BY_DEFAULT
    if foreign := sorted(wanted - IDS.keys()):
        raise InputError(f"--kind {foreign[0]}", "has no counterpart in a Pocket-ID", f"Use one of {', '.join(IDS)}")

    async def work(client: Client, _where: str) -> tuple[Orphan, ...]:
        return await orphans_of(client, instance, namespace or "", wanted)

    found = with_client(Target(kubeconfig, context, namespace), work)
    if output is Output.json:
        print_json([item.to_wire() for item in found])
    elif found:
        print_table(("KIND", "NAME", "ID", "INSTANCE"), [(o.kind, o.name, o.id, str(o.instance)) for o in found])
    else:
        click.echo("no orphans: a resource owns everything that was looked for")
    raise click.exceptions.Exit(1 if found else 0)


def _print_export(found: Export, output: Output) -> None:
    """Manifests on standard output; what to know of them above them, and on standard error, too."""
    from moorage.cli.pocketid_text import manifests_text, notes

    if output is Output.json:
        print_json(_wire(found))
    else:
        click.echo(manifests_text(found), nl=False)
    for note in notes(found):
        click.echo(printable(note), err=True)


def _wire(found: Export) -> JsonObject:
    """A `List` that kubectl takes, with what was left out and what is needed beside its items."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": found.items,
        "leftOut": [asdict(item) for item in found.left_out],
        "skipped": [asdict(item) for item in found.skipped],
        "needed": [asdict(item) for item in found.needed],
    }


command = group_of(
    """Look into a Pocket-ID: export it as manifests, find what no resource owns.

    Example:  moorage pocketid export --instance main > pocketid.yaml
    """,
    {"export": export_all, "orphans": orphans},
)
