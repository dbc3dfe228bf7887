"""Client secrets on their way from a Secret through the real module to the provider: unchanged, whatever they hold."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pytest
from tests.e2e.federation import manifests
from tests.e2e.federation.sidecar import CONFIG, sidecar
from tests.e2e.federation.site import Site, protected
from tests.e2e.federation.stand import attached
from tests.fakes.exchange import Answer, Request
from tests.fakes.idp import Client, FakeIdp, Realm, User
from tests.fakes.idp.oidc import discovery
from tests.fakes.served import served
from tests.real.apache import echo, placed
from tests.real.certificates import Authority
from tests.real.gateway import gateway
from tests.real.ports import free_port

from moorage.keystone.backend import metadata_oidc
from moorage.keystone.service.federation import Ground, project_all
from moorage.keystone.service.seen import Attached

GATEWAY, SIDECAR, PROVIDER = "127.0.56.40", "127.0.56.50", "127.0.56.10"
ALL = string.ascii_letters + string.digits + string.punctuation + " "
SECRETS = {
    "a": ALL + "${PATH}${POD_IP}$$ üé€𝄞",
    "b": "secret&%secret",
    "c": 'a+b q"\\z',
    "d": "%41%zz+%2B",
    "e": " ends with blanks ",
    "f": "${PATH}\\${PATH}\\",
}
"""By realm; every printable character, those of case B24, what looks like an encoding, what looks like a variable."""


@dataclass(frozen=True)
class Odd(Client):
    """A client with a secret of its own."""

    own: str = ""

    @property
    def secret(self) -> str:
        return self.own


@dataclass
class Stand(Site):
    """`sent`: path and credentials of each request that carried any; in a Basic header they are form-encoded (RFC 6749, 2.3.1)."""

    method: str = field(kw_only=True)
    sent: list[tuple[str, str, str]] = field(kw_only=True)


def backend(idp: FakeIdp, base: str, realm: str, method: str) -> Attached:
    """A backend of a realm; the Secret was made from a file, so a line end follows."""
    issuer = idp.issuer(realm)
    found = attached(manifests.oidc(realm, discovery(issuer), idp.authority.pem.decode(), bearer=realm in "a"), base)
    whole: dict[str, Any] = {**discovery(issuer), "token_endpoint_auth_methods_supported": [method]}
    document = metadata_oidc.parse(json.dumps(whole).encode(), issuer)
    assert found.backend.spec.oidc is not None
    name = found.backend.spec.oidc.client_secret_ref.name
    secrets = {**found.materials.secrets, name: {"clientSecret": SECRETS[realm].encode() + b"\n"}}
    return Attached(found.backend, replace(found.materials, secrets=secrets, document=document))


def noting(idp: FakeIdp, sent: list[tuple[str, str, str]]) -> Callable[[Request], Answer]:
    """The provider's answers, and a note of the credentials that it was shown, as they were on the wire."""

    def answer(request: Request) -> Answer:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            name, _, secret = base64.b64decode(token).decode().partition(":")
            sent.append((request.path, name, secret))
        elif "client_secret" in request.form:
            sent.append((request.path, request.form["client_id"], request.form["client_secret"]))
        return idp.answer(request)

    return answer


@pytest.fixture(scope="module", params=["client_secret_basic", "client_secret_post"])
def stand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A realm and a backend for each secret."""
    folder, authority, port = tmp_path_factory.mktemp("secrets"), Authority(), free_port(GATEWAY)
    base = f"https://{GATEWAY}:{port}"
    redirect = (f"{base}/v3/OS-FEDERATION/redirect_uri",)
    realms = [Realm(name, (User("u"),), (Odd("keystone", redirect, own=own),)) for name, own in SECRETS.items()]
    with contextlib.ExitStack() as stack:
        idp = FakeIdp("", {realm.name: realm for realm in realms}, authority)
        sent: list[tuple[str, str, str]] = []
        idp.url = stack.enter_context(served(folder / "idp", "idp", authority, noting(idp, sent), host=PROVIDER))
        found = project_all(
            [backend(idp, base, name, request.param) for name in SECRETS], Ground(base, image=True, passphrase=ALL)
        )
        assert not found.left, found.left
        (folder / "run").mkdir()
        behind = stack.enter_context(echo(folder / "run" / "keystone.sock"))
        files = {f"{CONFIG}/{name}": content for name, content in placed(found.files, found.mounts).items()}
        proxy = stack.enter_context(sidecar(folder / "sidecar", files, behind.path, address=SIDECAR))
        stack.enter_context(gateway(folder / "gateway", authority, [proxy.url], host=GATEWAY, port=port))
        trust = ssl.create_default_context(cadata=authority.pem.decode())
        yield Stand(base, "", idp, trust, "", method=request.param, sent=sent)


@pytest.mark.case("B24", "K6", "C12")
@pytest.mark.parametrize("realm", SECRETS)
async def test_a_login_shows_the_provider_the_exact_secret(stand: Stand, realm: str) -> None:
    """At the token endpoint, in either way of showing it; the session that follows holds."""
    stand.sent.clear()
    person = stand.visitor()
    path = f"{stand.base}/v3/auth/OS-FEDERATION/identity_providers/{realm}/protocols/openid/websso?origin=x"
    page = await person.sign_in(await person.open(path), "u")
    assert page.status == 200, page.way
    ((where, name, secret),) = stand.sent
    assert (where, name) == (f"/realms/{realm}/token", "keystone")
    assert SECRETS[realm] == (unquote(secret) if stand.method == "client_secret_basic" else secret)


@pytest.mark.case("B24", "C12")
async def test_introspection_shows_the_provider_the_exact_secret(stand: Stand) -> None:
    """From the directive, where a variable would be expanded."""
    stand.sent.clear()
    headers = {"Authorization": f"Bearer {stand.idp.token('a', 'u', 'keystone')}"}
    found = await stand.raw("GET", protected("a", protocol="openid"), headers)
    assert found.status == 200
    ((where, name, secret),) = stand.sent
    assert (where, name) == ("/realms/a/introspect", "keystone")
    assert SECRETS["a"] == unquote(secret)
