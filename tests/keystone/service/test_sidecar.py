"""The rendered sidecar on the real Apache, before a backend that tells what reached it: who gets through, and with which claims."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.e2e.federation import manifests
from tests.e2e.federation.sidecar import CONFIG, sidecar
from tests.e2e.federation.site import ACME, BETA, CORP, PROTOCOLS, Site, realms
from tests.e2e.federation.stand import attached
from tests.fakes.idp import FakeIdp, ServiceProvider, User, fake_idp
from tests.real.apache import Echo, complaints, directives, echo, placed
from tests.real.certificates import Authority
from tests.real.gateway import gateway
from tests.real.ports import free_address, free_port
from yarl import URL

from moorage.keystone.backend.federation import spellings
from moorage.keystone.service.federation import Federation, Ground, project_all

GATEWAY, SIDECAR = "127.0.55.40", free_address(5050)
DASHBOARD = "https://dash.example.test/auth/websso/"
PENDING = "HTTP_X_BADGE_NUMBER"
"""What a rule of a backend asks for that is attached and not served."""


@dataclass
class Stand(Site):
    """The public address, and what is behind it."""

    echo: Echo = field(kw_only=True)
    found: Federation = field(kw_only=True)
    log: Path = field(kw_only=True)


def projected(idp: FakeIdp, base: str) -> Federation:
    """The three backends of a site, and one whose domain is not ready."""
    wanted = [attached(documents, base) for documents in manifests.backends(idp).values()]
    absent = manifests.oidc("late", {**manifests.discovery("https://late.example.test/realms/x")}, "", bearer=False)
    absent[-1]["spec"]["mappings"][0]["remote"].append({"type": PENDING})
    late = attached(absent, base)
    late = type(late)(late.backend.model_copy(update={"status": type(late.backend.status)()}), late.materials)
    found = project_all([*wanted, late], Ground(base, image=True, dashboards=(DASHBOARD,), passphrase="p${PATH}" * 6))
    assert [left.name for left in found.left] == ["late"], found.left
    return found


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Provider, echo, sidecar, gateway."""
    folder, authority, port = tmp_path_factory.mktemp("sidecar"), Authority(), free_port(GATEWAY)
    base = f"https://{GATEWAY}:{port}"
    with contextlib.ExitStack() as stack:
        idp = stack.enter_context(fake_idp(folder / "idp", realms(base), authority, host="127.0.55.10"))
        found = projected(idp, base)
        assert found.sp is not None
        idp.realm(CORP).providers.append(ServiceProvider.of(found.sp.document))
        (folder / "run").mkdir()
        backend = stack.enter_context(echo(folder / "run" / "keystone.sock"))
        files = {f"{CONFIG}/{name}": content for name, content in placed(found.files, found.mounts).items()}
        proxy = stack.enter_context(
            sidecar(folder / "sidecar", files, backend.path, address=SIDECAR, defines=("SAML_HERE",))
        )
        stack.enter_context(gateway(folder / "gateway", authority, [proxy.url], host=GATEWAY, port=port))
        trust = ssl.create_default_context(cadata=authority.pem.decode())
        yield Stand(base, "", idp, trust, "", origin=DASHBOARD, echo=backend, found=found, log=proxy.process.log)


def forged() -> dict[str, str]:
    """Every claim that a rule of any backend asks for, in every spelling that a WSGI server folds into it."""
    names = ("OIDC-ISS", "OIDC-PREFERRED-USERNAME", "OIDC-EMAIL", "OIDC-GROUPS", "MELLON-IDP", "MELLON-NAME-ID", "MELLON-GROUPS",
             "MELLON-USERNAME", "X-BADGE-NUMBER")  # fmt: skip
    spelled = itertools.chain.from_iterable(spellings(name) for name in names)
    return {name.title(): "forged" for name in spelled}


