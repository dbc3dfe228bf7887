"""A directory that takes connections and never answers, on a real Keystone under uWSGI: why a request has an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.e2e.federation.objects import administrator
from tests.keystone.service.given import keystone as declared
from tests.real.keystone import PASSWORD, keystone

from moorage.keystone.service import pods

DOMAIN_FILE = """\
[identity]
driver = ldap
[ldap]
url = ldaps://127.0.0.1:{port}
suffix = dc=hang
tls_cacertdir = /etc/ssl/certs
"""


@asynccontextmanager
async def silent() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """The port of a directory that says nothing, not even in the handshake of TLS, and whether somebody came."""
    came, gone = asyncio.Event(), asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await gone.wait()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], came
        gone.set()


@pytest.mark.e2e
async def test_a_silent_directory_holds_a_worker_no_longer_than_a_request_lasts(tmp_path: Path) -> None:
    """One worker, one login of the domain: without an end of requests nobody, not even `admin` of Default, would get in ever again."""
    async with silent() as (port, came):
        with keystone(tmp_path, longest=10) as real:
            async with administrator(real.url, PASSWORD) as admin:
                await admin.domain("hang")
            (real.domains / "keystone.hang.conf").write_text(DOMAIN_FILE.format(port=port))
            real.reload()
            user = {"name": "anybody", "domain": {"name": "hang"}, "password": "x"}
            auth = {"identity": {"methods": ["password"], "password": {"user": user}}}
            async with aiohttp.ClientSession() as session:
                while not came.is_set():  # a worker that is busy with its own start may end before it gets there
                    with pytest.raises(aiohttp.ClientError):
                        await session.post(f"{real.url}/auth/tokens", json={"auth": auth})
            async with administrator(real.url, PASSWORD) as admin:
                assert (await admin.ask("GET", "/auth/domains"))[0] == 200


@pytest.mark.parametrize(("harakiri", "seconds"), [(None, pods.LONGEST), (7, 7)])
def test_every_keystone_ends_a_request_that_hangs(harakiri: int | None, seconds: int) -> None:
    """Declared or not."""
    spec = declared({"uwsgi": {"harakiri": harakiri}} if harakiri else {}).spec
    argv = pods.uwsgi(spec)
    assert argv[argv.index("--harakiri") + 1] == str(seconds)
