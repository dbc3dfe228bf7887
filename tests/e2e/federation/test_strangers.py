"""What a stranger makes the sidecar do without any login, on the whole stand: fetch for them, register for them, wait for them. It does none of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from tests.e2e.federation.site import ACME, BETA, REDIRECT
from tests.e2e.federation.stand import Stand
from tests.e2e.federation.wire import Answer, ask, exchange
from tests.fakes.idp import Client, FakeIdp, Realm, User, fake_idp

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
EVIL = "evil"
WAITING = 30
"""Requests that a silent provider holds at once."""


@pytest.fixture
def lure(tmp_path: Path, site: Stand) -> Iterator[FakeIdp]:
    """A provider of the attacker's, with discovery and registration, that no backend names; the sidecar would trust its certificate."""
    client = Client("keystone", (f"{site.base}{REDIRECT}",))
    with fake_idp(tmp_path, [Realm(EVIL, (User("mallory"),), (client,))], site.idp.authority, host="127.0.0.14") as idp:
        yield idp


def _bodies(site: Stand, lure: FakeIdp) -> Iterator[dict[str, str]]:
    """What a form may ask the module for: discovery, an account, a session's end, an answer of a provider."""
    evil, ours = lure.issuer(EVIL), site.idp.issuer(ACME)
    start = {"target_link_uri": f"{site.base}/v3", "x_csrf": "abc", "method": "get"}
    for issuer in (evil, f"mallory@{lure.url.removeprefix('https://')}", f"{ours}@{lure.url.removeprefix('https://')}"):
        yield {"iss": issuer, **start}
        yield {"iss": ours, "disc_user": issuer, **start}
        yield {"disc_user": issuer, **start}
    yield {"code": "x", "state": "y", "iss": evil}
    yield {"id_token": "x.y.z", "state": "y", "iss": evil}
    yield {"error": "x", "error_description": "<script>", "state": "y", "iss": evil}
    yield {"logout_token": "x.y.z", "iss": evil}
    yield {"request_uri": f"{evil}/request", "iss": ours, **start}
    yield {"logout": f"{evil}/"}


@pytest.mark.case("S6")
async def test_nothing_in_a_form_makes_the_sidecar_ask_a_stranger_s_provider(site: Stand, lure: FakeIdp) -> None:
    """Bodies at the redirect URI, with queries that look good and queries that do not; no discovery, no keys, no registration."""
    known = urlencode({"iss": site.idp.issuer(ACME), "target_link_uri": f"{site.base}/v3"})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": "x_csrf=abc", "Accept": "text/html"}
    paths = [REDIRECT, f"{REDIRECT}?{known}", f"{REDIRECT}?x=y", f"{REDIRECT}?iss={quote(lure.issuer(EVIL), safe='')}"]
    for body, path in itertools.product(_bodies(site, lure), paths):
        found = await exchange(site.trust, "POST", f"{site.base}{path}", headers, urlencode(body).encode())
        target = found.header("Location")
        assert target.startswith((f"{site.base}/", f"{site.idp.url}/")) or not target, (path, body, target)
        assert "<script>" not in found.text
    assert lure.journal == []


@pytest.mark.case("S6")
async def test_nobody_registers_a_client_through_the_sidecar(site: Stand, lure: FakeIdp) -> None:
    """Neither at a stranger's provider nor at ours: an issuer without a client document of its own is none."""
    for issuer in (lure.issuer(EVIL), f"{site.idp.issuer(ACME)}/", site.idp.issuer(ACME).upper(), site.idp.url):
        for safe in ("", ":/"):
            query = f"iss={quote(issuer, safe=safe)}&target_link_uri={quote(site.base, safe='')}/v3&x_csrf=abc"
            found = await site.raw("GET", f"{REDIRECT}?{query}", {"Cookie": "x_csrf=abc", "Accept": "text/html"})
            assert found.status != 302, (issuer, found.status)
    assert await site.token_of(ACME)
    assert lure.journal == []
    assert not site.idp.asked("POST", "/register")
    assert not site.idp.asked("GET", "/.well-known/openid-configuration")


async def test_a_provider_that_keeps_silent_holds_up_its_own_people_only(site: Stand) -> None:
    """Thirty of its tokens at once, none of which is answered at the provider: passwords and the other providers go on, and each of the thirty ends."""
    tokens = [site.idp.token(ACME, "alice", "cli") for _ in range(WAITING)]
    url, loop = f"{site.base}{site.protected(ACME)}", asyncio.get_running_loop()

    def knock(token: str) -> Answer:
        return ask(site.trust, "GET", url, {"Authorization": f"Bearer {token}", "Accept": "application/json"})

    with ThreadPoolExecutor(WAITING) as pool:
        asked = site.idp.asked("POST", f"{ACME}/introspect")
        site.idp.realm(ACME).answers.clear()
        held = [loop.run_in_executor(pool, knock, token) for token in tokens]
        while site.idp.asked("POST", f"{ACME}/introspect") < asked + WAITING // 2:
            assert not any(item.done() for item in held)
            await asyncio.sleep(0.01)
        assert (await site.administrator_gets_in()).status == 201
        assert await site.token_of(BETA)
        assert {answer.status for answer in await asyncio.gather(*held)} <= {401, 500, 502, 503}
    site.idp.realm(ACME).answers.set()
    assert (await site.bearer(tokens[0])).status == 201


@pytest.mark.conformance  # twenty seconds that are spent waiting; that the limit is rendered, the case folders show
async def test_a_client_that_sends_a_byte_now_and_then_is_let_go(site: Stand) -> None:
    """A request that never ends holds a worker: the sidecar ends it, however busy it looks."""
    address, port = site.proxy.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(address, int(port))
    writer.write(b"GET /v3 HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    answer = asyncio.ensure_future(reader.read())
    try:
        async with asyncio.timeout(60):
            while not answer.done():
                writer.write(b"x")
                await asyncio.wait([answer], timeout=1)
    except ConnectionError:
        await asyncio.wait([answer])
    finally:
        writer.close()
    assert answer.done()
    assert (await site.administrator_gets_in()).status == 201
