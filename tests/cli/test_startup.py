"""What a short command loads: `moorage lint` and `moorage --help` are quick because of what they leave alone (issue 3, Speed)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "keystone-ldap"
HEAVY = (
    "aiohttp",
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
    assert not loaded.intersection((*HEAVY, "pydantic", "yaml", "moorage.schema", "moorage.keystone"))
