"""An administrator at the stub or at a real Keystone 30: the same tests run at either."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest
from tests.keystone.stub_keystone import StubKeystone
from tests.real.keystone import PASSWORD, Keystone, keystone

from moorage.core.secret import SecretText
from moorage.keystone.identity import Identity, Login, Tokens
from moorage.net.calls import Calls


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    """A real Keystone for the tests of a file."""
    with keystone(tmp_path_factory.mktemp("keystone")) as running:
        yield running


@pytest.fixture(scope="module")
def kept() -> Tokens:
    """Tokens of the real one, for all tests of a file: its logins take a while."""
    return Tokens(lambda: datetime.now(UTC))


@pytest.fixture(params=["stub", pytest.param("real", marks=pytest.mark.e2e)])
async def identity(request: pytest.FixtureRequest) -> AsyncIterator[Identity]:
    """An administrator at either."""
    if request.param == "real":
        login = Login(request.getfixturevalue("served").url, "admin", SecretText(PASSWORD))
        async with Calls() as http:
            yield Identity(http, login, request.getfixturevalue("kept"))
        return
    async with StubKeystone() as stub, Calls() as http:
        login = Login(stub.url, "admin", SecretText("admin-password"))
        yield Identity(http, login, Tokens(lambda: datetime.now(UTC)))