def direct(
    path: str, headers: dict[str, str] | None = None, method: str = "GET", *, address: str = SIDECAR
) -> tuple[int, dict[str, str], str]:
    """One request to the sidecar itself, path and headers as they are."""
    connection = http.client.HTTPConnection(address, 5050, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {k.title(): v for k, v in answer.getheaders()}, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


# --- what httpd says


@pytest.mark.case("B18")
def test_httpd_reads_it_without_a_word(stand: Stand, tmp_path: Path) -> None:
    """`apache2 -t`, in the pod that answers SAML and in those that hand it on."""
    files = placed(stand.found.files, stand.found.mounts)
    assert complaints(tmp_path, files) == []
    assert complaints(tmp_path, files, ["SAML_HERE"]) == []


@pytest.mark.case("B18")
def test_the_pinned_modules_know_every_directive(stand: Stand, tmp_path: Path) -> None:
    """Each name stands in `apache2 -L`; the SAML block counts, too, wherever it is answered."""
    files = placed(stand.found.files, stand.found.mounts)
    known = directives(tmp_path, files)
    text = b"\n".join(files[name] for name in ("httpd-base.conf", "conf.d/proxy.conf")).decode()
    used = {line.split()[0].strip("</>").lower() for line in text.splitlines() if line.strip()}
    assert {"oidccryptopassphrase", "mellonidp", "oidcoauthintrospectionendpoint"} <= used
    assert used - {name.lower() for name in known} == set()


# --- deny by default


def protected(name: str, protocol: str) -> list[str]:
    return [
        f"/v3/OS-FEDERATION/identity_providers/{name}/protocols/{protocol}/auth",
        f"/v3/auth/OS-FEDERATION/identity_providers/{name}/protocols/{protocol}/websso",
    ]


TRICKS = {
    "as it is": lambda path: path,
    "slash at the end": lambda path: f"{path}/",
    "slashes at the end": lambda path: f"{path}///",
    "two slashes": lambda path: path.replace("/protocols", "//protocols"),
    "leading slashes": lambda path: f"//{path}",
    "a dot": lambda path: path.replace("/protocols", "/./protocols"),
    "two dots": lambda path: path.replace("/protocols", "/x/../protocols"),
    "encoded letter": lambda path: (
        path.replace("protocols", "pr%6ftocols").replace("/auth", "/a%75th").replace("/web", "/w%65b")
    ),
    "encoded dash": lambda path: path.replace("OS-FED", "OS%2DFED"),
    "other case": lambda path: path.replace("OS-FEDERATION", "os-federation"),
    "query": lambda path: f"{path}?x=/v3",
}


@pytest.mark.case("S2")
@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT"])
def test_what_no_backend_protects_is_denied(stand: Stand, trick: str, method: str) -> None:
    """An unknown provider, an unknown protocol of a known one, a backend that waits, the websso path of a protocol that two share."""
    paths = [*protected("nobody", "mapped"), *protected(ACME, "mapped"), *protected("late", "openid"),
             "/v3/auth/OS-FEDERATION/websso/openid", "/v3/auth/OS-FEDERATION/websso/saml2"]  # fmt: skip
    before = len(stand.echo.seen)
    for path in paths:
        status, _, _ = direct(TRICKS[trick](path), {"Host": "x", "Content-Length": "0"}, method)
        assert status == 403, path
    assert len(stand.echo.seen) == before


@pytest.mark.case("S2")
@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("name", [ACME, BETA, CORP])
def test_no_spelling_of_a_protected_path_goes_through_without_a_login(stand: Stand, name: str, trick: str) -> None:
    """Redirected to the login, or denied, whatever is forged."""
    before = len(stand.echo.seen)
    for path in protected(name, PROTOCOLS[name]):
        status, _, _ = direct(TRICKS[trick](path), {"Host": "x", "Accept": "text/html", **forged()})
        assert status in (302, 303, 403), path
    assert len(stand.echo.seen) == before


def test_everything_else_is_keystones(stand: Stand) -> None:
    """Passwords, discovery and the administration of federation need no session."""
    for path in ("/v3", "/v3/auth/tokens", "/v3/OS-FEDERATION/identity_providers", "/v3/OS-FEDERATION/identity_providers/acme",
                 "/v3/OS-FEDERATION/identity_providers/acme/protocols/openid", "/v3/OS-FEDERATION/projects"):  # fmt: skip
        assert direct(path, {"Host": "x"})[0] == 200, path
        assert stand.echo.seen[-1][0] == f"GET {path} HTTP/1.1"


def test_a_browser_is_sent_to_the_login_of_the_providers_own_issuer(stand: Stand) -> None:
    """OIDC: 302 to the redirect URI with `iss`; SAML: 303 to mellon's login."""
    for path in protected(BETA, "openid"):
        status, headers, _ = direct(path, {"Host": URL(stand.base).authority, "Accept": "text/html"})
        issuer = quote(stand.idp.issuer(BETA), safe="")
        assert status == 302
        assert headers["Location"].startswith(f"{stand.base}/v3/OS-FEDERATION/redirect_uri?iss={issuer}&")
    for path in protected(CORP, "mapped"):
        status, headers, _ = direct(path, {"Host": URL(stand.base).authority})
        assert status == 303
        assert headers["Location"].startswith(f"{stand.base}{protected(CORP, 'mapped')[0]}/mellon/login?")


@pytest.mark.case("B43")
def test_the_service_providers_metadata_is_served_as_it_was_made(stand: Stand) -> None:
    """Without a login, and with the entityID that was announced."""
    assert stand.found.sp is not None
    status, _, body = direct(f"{protected(CORP, 'mapped')[0]}/mellon/metadata", {"Host": "x"})
    assert status == 200
    assert ServiceProvider.of(body.encode()) == ServiceProvider.of(stand.found.sp.document)


# --- what arrives


@pytest.mark.case("S2", "S9")
def test_forged_claims_never_arrive_on_an_open_path(stand: Stand) -> None:
    """Neither those of served backends nor those of one that waits; the origin is the declared one."""
    said = {"X-Forwarded-Host": "evil.test", "X_Forwarded_Host": "evil.test", "X_Forwarded-Proto": "gopher", "X-Forwarded-Proto": "gopher",
            "Forwarded": "host=evil.test;proto=gopher;for=1.2.3.4", "X-Forwarded-For": "1.2.3.4", "X-Forwarded_For": "1.2.3.4",
            "X-Forwarded-Prefix": "/evil", "X_Forwarded_Prefix": "/evil"}  # fmt: skip
    assert direct("/v3", {"Host": "x", "PAOS": 'ver="urn:liberty:paos:2003-08"', **forged(), **said})[0] == 200
    found = stand.echo.arrived()
    assert "forged" not in found.values()
    assert "HTTP_PAOS" not in found
    assert {name: value for name, value in found.items() if "FORWARDED" in name} == {
        "HTTP_X_FORWARDED_FOR": "127.0.0.1",
        "HTTP_X_FORWARDED_PROTO": "https",
        "HTTP_X_FORWARDED_HOST": URL(stand.base).authority,
    }


@pytest.mark.case("S2", "B17", "B20")
async def test_with_an_oidc_session_only_the_providers_claims_arrive(stand: Stand) -> None:
    """By browser and by bearer token; several values are joined as Keystone splits them, names have no underscore."""
    person = stand.visitor()
    await stand.sign_in(person, ACME)
    await person.once(stand.websso(ACME), **forged())
    by_browser = stand.echo.arrived("HTTP_OIDC", "HTTP_MELLON", "HTTP_X_BADGE")
    asked = {"OIDC-ISS", "OIDC-PREFERRED-USERNAME", "OIDC-GROUPS"}
    assert asked <= {name.upper() for name, _ in stand.echo.seen[-1][1]}
    assert not any("token" in name.lower() for name, _ in stand.echo.seen[-1][1])
    await stand.bearer(stand.idp.token(ACME, "alice", "cli"), headers=forged())
    by_token = stand.echo.arrived("HTTP_OIDC", "HTTP_MELLON", "HTTP_X_BADGE")
    for found in (by_browser, by_token):
        assert "forged" not in found.values()
        assert found["HTTP_OIDC_ISS"] == stand.idp.issuer(ACME)
        assert found["HTTP_OIDC_PREFERRED_USERNAME"] == "alice"
        assert found["HTTP_OIDC_GROUPS"] == "eng;ops"
        assert not any(name.startswith(("HTTP_MELLON", "HTTP_X_BADGE")) for name in found)


@pytest.mark.case("S2", "B40")
async def test_with_a_saml_session_only_the_providers_claims_arrive(stand: Stand) -> None:
    """Those of mod_auth_mellon, several values joined by a semicolon."""
    person = stand.visitor()
    await stand.sign_in(person, CORP)
    await person.once(stand.websso(CORP), **forged())
    found = stand.echo.arrived("HTTP_OIDC", "HTTP_MELLON", "HTTP_X_BADGE")
    assert "forged" not in found.values()
    assert found["HTTP_MELLON_IDP"] == stand.idp.entity(CORP)
    assert found["HTTP_MELLON_GROUPS"] == "eng;ops"
    assert not any(name.startswith(("HTTP_OIDC", "HTTP_X_BADGE")) for name in found)


@pytest.mark.case("S3")
@pytest.mark.parametrize("name", [ACME, CORP])
async def test_a_provider_writes_no_headers_of_its_own(stand: Stand, name: str) -> None:
    """A line break inside a claim ends no header: one provider could else speak for another."""
    realm = stand.idp.realm(name)
    realm.users += (User("mallory", ("eng\r\nX-Evil: yes\r\n\r\nGET /evil HTTP/1.1\r\nX-Evil: yes",)),)
    before = len(stand.echo.seen)
    await stand.sign_in(stand.visitor(), name, "mallory")
    for line, headers in stand.echo.seen[before:]:
        assert "evil" not in line
        assert not any(key.lower() == "x-evil" for key, _ in headers)
        assert [(key, value) for key, value in headers if not value.isprintable()] == []


@pytest.mark.case("S3", "B25")
async def test_a_session_or_token_of_another_provider_or_client_is_no_login(stand: Stand) -> None:
    """Beta's session asks again at acme's path, acme's at beta's; a token for another client, or of beta, is refused."""
    person = stand.visitor()
    await stand.sign_in(person, BETA)
    before = len(stand.echo.seen)
    page = await person.open(stand.websso(ACME))
    assert (page.form is not None and "username" in page.form.fields, len(stand.echo.seen)) == (True, before)
    for token in (stand.idp.token(ACME, "alice", "other"), stand.idp.token(BETA, "bob", "cli")):
        assert (await stand.bearer(token)).status == 401
    assert (await stand.bearer(stand.idp.token(BETA, "bob", "cli"), BETA)).status == 401
    assert len(stand.echo.seen) == before


@pytest.mark.case("B21")
def test_sixty_kilobytes_of_headers_pass(stand: Stand) -> None:
    """A session in cookies and claims of a person in many groups."""
    many = {f"X-Large-{i}": "x" * 6000 for i in range(10)}
    assert direct("/v3", {"Host": "x", **many})[0] == 200
    assert sum(map(len, stand.echo.arrived("HTTP_X_LARGE").values())) == 60_000
    assert direct("/v3", {"Host": "x", "Cookie": "a=" + "b" * 65_000})[0] == 200
    assert len(stand.echo.arrived("HTTP_COOKIE")["HTTP_COOKIE"]) > 65_000


@pytest.mark.case("B26")
async def test_a_browser_is_sent_to_known_places_only(stand: Stand) -> None:
    """Logout and target_link_uri towards another host, one that begins like ours, or one whose dot is any character: no redirect."""
    redirect = f"{stand.base}/v3/OS-FEDERATION/redirect_uri"
    lures = ("https://evil.test/", f"{stand.base}.evil.test/", "https://dash.example.test.evil/auth/websso/",
             "https://dashXexample.test/auth/websso/", "https://dash.example.test/auth/websso/x", "//evil.test/")  # fmt: skip
    for lure in lures:
        for query in ({"logout": lure}, {"iss": stand.idp.issuer(ACME), "target_link_uri": lure}):
            person = stand.visitor()
            page = await person.once(str(URL(redirect).with_query(query)))
            assert "Location" not in page.headers, (lure, query)
    person = stand.visitor()
    page = await person.once(str(URL(redirect).with_query({"logout": DASHBOARD})))
    assert page.headers["Location"] == DASHBOARD


async def test_started_logins_leave_few_cookies(stand: Stand) -> None:
    """The oldest go (case B21)."""
    person = stand.visitor()
    for _ in range(12):
        await person.open(stand.websso(ACME))
    assert len(person.cookies("mod_auth_openidc_state")) <= 7


@pytest.mark.case("K22")
def test_a_sidecar_that_does_not_answer_saml_never_asks_keystone_about_it(stand: Stand, tmp_path: Path) -> None:
    """It hands the protected paths on to the one that does; here nobody has that name, so nobody is let in. Everything else it serves."""
    address = "127.0.55.51"
    files = {f"{CONFIG}/{name}": content for name, content in placed(stand.found.files, stand.found.mounts).items()}
    with sidecar(tmp_path, files, stand.echo.path, address=address):
        before = len(stand.echo.seen)
        for trick in TRICKS.values():
            for path in (*protected(CORP, "mapped"), "/v3/auth/OS-FEDERATION/websso/mapped"):
                assert direct(trick(path), {"Host": "x", **forged()}, address=address)[0] in (403, 500, 502, 503), path
        assert len(stand.echo.seen) == before
        assert direct("/v3", {"Host": "x"}, address=address)[0] == 200
        assert direct(protected(ACME, "openid")[1], {"Host": "x", "Accept": "text/html"}, address=address)[0] == 302


@pytest.mark.case("C19")
def test_a_sidecar_whose_keystone_was_away_asks_it_again_at_once(stand: Stand, tmp_path: Path) -> None:
    """As at the start of a pod, or where more wait than its queue holds: one connection that fails closes nothing."""
    address = "127.0.55.52"
    files = {f"{CONFIG}/{name}": content for name, content in placed(stand.found.files, stand.found.mounts).items()}
    (tmp_path / "run").mkdir()
    socket = tmp_path / "run" / "keystone.sock"
    with sidecar(tmp_path, files, socket, address=address):
        assert direct("/v3", {"Host": "x"}, address=address)[0] == 503
        with echo(socket):
            assert direct("/v3", {"Host": "x"}, address=address)[0] == 200


async def test_logins_and_tokens_leave_no_complaint_in_the_log(stand: Stand) -> None:
    """What a pager reads there is news: a line for each request would hide it."""
    before = len(stand.log.read_bytes())
    for name in (ACME, BETA):
        person = stand.visitor()
        assert (await stand.sign_in(person, name)).status == 200
        await person.once(stand.websso(name))
    assert (await stand.bearer(stand.idp.token(ACME, "alice", "cli"))).status == 200
    written = stand.log.read_bytes()[before:].decode(errors="replace")
    assert [line for line in written.splitlines() if "auth_openidc" in line] == []


@pytest.mark.case("P2", "K21")
async def test_neither_tokens_nor_secrets_are_logged(stand: Stand) -> None:
    """A refused and an accepted bearer token, the client secret, the passphrase."""
    tokens = [stand.idp.token(ACME, "alice", client) for client in ("cli", "other")]
    for token in tokens:
        await stand.bearer(token)
    said = stand.log.read_text(errors="replace")
    assert not any(part in said for token in tokens for part in token.split(".")[1:])
    assert "keystone-secret" not in said
    assert "p${PATH}" not in said


@pytest.mark.case("P2")
def test_the_projection_is_never_printed(stand: Stand) -> None:
    """Neither passphrase nor key in a snapshot's text."""
    shown = repr(stand.found)
    assert "p${PATH}" not in shown
    assert "PRIVATE KEY" not in shown
    assert json.dumps(shown)
