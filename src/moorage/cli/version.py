"""`moorage version`."""

from __future__ import annotations

import json
import platform

import click

from moorage.cli.options import Output, OutputOption


def command(output: OutputOption = Output.text) -> None:
    """Print the version of moorage and of the Python it runs on.

    Example:  moorage version -o json
    """
    from moorage import __version__

    facts = {"moorage": __version__, "python": platform.python_version(), "system": platform.platform(terse=True)}
    click.echo(json.dumps(facts) if output is Output.json else "\n".join(f"{k}: {v}" for k, v in facts.items()))
