"""`moorage lint`: admits files as the API server would."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import click

from moorage.cli.options import Output, OutputOption
from moorage.cli.printable import printable
from moorage.cli.signature import Argument, Option
from moorage.core.errors import InputError

if TYPE_CHECKING:
    from moorage.runtime.offline import Finding, LintResult, Placed


def command(
    paths: Annotated[list[str], Argument(help="Files, folders or - for standard input.")],
    old: Annotated[
        list[str] | None, Option("--old", help="Stored objects: an object of the same name is an update of it.")
    ] = None,
    strict: Annotated[bool, Option("--strict", help="Warnings count as errors.")] = False,
    output: OutputOption = Output.text,
) -> None:
    """Check manifests as the API server would: schema, defaults, CEL, admission rules, siblings. Needs no server.

    Example:  moorage lint examples/keystone-ldap
    """
    from moorage.cli import manifests
    from moorage.cli.systems import admissions_of
    from moorage.runtime.offline import kinds_in, lint, unreadable

    try:
        placed = [(m.file, m.document, m.object) for m in manifests.read(paths)]
        stored = [m.object for m in manifests.read(old or ())]
        needed = kinds_in([*(obj for _, _, obj in placed), *stored])
        result = lint(placed, stored, admissions_of(needed))
        result = result._replace(findings=(*result.findings, *_beside(result, placed)))
    except InputError as error:
        if output is Output.json:
            click.echo(json.dumps(unreadable(str(error)), ensure_ascii=False))
        raise
    if output is Output.json:
        click.echo(json.dumps(result.to_wire(strict=strict), ensure_ascii=False))
    else:
        for finding in result.findings:
            where = f"{finding.file}: document {finding.document}: {finding.kind} {finding.namespace}/{finding.name}"
            click.echo(printable(f"{where}: {finding.severity}: {finding.message}"))
        errors = sum(1 for finding in result.findings if finding.severity == "error")
        warnings = len(result.findings) - errors
        click.echo(f"{result.objects} objects checked: {errors} errors, {warnings} warnings")
        if not result.objects:
            click.echo("nothing was checked: there is no object of Moorage's kinds in the input", err=True)
    raise click.exceptions.Exit(0 if result.valid(strict=strict) and (result.objects or not strict) else 1)


def _beside(result: LintResult, placed: Iterable[Placed]) -> Iterable[Finding]:
    """Warnings about Secrets of the files, each at the backend that names it."""
    if not any(obj["kind"] == "KeystoneIdentityBackend" for obj in result.admitted):
        return
    from moorage.keystone.secret_doubts import doubts
    from moorage.runtime.offline import Finding

    for key, why in doubts(result.admitted, result.others):
        file, document = next(
            (file, document)
            for file, document, obj in placed
            if obj["kind"] == "KeystoneIdentityBackend"
            and (obj["metadata"].get("namespace") or "default", obj["metadata"]["name"]) == (key.namespace, key.name)
        )
        kind = "KeystoneIdentityBackend"
        yield Finding(file, document, kind, key.namespace, key.name, "warning", why.partition(":")[0], "Secret", why)
