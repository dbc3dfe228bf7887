"""`moorage support-bundle`: what a helper needs to see, without any secret."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from moorage.cli.options import (
    AllNamespacesOption,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    Output,
    OutputOption,
)
from moorage.cli.redaction import redacted, without_secrets
from moorage.cli.server import Target, nothing_declared, print_json, states, with_client
from moorage.cli.signature import Option
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, ResourceType

if TYPE_CHECKING:
    from moorage.kube.client import Client


def command(
    out: Annotated[Path, Option("--out", help="The archive to write.")] = Path("moorage-support.tar.gz"),
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    everywhere: AllNamespacesOption = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Collect versions, statuses, events and redacted logs in one archive. No Secret is read and no secret is in it.

    Example:  moorage support-bundle -A --out support.tar.gz
    """
    if not out.parent.is_dir():
        raise InputError(str(out.parent), "is no folder", "Name a file in one that exists with --out")
    files, remark = with_client(Target(kubeconfig, context, namespace, everywhere), _collect)
    try:
        _write(out, files)
    except OSError as error:
        why = (error.strerror or "cannot be written").lower()
        raise InputError(str(out), why, "Name a file that may be written with --out") from error
    if remark:
        click.echo(f"warning: {remark}", err=True)
    if output is Output.json:
        print_json({"archive": str(out), "files": sorted(files)})
    else:
        click.echo(f"{out}: {len(files)} files")


def _write(out: Path, files: Mapping[str, str]) -> None:
    with tarfile.open(out, "w:gz") as archive:
        for name, text in sorted(files.items()):
            data = text.encode(errors="replace")
            entry = tarfile.TarInfo(f"moorage-support/{name}")
            entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
            archive.addfile(entry, io.BytesIO(data))
    out.chmod(0o600)


async def _collect(client: Client, namespace: str) -> tuple[dict[str, str], str]:
    """Texts by name in the archive, and what to say when no resource is in it."""
    import platform

    from moorage import __version__
    from moorage.cli.systems import KINDS
    from moorage.kube import resources
    from moorage.kube.errors import ApiError

    facts = {"moorage": __version__, "python": platform.python_version(), "system": platform.platform()}
    found = await states(client, namespace)
    files = {
        "versions.json": _text({**facts, "server": await client.raw("GET", "/version")}),
        "status.json": _text([state.to_wire() for state in found]),
    }
    for resource in (*(kind.resource for kind in KINDS), *_collected(resources)):
        try:
            listing = await client.list(resource, namespace)
        except ApiError as error:
            files[f"objects/{resource.plural}.error"] = redacted(str(error))
            continue
        files[f"objects/{resource.plural}.json"] = _text([_without_noise(item) for item in listing.items])
        if resource == resources.PODS:
            files |= await _logs(client, listing.items)
    return files, "" if found else await nothing_declared(client, namespace)


def _collected(resources: Any) -> tuple[ResourceType, ...]:
    return (
        resources.CORE_EVENTS,
        resources.DEPLOYMENTS,
        resources.REPLICA_SETS,
        resources.PODS,
        resources.JOBS,
        resources.SERVICES,
        resources.PVCS,
        resources.NETWORK_POLICIES,
    )


async def _logs(client: Client, pods: Sequence[JsonObject]) -> dict[str, str]:
    from moorage.core.meta import key_of
    from moorage.kube.errors import ApiError

    found: dict[str, str] = {}
    for pod in pods:
        key = key_of(pod)
        for container in pod["spec"]["containers"]:
            name = f"logs/{key.namespace}/{key.name}/{container['name']}.log"
            try:
                lines = [line async for line in client.logs(key, container=container["name"], tail=2000)]
                found[name] = redacted("\n".join(lines))
            except ApiError as error:
                found[name] = redacted(str(error))
    return found


def _without_noise(obj: JsonObject) -> JsonObject:
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if not k.endswith("last-applied-configuration")}
    meta.pop("annotations", None)
    return {**obj, "metadata": meta | ({"annotations": notes} if notes else {})}


def _text(value: Any) -> str:
    return json.dumps(without_secrets(value), ensure_ascii=False, indent=2, sort_keys=True)
