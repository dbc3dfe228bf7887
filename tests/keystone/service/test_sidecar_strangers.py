"""What a stranger without any login asks of the rendered sidecar, on the real Apache: nothing is fetched, shown or taken away for them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from urllib.parse import quote

import pytest
from tests.e2e.federation.site import ACME, CORP, REDIRECT
from tests.keystone.service.test_sidecar import Stand, direct, forged, stand
from yarl import URL

__all__ = ["stand"]
SINK = "127.0.55.9"
METHODS = ("GET", "POST", "HEAD", "PUT")


@contextmanager
def sink() -> Iterator[tuple[int, list[str]]]:
    """A port that notes who connects, and closes."""
    seen: list[str] = []
    with socket.create_server((SINK, 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, peer = server.accept()
                except OSError:
                    return
                seen.append(peer[0])
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], seen
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def ask(stand: Stand, query: str, method: str = "GET", path: str = REDIRECT) -> tuple[int, dict[str, str], str]:
    """A request to the redirect URI, with the cookie that the module compares `x_csrf` with."""
    headers = {"Host": URL(stand.base).authority, "Cookie": "x_csrf=abc", "Accept": "text/html", "Content-Length": "0"}
    return direct(f"{path}?{query}", headers, method)


@pytest.mark.case("S6")
@pytest.mark.parametrize("method", METHODS)
def test_nobody_makes_the_sidecar_fetch(stand: Stand, method: str) -> None:
    """An issuer or account that no backend has, before, after and between those that one has, in any spelling of query and path."""
    known, target = quote(stand.idp.issuer(ACME), safe=""), quote(f"{stand.base}/v3", safe="")
    tail = f"target_link_uri={target}&x_csrf=abc&method=get"
    with sink() as (port, seen):
        issuers = [f"http://{SINK}:{port}", f"https://{SINK}:{port}/x", f"me@{SINK}:{port}", f"{stand.idp.issuer(ACME)}.{SINK}:{port}",
                   f"{stand.idp.issuer(ACME)}@{SINK}:{port}", f"{stand.idp.issuer(ACME).upper()}", ""]  # fmt: skip
        lures = [f"iss={quote(issuer, safe=safe)}" for issuer, safe in product(issuers, ("", ":/@"))]
        lures += [lure.replace("s", "%73", 1) for lure in lures[:2]]
        lures += [f"disc_user={quote(f'me@{SINK}:{port}', safe='')}", f"iss={known}%00&iss=http://{SINK}:{port}"]
        for lure in lures:
            for query in (f"{lure}&{tail}", f"{tail}&{lure}", f"iss={known}&{lure}&{tail}", f"{lure}&iss={known}&{tail}", f"&&{lure}&&{tail}",
                          f"state=x&{lure}&{tail}", f"error=x&{lure}"):  # fmt: skip
                _, headers, _ = ask(stand, query, method)
                assert headers.get("Location", stand.idp.url).startswith(stand.idp.url), query
        for path in (
            f"/{REDIRECT}",
            f"{REDIRECT}/",
            REDIRECT.replace("_", "%5F"),
            f"{REDIRECT}/.",
            f"http://x{REDIRECT}",
        ):
            ask(stand, f"{lures[0]}&{tail}", method, path)
        assert seen == []


@pytest.mark.case("S6")
@pytest.mark.parametrize("safe", ["", ":/", ":/?&=+,;"])
def test_a_login_starts_with_an_issuer_of_ours(stand: Stand, safe: str) -> None:
    """However a browser writes it; what is added to the request to the provider, nobody else decides."""
    query = f"iss={quote(stand.idp.issuer(ACME), safe=safe)}&target_link_uri={quote(stand.base, safe='')}/v3"
    status, headers, _ = ask(stand, query)
    assert (status, headers["Location"].startswith(f"{stand.idp.issuer(ACME)}/")) == (302, True)
    for more in ("auth_request_params=request_uri%3Dhttp://evil.test/", "scopes=offline_access", "login_hint=x"):
        assert ask(stand, f"{query}&{more}")[0] in (401, 403), more


@pytest.mark.case("S6")
@pytest.mark.parametrize("method", METHODS)
def test_the_modules_other_endpoints_are_closed(stand: Stand, method: str) -> None:
    """Keys, session information, revocation, refresh, request objects, the cache."""
    for name in ("jwks", "info", "session", "refresh", "request_uri", "remove_at_cache", "revoke_session"):
        for query in (f"{name}=json", f"x=y&{name}=rsa", f"{name}="):
            assert ask(stand, query, method)[0] in (401, 403), query


def test_the_list_of_providers_is_shown_to_nobody(stand: Stand) -> None:
    """Another spelling of the path is no page where one chooses."""
    for path in (f"/{REDIRECT}", f"{REDIRECT}/", REDIRECT.replace("_", "%5F"), f"{REDIRECT}/x"):
        _, _, body = ask(stand, "x=y", path=path)
        assert stand.idp.issuer(ACME) not in body
        assert quote(stand.idp.issuer(ACME), safe="") not in body


# --- hop-by-hop

CONNECTIONS = (
    "{}", "close, {}", "{} , keep-alive", "x,{}", "upgrade, {}",
)  # fmt: skip


@pytest.mark.case("S9")
@pytest.mark.parametrize("shape", CONNECTIONS)
@pytest.mark.parametrize("header", ["Connection", "Proxy-Connection", "connection"])
def test_a_client_cannot_have_the_origin_removed(stand: Stand, shape: str, header: str) -> None:
    """What Connection names is taken away by a proxy: never what the sidecar says."""
    named = shape.format("X-Forwarded-Host, X-Forwarded-Proto, X-Forwarded-For, Host")
    assert direct("/v3", {"Host": "x", header: named, **forged()})[0] == 200
    found = stand.echo.arrived("HTTP_X_FORWARDED", "HTTP_HOST")
    assert found == {
        "HTTP_X_FORWARDED_FOR": "127.0.0.1",
        "HTTP_X_FORWARDED_PROTO": "https",
        "HTTP_X_FORWARDED_HOST": URL(stand.base).authority,
        "HTTP_HOST": "x",
    }


@pytest.mark.case("S2")
@pytest.mark.parametrize("shape", CONNECTIONS)
async def test_a_person_cannot_have_claims_removed(stand: Stand, shape: str) -> None:
    """Neither with a bearer token nor with a session of a browser: who drops a claim could become somebody else."""
    claims = shape.format("OIDC-GROUPS, OIDC-ISS, OIDC-PREFERRED-USERNAME, MELLON-GROUPS, MELLON-IDP, Cookie")
    path = stand.protected(ACME).removeprefix(stand.base)
    token = stand.idp.token(ACME, "alice", "cli")
    assert direct(path, {"Host": "x", "Authorization": f"Bearer {token}", "Connection": claims})[0] == 200
    assert {"HTTP_OIDC_ISS", "HTTP_OIDC_GROUPS", "HTTP_OIDC_PREFERRED_USERNAME"} <= stand.echo.arrived().keys()
    person = stand.visitor()
    await stand.sign_in(person, CORP)
    await person.once(stand.websso(CORP))
    cookie = stand.echo.arrived("HTTP_COOKIE")["HTTP_COOKIE"]
    path = URL(stand.websso(CORP)).raw_path_qs
    assert direct(path, {"Host": URL(stand.base).authority, "Cookie": cookie, "Connection": claims})[0] == 200
    assert {"HTTP_MELLON_IDP", "HTTP_MELLON_GROUPS"} <= stand.echo.arrived().keys()
