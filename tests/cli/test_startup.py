"""What a short command loads: `moorage lint` and `moorage --help` are quick because of what they leave alone (issue 3, Speed)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from moorage.cli import COMMANDS, build

EXAMPLES = Path(__file__).parents[2] / "examples" / "keystone-ldap"
HEAVY = (
    "aiohttp",
    "pydantic",
    "asyncio",
    "cryptography",
    "lxml",
    "uvicorn",
    "starlette",
    "sqlite3",
    "ssl",
    "rich",
    "structlog",
    "prometheus_client",
)
_LIST = """
import atexit, json, sys
from moorage.cli import main
atexit.register(lambda: print("\\n" + json.dumps(sorted(sys.modules))))
main()
"""


def _loaded(*arguments: str) -> set[str]:
    """The modules that a call has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", _LIST, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("file", ["20-keystone.yaml", "30-backend.yaml"])
def test_lint_loads_neither_a_network_nor_a_cryptography_stack(file: str) -> None:
    """Checking a manifest needs the schema engine and the rules of its kind, no more."""
    assert not _loaded("lint", str(EXAMPLES / file)).intersection(HEAVY)


def test_lint_loads_only_the_kinds_that_the_files_name() -> None:
    """A backend alone does not load the declaration of a Keystone."""
    loaded = _loaded("lint", str(EXAMPLES / "30-backend.yaml"))
    assert "moorage.keystone.backend.types" in loaded
    assert "moorage.keystone.service.types" not in loaded


def test_lint_loads_the_types_of_cel_only_where_a_rule_needs_them() -> None:
    """No rule of a backend reads a time, so nothing is walked for conversions."""
    assert "moorage.schema.celtypes" not in _loaded("lint", str(EXAMPLES / "30-backend.yaml"))


def test_help_loads_no_declaration() -> None:
    """`moorage --help` tells what commands there are; it needs no kind and no pydantic."""
    loaded = _loaded("--help")
    assert not loaded.intersection((*HEAVY, "pydantic_core", "yaml", "moorage.schema", "moorage.keystone"))


def test_the_list_of_commands_says_what_the_commands_say_of_themselves() -> None:
    """It is written down beside their names, because reading them all takes longer than a person wants to wait for it."""
    tree = build()
    found = {name: tree.get_command(click.Context(tree), name) for name in COMMANDS}
    said = {
        name: ((command and command.help) or "").split("\n\n")[0].replace("\n", " ") for name, command in found.items()
    }
    assert said == {name: says for name, (_, says) in COMMANDS.items()}


def test_a_call_that_names_no_command_reads_none() -> None:
    """The list needs their names only; a flag before a command is no command."""
    assert not {name for name in _loaded("--help") if name.startswith("moorage.cli.")}
    assert "moorage.cli.version" in _loaded("--debug", "version")
    assert "moorage.cli.status" not in _loaded("--help", "status")
