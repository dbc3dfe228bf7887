"""`moorage crds`: what a cluster needs before `moorage run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from moorage.cli.options import Output, OutputOption
from moorage.cli.server import print_json
from moorage.cli.signature import Option
from moorage.core.errors import InputError


def command(
    out: Annotated[Path | None, Option("--out", help="Folder to write into; default: standard output.")] = None,
    output: OutputOption = Output.text,
) -> None:
    """Print the CRDs, RBAC and webhook configurations that belong to this version.

    Example:  moorage crds | kubectl apply -f -
    """
    from moorage.cli.systems import ADMISSIONS, KINDS, RULES
    from moorage.runtime.install import manifest_files

    files = manifest_files(KINDS, ADMISSIONS, RULES)
    if output is Output.json:
        import yaml

        items = [item for text in files.values() for item in yaml.safe_load_all(text)]
        print_json({"apiVersion": "v1", "kind": "List", "items": items})
        return
    if out is None:
        click.echo("---\n".join(files.values()), nl=False)
        return
    for name, text in files.items():
        target = out / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(str(target), f"cannot be written: {error.strerror}", "Name another folder") from error
        click.echo(target)
