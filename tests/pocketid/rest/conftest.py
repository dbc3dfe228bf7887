"""The REST client and a fake to ask, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.fakes.pocketid import Fake, serving

from moorage.core.secret import SecretText
from moorage.net.calls import Calls
from moorage.pocketid.rest import PocketID, Server


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
async def http() -> AsyncIterator[Calls]:
    async with Calls() as found:
        yield found


@pytest.fixture
async def pocketid(fake: Fake, http: Calls) -> AsyncIterator[PocketID]:
    async with serving(fake) as url:
        yield PocketID(http, Server(url, SecretText(fake.api_key)))
