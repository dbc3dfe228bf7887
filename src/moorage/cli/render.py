"""`moorage render`: what the controllers would project from files."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import click

from moorage.cli.options import Output, OutputOption
from moorage.cli.server import print_json
from moorage.cli.signature import Argument, Option
from moorage.core.errors import InputError


def command(
    paths: Annotated[list[str], Argument(help="Files, folders or - for standard input.")],
    out: Annotated[Path, Option("--out", help="Folder to write into.")],
    document: Annotated[
        list[str] | None,
        Option(
            "--document",
            metavar="URL=FILE",
            help="A file that stands for a document that the operator would fetch from this URL.",
        ),
    ] = None,
    output: OutputOption = Output.text,
) -> None:
    """Write what the controllers would project from these files. Needs no server.

    Of Pocket-ID these are the children of instances that are deployed, but for Secrets with random keys; what clients, groups, APIs and users
    make depends on their server's answers, so they are checked and named.

    Children go to OUT/<namespace>/<kind>/<name>.yaml, files of projected ConfigMaps and Secrets to
    OUT/<namespace>/files/<base>/<key> with mode 0600. Exit code 1 when a resource is refused or skipped.

    Example:  moorage render examples/keystone-ldap --out /tmp/rendered
    """
    from moorage import keystone
    from moorage.cli import manifests
    from moorage.cli.projected import documents
    from moorage.cli.systems import ADMISSIONS
    from moorage.core.meta import key_of
    from moorage.keystone.offline import render
    from moorage.pocketid import offline
    from moorage.pocketid.settings import settings
    from moorage.runtime.install import to_yaml
    from moorage.runtime.offline import lint

    fetched = documents(document or ())
    found = lint([(m.file, m.document, m.object) for m in manifests.read(paths)], (), ADMISSIONS)
    refused = [finding for finding in found.findings if finding.severity == "error"]
    for finding in refused:
        click.echo(f"{finding.kind} {finding.namespace}/{finding.name}: refused: {finding.message}", err=True)
    rendered = render(found.admitted, found.others, fetched)
    secrets = [obj for obj in found.others if obj["kind"] == "Secret"]
    deployed = [obj for obj in found.admitted if offline.deployed(obj)]
    servers = [offline.children(obj, secrets, settings().image, datetime.now(UTC)) for obj in deployed]
    children = [*rendered.children, *(child for server in servers for child in server.children)]
    skips = [(s.kind, s.key, s.why) for s in rendered.skipped]
    skips += [
        (obj["kind"], key_of(obj), server.why) for obj, server in zip(deployed, servers, strict=True) if server.why
    ]
    for child in children:
        meta = child["metadata"]
        _write(out, (meta["namespace"], child["kind"].lower(), f"{meta['name']}.yaml"), to_yaml([child]).encode())
    for (namespace, base, key), data in sorted(rendered.files.items()):
        _write(out, (namespace, "files", base, key), data)
    for kind, at, why in skips:
        click.echo(f"{kind} {at}: skipped: {why}", err=True)
    for obj in found.admitted:
        if obj["kind"] not in keystone.SYSTEM.folders and obj not in deployed:
            click.echo(
                f"{obj['kind']} {key_of(obj)}: admitted; what it makes depends on its server's answers", err=True
            )
    if output is Output.json:
        left = [{"kind": kind, "namespace": at.namespace, "name": at.name, "why": why} for kind, at, why in skips]
        names = sorted("/".join((namespace, "files", base, key)) for namespace, base, key in rendered.files)
        print_json({"out": str(out), "children": len(children), "files": names, "skipped": left})
    else:
        click.echo(f"{out}: {len(children)} children, {len(rendered.files)} files")
    raise click.exceptions.Exit(1 if refused or skips else 0)


def _write(out: Path, parts: tuple[str, ...], data: bytes) -> None:
    """Whole or not at all, readable by the owner only (children hold secrets), and never outside `out`, through no link.

    Raises:
        InputError: the folder cannot be written.
    """
    target = out.joinpath(*parts)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not target.parent.resolve().is_relative_to(out.resolve()):
            raise InputError(str(target.parent), "leads outside the folder that --out names", "Remove the link")
        fresh = target.with_name(f".{target.name}.new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)
        fresh.rename(target)
    except OSError as error:
        raise InputError(
            str(target), f"cannot be written: {error.strerror}", "Name another folder with --out"
        ) from error
