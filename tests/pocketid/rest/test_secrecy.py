"""No secret and no value of a request in any error, repr or log, whatever the server echoes."""

from __future__ import annotations

import logging
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from tests.fakes.pocketid import Fake, serving
from tests.real.certificates import Authority

from moorage.core.secret import SecretText
from moorage.net.calls import Calls
from moorage.pocketid.rest import PocketID, PocketIDError, Server, Unreachable

KEY, VALUE, TOKEN = "key-that-nobody-may-see", "value-that-nobody-may-see", "token-that-nobody-may-see"
SECRETS = (KEY, VALUE, TOKEN)


@pytest.fixture
async def parrot() -> AsyncIterator[str]:
    """A server that refuses everything and says in every corner of its answer what it was sent."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        heard = f"{request.raw_path} {dict(request.headers)} {(await request.read()).decode()}"
        fields = [{"field": heard, "code": heard, "message": heard}]
        body = {
            "error": heard,
            "code": "validation_failed",
            "details": {"fields": fields, "property": heard},
            "request_id": heard,
        }
        if request.path.startswith("/reason"):
            body |= {"code": heard, "details": heard}
        if request.path.startswith("/plain"):
            body |= {"details": {}}
        return web.json_response(body, status=400)

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


_WRITES: list[Callable[[PocketID], Awaitable[object]]] = [
    lambda p: p.create_oidc_client_secret("app", SecretText(VALUE)),
    lambda p: p.create_scim_service_provider("app", "https://s.example", SecretText(TOKEN)),
    lambda p: p.update_scim_service_provider("id", "app", "https://s.example", SecretText(TOKEN)),
    lambda p: p.create_oidc_client(
        {"name": VALUE, "credentials": {"federatedIdentities": [{"publicKeys": [{"d": TOKEN}]}]}}
    ),
    lambda p: p.list_oidc_clients(),
]


@pytest.mark.parametrize("corner", ["", "/reason", "/plain"])
@pytest.mark.parametrize("write", _WRITES)
@pytest.mark.case("P2")
async def test_a_parrot_gets_no_secret_into_an_error(
    parrot: str, corner: str, write: Callable[[PocketID], Awaitable[object]], http: Calls
) -> None:
    with pytest.raises(PocketIDError) as refused:
        await write(PocketID(http, Server(parrot + corner, SecretText(KEY))))
    error = refused.value
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)) + str(error.args)
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.case("P2")
async def test_a_life_with_secrets_leaves_none_in_logs_or_reprs(caplog: pytest.LogCaptureFixture, http: Calls) -> None:
    caplog.set_level(logging.DEBUG)
    fake = Fake("2.17.0", api_key=KEY)
    async with serving(fake) as url:
        pocketid = PocketID(http, Server(url, SecretText(KEY)))
        made = await pocketid.create_oidc_client({"id": "app", "name": "app"})
        given = await pocketid.create_oidc_client_secret("app", SecretText(VALUE))
        provider = await pocketid.create_scim_service_provider("app", "https://s.example", SecretText(TOKEN))
        user = await pocketid.create_user({"username": "ann", "email": "ann@example.com"})
        code = await pocketid.create_one_time_access_token(user.id, timedelta(hours=1))
        key = await pocketid.create_api_key_for_user(user.id, "key", datetime.now(UTC) + timedelta(days=1))
        read = await pocketid.get_oidc_client("app")
    assert made.secret is not None
    secrets = (*SECRETS, made.secret.value.reveal(), code.reveal(), key.token.reveal())
    shown = " ".join(map(repr, (made, given, provider, user, code, key, read, Server(url, SecretText(KEY)), read.raw)))
    assert [secret for secret in secrets if secret in shown or secret in caplog.text] == []


@pytest.mark.case("P2")
async def test_a_login_code_stands_in_no_error(fake: Fake, pocketid: PocketID) -> None:
    user = await pocketid.create_user({"username": "ann", "email": "ann@example.com"})
    fake.faults.add("drop_before", path="/api/one-time-access-token/*")
    with pytest.raises(Unreachable) as broken:
        await pocketid.create_api_key_for_user(user.id, "key", datetime.now(UTC) + timedelta(days=1))
    assert str(broken.value).startswith("POST /api/one-time-access-token/***: ")


# --- whom it is sent to


async def test_certificates_are_verified_against_the_given_authority(
    fake: Fake, http: Calls, tmp_path_factory: pytest.TempPathFactory
) -> None:
    authority, stranger = Authority(), Authority("Somebody else")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(tmp_path_factory.mktemp("tls"), "pocketid", ("127.0.0.1",)))
    async with serving(fake, tls=context) as url:
        key = SecretText(fake.api_key)
        trusting = PocketID(http, Server(url, key, authority.pem))
        assert (await trusting.get_current_version()).text == "2.14.0"
        for ca in (None, stranger.pem):
            with pytest.raises(Unreachable, match="not trusted"):
                await PocketID(http, Server(url, key, ca)).get_current_version()
        with pytest.raises(PocketIDError, match="no certificate"):
            await PocketID(http, Server(url, key, b"nothing")).get_current_version()


async def test_writes_stop_at_the_fence_and_reads_pass(fake: Fake) -> None:
    class LostLeadership(Exception):
        pass

    def fence() -> None:
        raise LostLeadership

    async with serving(fake) as url, Calls(fence=fence) as fenced:
        pocketid = PocketID(fenced, Server(url, SecretText(fake.api_key)))
        await pocketid.list_oidc_clients()
        with pytest.raises(LostLeadership):
            await pocketid.create_oidc_client({"name": "x"})
    assert fake.journal.writes() == []
