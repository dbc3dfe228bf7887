"""The Identity API client against the stub: one login, typed errors, bounded sentences, no secret anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.keystone.stub_keystone import StubKeystone

from moorage.core.secret import SecretText
from moorage.keystone.addresses import internal_endpoint
from moorage.keystone.identity import Identity, Login, Tokens
from moorage.keystone.identity_errors import (
    Conflict,
    Forbidden,
    IdentityError,
    Nonsense,
    NotFound,
    Refused,
    ServerFailed,
    Unauthorized,
    Unreachable,
    clean,
)
from moorage.net.calls import Calls

ID = "6b1f0f5c3f0a4a559d0e2f9c1f6f7a11"


class Clock:
    """A time that tests move."""

    def __init__(self) -> None:
        self.moved = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.moved


@pytest.fixture
async def stub() -> AsyncIterator[StubKeystone]:
    async with StubKeystone() as keystone:
        yield keystone


@pytest.fixture
async def http() -> AsyncIterator[Calls]:
    async with Calls() as found:
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[..., Identity]


@pytest.fixture
def identity(stub: StubKeystone, http: Calls, clock: Clock) -> Make:
    """Clients that share their tokens, as the passes of one process do."""
    tokens = Tokens(clock)

    def make(password: str = "admin-password", url: str = "") -> Identity:
        return Identity(http, Login(url or stub.url, "admin", SecretText(password)), tokens)

    return make


async def test_many_clients_at_once_share_one_login(stub: StubKeystone, identity: Make) -> None:
    """Fifty passes that start together log in once."""
    await asyncio.gather(*(identity().domain("default") for _ in range(50)))
    assert stub.count() == {"login": 1, "GET": 50}


async def test_a_login_is_scoped_to_the_admin_project(stub: StubKeystone, identity: Make) -> None:
    """The body is the one of spec 4.2."""
    await identity().domain("default")
    auth = stub.requests[0][2]["auth"]
    assert auth["scope"] == {"project": {"name": "admin", "domain": {"name": "Default"}}}
    user = {"name": "admin", "domain": {"name": "Default"}, "password": "admin-password"}
    assert auth["identity"] == {"methods": ["password"], "password": {"user": user}}


async def test_a_token_is_used_until_shortly_before_its_end(stub: StubKeystone, identity: Make, clock: Clock) -> None:
    """The clock decides, not a refusal."""
    await identity().domain("default")
    clock.moved = timedelta(minutes=58)
    await identity().domain("default")
    assert stub.count()["login"] == 1
    clock.moved = timedelta(minutes=59, seconds=30)
    await identity().domain("default")
    assert stub.count()["login"] == 2


async def test_a_refused_token_is_replaced_once(stub: StubKeystone, identity: Make) -> None:
    """Keystone rotated its keys: one more login, and the request goes through."""
    await identity().domain("default")
    stub.tokens.clear()
    assert await identity().domain("default") is not None
    assert stub.count() == {"login": 2, "GET": 3}


async def test_a_second_refusal_is_an_error(stub: StubKeystone, identity: Make) -> None:
    """No endless circle of logins."""
    stub.fail("GET /v3/domains", 401, times=9)
    with pytest.raises(Unauthorized):
        await identity().domain("default")
    assert stub.count() == {"login": 2, "GET": 2}


async def test_a_refused_password_is_not_tried_again_at_once(stub: StubKeystone, identity: Make, clock: Clock) -> None:
    """Two thousand backends must not lock the administrator's account."""
    for _ in range(5):
        with pytest.raises(Unauthorized):
            await identity("wrong").domain("default")
    assert stub.count() == {"login": 1}
    clock.moved = timedelta(seconds=31)
    with pytest.raises(Unauthorized):
        await identity("wrong").domain("default")
    assert stub.count() == {"login": 2}


async def test_a_changed_password_logs_in_anew(stub: StubKeystone, identity: Make) -> None:
    """The token of the old password is not used for the new one."""
    await identity().domain("default")
    stub.password = "rotated"
    await identity("rotated").domain("default")
    assert stub.count()["login"] == 2


async def test_domains_are_created_found_changed_and_deleted(stub: StubKeystone, identity: Make) -> None:
    """A whole life, with the id that we choose."""
    client = identity()
    made = await client.create_domain("corp", id=ID, description="ours")
    assert (made.id, made.enabled, made.description) == (ID, True, "ours")
    assert await client.domain_named("corp") == await client.domain(ID) == made
    with pytest.raises(Forbidden):
        await client.delete_domain(ID)
    assert not (await client.update_domain(ID, {"enabled": False})).enabled
    await client.delete_domain(ID)
    assert await client.domain(ID) is None
    assert client.calls == {"login": 1, "POST": 1, "GET": 3, "PATCH": 1, "DELETE": 2}


