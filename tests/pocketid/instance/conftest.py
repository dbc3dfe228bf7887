"""A scene for each test, on an embedded API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .scene import Scene, embedded, scene


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with embedded(tmp_path) as client, scene(client, tmp_path) as made:
        yield made
