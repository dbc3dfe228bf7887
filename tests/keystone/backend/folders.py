"""The case folders of KeystoneIdentityBackend; the machinery is `tests.keystone.folders`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.keystone import folders as shared
from tests.keystone.folders import CASES, compare, plain, text

__all__ = ["ROOT", "cases", "compare", "given", "text"]

ROOT = CASES / "keystone-backend"


def cases(door: str) -> list[Any]:
    """One parameter for each folder of a door."""
    return shared.cases(ROOT / door)


def given(folder: Path) -> dict[str, Any]:
    """The input of a case."""
    return plain(folder / "given.yaml")