async def test_a_taken_name_is_a_conflict_and_a_missing_domain_is_not_found(stub: StubKeystone, identity: Make) -> None:
    """Errors are told apart by type."""
    stub.add("corp")
    with pytest.raises(Conflict):
        await identity().create_domain("corp", id=ID, description=None)
    with pytest.raises(NotFound):
        await identity().update_domain(ID, {"enabled": False})
    assert "description" not in stub.writes()[0][2]["domain"]


async def test_a_name_is_found_on_any_page_and_the_exact_spelling_wins(stub: StubKeystone, identity: Make) -> None:
    """Pages are followed by their query alone, so a public address in a link is never dialled."""
    stub.page = 1
    for name in ("CORP", "Corp", "corp"):
        stub.add(name)
    found = await identity().domain_named("corp")
    assert found is not None
    assert found.name == "corp"
    assert stub.count()["GET"] == 3


async def test_a_case_blind_answer_counts_when_none_is_spelled_so(stub: StubKeystone, identity: Make) -> None:
    """MySQL compares names without regard to case; such a domain is in the way all the same."""
    stub.add("CORP")
    found = await identity().domain_named("corp")
    assert found is not None
    assert found.name == "CORP"


async def test_ids_are_quoted(stub: StubKeystone, identity: Make) -> None:
    """An id from a status cannot reach another path."""
    assert await identity().domain("../users") is None
    assert stub.requests[-1][1] == "/v3/domains/..%2Fusers"


@pytest.mark.parametrize(("status", "kind"), [(400, Refused), (429, Refused), (500, ServerFailed), (503, ServerFailed)])
async def test_other_refusals_are_typed(
    stub: StubKeystone, identity: Make, status: int, kind: type[IdentityError]
) -> None:
    """A person's mistake and a server's failure differ."""
    stub.fail("GET /v3/domains", status)
    with pytest.raises(kind) as found:
        await identity().domain("x")
    assert found.value.status == status


@pytest.mark.parametrize(
    ("status", "body"), [(200, "<html>"), (200, "[1]"), (200, '{"domain": 3}'), (302, ""), (300, '{"versions": {}}')]
)
async def test_what_is_no_identity_api_is_nonsense(stub: StubKeystone, identity: Make, status: int, body: str) -> None:
    """A proxy's page or a redirect is never taken for a domain, and never followed."""
    stub.fail("GET /v3/domains", status, body=body or "x")
    with pytest.raises(Nonsense):
        await identity().domain("x")
    assert stub.count()["GET"] == 1


async def test_a_login_without_token_or_end_is_nonsense(stub: StubKeystone, identity: Make) -> None:
    """A 200 from something else is no login."""
    stub.fail("POST /v3/auth", 200, body="{}")
    stub.fail("POST /v3/auth", 201, body="{}")
    for _ in range(2):
        with pytest.raises(Nonsense):
            await identity().domain("x")


async def test_no_answer_is_unreachable_and_says_where(identity: Make) -> None:
    """A closed port, and a name that nobody knows."""
    with pytest.raises(Unreachable, match=r"cannot connect to 127\.0\.0\.1:1"):
        await identity(url="http://127.0.0.1:1/v3").domain("x")
    with pytest.raises(Unreachable, match=r"cannot connect to keystone\.invalid:5000"):
        await identity(url="http://keystone.invalid:5000/v3").domain("x")


async def test_a_broken_connection_is_unreachable(identity: Make) -> None:
    """The server hangs up in the middle of an answer."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 999\r\n\r\n{")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match="the connection broke"):
            await identity(url=f"http://127.0.0.1:{port}/v3").domain("x")


@pytest.mark.case("P2")
async def test_no_secret_survives_in_a_message(stub: StubKeystone, identity: Make) -> None:
    """Whatever the server echoes, password and token are blotted out, and the sentence is one short line."""
    client = identity()
    await client.domain("default")
    token = next(iter(stub.tokens))
    stub.fail("GET /v3/domains", 400, f"token {token}\npassword admin-password {'x' * 999}", times=2)
    with pytest.raises(Refused) as found:
        await client.domain("y")
    text = str(found.value)
    assert token not in text
    assert "admin-password" not in text
    assert "\n" not in text
    assert len(text) < 400
    assert "admin-password" not in repr(client._login)


def test_sentences_are_one_bounded_line() -> None:
    """Controls become blanks, the end is marked when it is cut, a final full stop goes."""
    assert clean("a\x00b\r\n\tc\u2028d.") == "a b c d"
    assert len(clean("x" * 1000)) == 256
    assert clean("the s3cret is out", ("s3cret", "")) == "the *** is out"


def test_the_address_is_the_one_of_the_service() -> None:
    """Spec 4.2: always the internal address, whatever is published."""
    assert internal_endpoint("ks", "openstack") == "http://ks.openstack.svc.cluster.local:5000/v3"
