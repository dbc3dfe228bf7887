"""Keystone on a real PostgreSQL: from a wrong password to Ready, and a login."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e import example
from tests.e2e.cloud import KEYSTONE, Cloud, condition, holds
from tests.e2e.databases.site import DB_SECRET, on_server
from tests.e2e.one_machine.machine import Machine
from tests.real.postgres import Postgres, postgres

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """PostgreSQL with an empty database."""
    with postgres(tmp_path_factory.mktemp("postgres")) as served:
        yield served


async def test_a_wrong_password_is_named_and_the_right_one_leads_to_a_login(
    up: Machine, database: Postgres, opened: Cloud
) -> None:
    """Before the schema is made, too, the status holds the server's own words; nothing but the Secret has to be mended."""
    right = database.password
    documents = on_server(database, up.directory, 1)
    database.set_password("another")
    await opened.apply(documents)
    stuck = await opened.until(
        KEYSTONE, "keystone", lambda obj: "authentication failed" in condition(obj, "DatabaseReady")[2]
    )
    said = condition(stuck, "DatabaseReady")[2]
    assert f"database 127.0.0.1:{database.port}:" in said
    assert 'password authentication failed for user "keystone"' in said
    assert right not in said
    await opened.set_secret(DB_SECRET, password="another")
    await opened.until(KEYSTONE, "keystone", holds("DatabaseReady"))
    await opened.ready(example.BACKEND)
    await opened.until(KEYSTONE, "keystone", holds("Ready"))
    assert (await opened.administrator()).status == 201
    found = await opened.login("leela", "leela")
    assert (found.status, found.body["user"]["name"]) == (201, "leela")
    assert database.sql("\\connect keystone\nSELECT count(*) FROM id_mapping") != "0\n"
