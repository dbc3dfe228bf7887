"""The case folders of Keystone; the machinery is `tests.keystone.folders`."""

from __future__ import annotations

from typing import Any

from tests.keystone import folders as shared
from tests.keystone.folders import CASES, compare, text
from tests.keystone.service import given

__all__ = ["cases", "compare", "text"]


def cases(door: str) -> list[Any]:
    """One parameter for each folder of a door; its given.yaml may build on another."""
    return shared.cases(CASES / "keystone-service" / door, given.load)
