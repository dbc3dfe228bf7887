"""A scene for each test; whatever the test did, it ends with the proof of its secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .proof import prove
from .scene import Scene, scene


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made
        await prove(made)
