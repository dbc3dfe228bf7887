"""`moorage lint`: admits files as the API server would."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from moorage.cli.options import Output, OutputOption


def command(
    paths: Annotated[list[str], typer.Argument(help="Files, folders or - for standard input.")],
    old: Annotated[
        list[str] | None, typer.Option("--old", help="Stored objects: an object of the same name is an update of it.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    output: OutputOption = Output.text,
) -> None:
    """Check manifests as the API server would: schema, defaults, CEL, admission rules, siblings. Needs no server.

    Example:  moorage lint examples/keystone-ldap
    """
    from moorage.cli import manifests
    from moorage.keystone import ADMISSIONS
    from moorage.runtime.offline import lint

    result = lint(
        [(m.file, m.document, m.object) for m in manifests.read(paths)],
        [m.object for m in manifests.read(old or ())],
        ADMISSIONS,
    )
    if output is Output.json:
        typer.echo(json.dumps(result.to_wire(strict=strict), ensure_ascii=False))
    else:
        for finding in result.findings:
            where = f"{finding.file}: {finding.kind} {finding.namespace}/{finding.name}"
            path = f"{finding.path}: " if finding.path else ""
            typer.echo(f"{where}: {finding.severity}: {path}{finding.message}")
        errors = sum(1 for finding in result.findings if finding.severity == "error")
        warnings = len(result.findings) - errors
        typer.echo(f"{result.objects} objects checked: {errors} errors, {warnings} warnings")
    raise typer.Exit(0 if result.valid(strict=strict) else 1)
