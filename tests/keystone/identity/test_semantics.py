"""One suite for the seam: what our rules rely on in the Identity API holds for the stub and for a real Keystone 30 alike."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.real.directory import CORP, CORP_PASSWORD, CORP_READER, Directory, corp
from tests.real.keystone import Keystone

from moorage.core.secret import SecretText
from moorage.keystone.backend import KIND
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.render import Projected, project
from moorage.keystone.identity import Identity, Login, Tokens
from moorage.keystone.identity_errors import Conflict, Forbidden, NotFound, Refused, Unauthorized
from moorage.net.calls import Call, Calls, Server

pytestmark = pytest.mark.xdist_group("keystone")


def administrator(http: Calls, url: str, password: str = "admin-password") -> Identity:
    """A client with memory of its own."""
    return Identity(http, Login(url, "admin", SecretText(password)), Tokens(lambda: datetime.now(UTC)))


def new() -> str:
    """An id as a uid gives it."""
    return uuid.uuid4().hex


@pytest.mark.case("K5")
async def test_a_domain_gets_the_id_that_we_choose(identity: Identity) -> None:
    """Ownership stands on it."""
    id = new()
    made = await identity.create_domain(f"d{id}", id=id, description="ours")
    assert (made.id, made.enabled, made.description) == (id, True, "ours")
    assert await identity.domain(id) == await identity.domain_named(f"d{id}") == made


async def test_a_taken_name_or_id_conflicts(identity: Identity) -> None:
    """Whoever holds it."""
    id = new()
    made = await identity.create_domain(f"d{id}", id=id, description=None)
    for name, other in ((made.name, new()), (f"other{id}", id)):
        with pytest.raises(Conflict):
            await identity.create_domain(name, id=other, description=None)


@pytest.mark.case("B11")
async def test_a_domain_is_disabled_before_it_is_deleted(identity: Identity) -> None:
    """An enabled one is refused; a deleted one is not found."""
    id = new()
    await identity.create_domain(f"d{id}", id=id, description=None)
    with pytest.raises(Forbidden):
        await identity.delete_domain(id)
    assert not (await identity.update_domain(id, {"enabled": False})).enabled
    await identity.delete_domain(id)
    assert await identity.domain(id) is None
    for attempt in (identity.delete_domain(id), identity.update_domain(id, {"enabled": True})):
        with pytest.raises(NotFound):
            await attempt


async def test_name_and_description_change_in_place(identity: Identity) -> None:
    """Drift repair keeps the id."""
    id = new()
    await identity.create_domain(f"d{id}", id=id, description="a")
    changed = await identity.update_domain(id, {"name": f"e{id}", "description": "b"})
    assert (changed.id, changed.name, changed.description) == (id, f"e{id}", "b")


async def test_an_id_that_is_no_uuid_is_refused(identity: Identity) -> None:
    """400, with Keystone's own sentence."""
    with pytest.raises(Refused):
        await identity.create_domain("x", id="not-hex", description=None)


async def test_nobody_is_nobody(identity: Identity) -> None:
    """Absent by id and by name, also for ids that look like paths."""
    assert await identity.domain("nobody") is None
    assert await identity.domain("../users") is None
    assert await identity.domain_named("nobody") is None


async def test_a_wrong_password_is_unauthorized(identity: Identity) -> None:
    """And nothing about it is said."""
    client = administrator(identity._http, identity._login.url, "wrong-password")
    with pytest.raises(Unauthorized) as found:
        await client.domain("default")
    assert "wrong-password" not in str(found.value)


async def test_a_revoked_token_is_replaced(identity: Identity) -> None:
    """As after a key rotation: one more login, and the answer."""
    await identity.domain("default")
    token = (await identity._token()).text.reveal()
    headers = (("X-Auth-Token", token), ("X-Subject-Token", token))
    server = identity._http.server(identity.url)
    assert (await server.ask(Call("DELETE", "/auth/tokens", headers), 30)).status == 204
    before = identity.calls["login"]
    assert await identity.domain("default") is not None
    assert identity.calls["login"] == before + 1


# --- the rendered file in a real Keystone, against a real slapd


def backend(directory: Directory) -> dict[str, Any]:
    """A backend with TLS, a private CA and an option that only extraOptions can give."""
    users = {"treeDN": f"ou=people,{CORP}", "idAttribute": "uid", "nameAttribute": "uid", "filter": "(uid=u*)"}
    ldap = {
        "url": f"ldaps://127.0.0.1:{directory.tls_port}",
        "bindCredentialsSecretRef": {"name": "bind"},
        "suffix": CORP,
        "users": users,
        "tls": {"caBundleSecretRef": {"name": "ca"}},
    }
    spec = {"keystoneRef": {"name": "keystone"}, "domain": {"name": "corp"}, "type": "LDAP", "ldap": ldap}
    return {"metadata": {"name": "corp"}, "spec": {**spec, "extraOptions": {"page_size": "2"}}}


@pytest.mark.e2e
@pytest.mark.case("K7", "C12", "B05")
async def test_a_user_of_the_directory_logs_in_through_the_rendered_file(tmp_path: Path, served: Keystone) -> None:
    """Domain, file, new workers: token for the right password, 401 for the wrong one, users listed; then the domain goes."""
    id = new()
    async with Calls() as http:
        admin, server = administrator(http, served.url), http.server(served.url)
        await admin.create_domain("corp", id=id, description=None)
        with corp(tmp_path / "slapd") as directory:
            bind = {"username": CORP_READER.encode(), "password": f"{CORP_PASSWORD}\n".encode()}
            found = project(
                KIND.parse(backend(directory)), Materials({"bind": bind, "ca": {"ca.crt": directory.authority.pem}})
            )
            assert isinstance(found, Projected)
            for name, content in found.files.items():
                (served.domains / name).write_bytes(content)
            served.reload()
            assert await login(server, "u1", "u1-password") == 201
            assert await login(server, "u1", "wrong") == 401
            token = (await admin._token()).text.reveal()
            listing = await server.ask(Call("GET", f"/users?domain_id={id}", (("X-Auth-Token", token),)), 30)
            assert sorted(user["name"] for user in json.loads(listing.body)["users"]) == ["u0", "u1", "u2"]
            await admin.update_domain(id, {"enabled": False})
            await admin.delete_domain(id)
            assert await admin.domain(id) is None


async def login(server: Server, user: str, password: str) -> int:
    """Status of a password login in domain corp."""
    who = {"name": user, "domain": {"name": "corp"}, "password": password}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": who}}}}
    return (await server.ask(Call("POST", "/auth/tokens", body=json.dumps(body).encode()), 30)).status
