"""`moorage diff`: what applying files would change."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any

import click

from moorage.cli.options import ContextOption, KubeconfigOption, NamespaceOption, Output, OutputOption
from moorage.cli.printable import printable
from moorage.cli.projected import digest
from moorage.cli.server import Target, print_json, with_client
from moorage.cli.signature import Argument
from moorage.core.meta import JsonObject, ResourceType

if TYPE_CHECKING:
    from moorage.cli.manifests import Manifest
    from moorage.kube.client import Client

_QUIET = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink", "deletionTimestamp")
"""Metadata that the server writes: a dump of what is there carries it, and it says nothing of what is wanted."""
_KEEPING = ("PocketIDInstance",)
"""Kinds that take secrets inline."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def command(
    paths: Annotated[list[str], Argument(help="Files, folders or - for standard input.")],
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show what applying these files would change on the server, and in the files that Moorage projects from them.

    Nothing is written: the server is asked by dry run. Secret values are shown as digests. Exit code 1 when something would change, 3 when
    the server refuses a document; the others are shown all the same.

    Example:  moorage diff examples/keystone-ldap
    """
    from moorage.cli import manifests

    found = manifests.read(paths)

    async def compare(client: Client, where: str) -> tuple[list[str], list[str]]:
        return await _compare(client, where, found)

    lines, refused = with_client(Target(kubeconfig, context, namespace), compare)
    for why in refused:
        click.echo(printable(f"error: {why}"), err=True)
    if output is Output.json:
        print_json({"changed": bool(lines), "diff": lines, "refused": refused})
    else:
        for line in lines:
            click.echo(printable(line))
    raise click.exceptions.Exit(3 if refused else 1 if lines else 0)


async def _compare(client: Client, namespace: str, found: list[Manifest]) -> tuple[list[str], list[str]]:
    """What would change, and which documents the server would not take."""
    from moorage.cli.projected import rendered
    from moorage.cli.server import resource_of
    from moorage.kube.errors import BadRequest, Forbidden, Invalid

    lines: list[str] = []
    refused: list[str] = []
    before: list[JsonObject] = []
    after: list[JsonObject] = []
    for manifest in found:
        resource = await resource_of(client, manifest.object["apiVersion"], manifest.kind)
        wanted = _placed(manifest.object, resource, namespace)
        try:
            live, future = await _would_be(client, resource, wanted)
        except (BadRequest, Forbidden, Invalid) as error:
            refused.append(f"{manifest.file}: document {manifest.document}: {error}")
            continue
        lines += unified(_shown(live), _shown(future), f"{manifest.kind} {_where(wanted)}")
        before += [live] if live else []
        after.append(future)
    old, new = await rendered(client, before), await rendered(client, after)
    for name in sorted(old.keys() | new.keys()):
        lines += unified(old.get(name), new.get(name), f"file {name}")
    return lines, refused


def _placed(obj: JsonObject, resource: ResourceType, namespace: str) -> JsonObject:
    """What a file wants, also when it is a dump of what the server has."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in _QUIET}
    if resource.namespaced:
        meta.setdefault("namespace", namespace)
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


def _where(obj: JsonObject) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


async def _would_be(client: Client, resource: ResourceType, wanted: JsonObject) -> tuple[JsonObject | None, JsonObject]:
    from moorage.core.meta import key_of
    from moorage.kube.errors import NotFound

    try:
        live: JsonObject | None = await client.get(resource, key_of(wanted))
    except NotFound:
        live = None
    try:
        future = await client.apply(resource, wanted, force=True, dry_run=True)
    except NotFound:  # its namespace is among the files and does not exist yet
        future = wanted
    return live, future


def _shown(obj: JsonObject | None) -> Any:
    if obj is None:
        return None
    meta = {name: value for name, value in obj["metadata"].items() if name not in _QUIET}
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k != _LAST_APPLIED}
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    shown = {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}
    if obj["kind"] == "Secret":
        shown = conceal(shown)
    elif obj["kind"] in _KEEPING:
        shown["spec"] = _without_values(shown["spec"])
    return shown


def _without_values(node: Any) -> Any:
    """What stands in a field named `value`, at any depth, as a digest: it may be a password that nobody put into a Secret."""
    if isinstance(node, list):
        return [_without_values(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        name: f"<digest {digest(item)}>" if name == "value" and isinstance(item, str) else _without_values(item)
        for name, item in node.items()
    }


def conceal(secret: JsonObject) -> JsonObject:
    """A Secret whose values are digests: a change is seen, the value is not."""
    from base64 import b64encode

    plain = {name: b64encode(str(value).encode()).decode() for name, value in (secret.get("stringData") or {}).items()}
    data = {**(secret.get("data") or {}), **plain}
    rest = {name: value for name, value in secret.items() if name not in ("data", "stringData")}
    return {**rest, "data": {name: f"<digest {digest(str(value))}>" for name, value in data.items()}}


def unified(old: Any, new: Any, title: str) -> list[str]:
    """A unified diff of two YAML-able values or texts; empty when they are equal."""
    import yaml

    def text(value: Any) -> list[str]:
        if value is None:
            return []
        return (value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=True)).splitlines()

    return list(difflib.unified_diff(text(old), text(new), f"{title} (live)", f"{title} (after)", lineterm="", n=2))
