"""A scene for each test; whatever the test did, it ends with the proof of its secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .proof import prove
from .scene import Scene, scene
from .test_other_instances import namespace
from .test_powers import TENANT


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made
        await prove(made)


@pytest.fixture
async def admitting(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene with a namespace that the instance admits. It ends without that proof: not all of its clients are ours."""
    async with scene(tmp_path) as made:
        await namespace(made, TENANT.namespace)
        yield made
