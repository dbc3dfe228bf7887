"""What the records of logins, assertions and redirects sum up: 16, 23 to 25."""

from __future__ import annotations

import base64
import hashlib
import itertools
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from tests.fakes.idp.keys import SigningKey
from tests.fakes.pocketid.jose import claims_of
from tests.pocketid.contract.replay import Replay, before, fact

_CLIENT = "/api/oidc/clients/app"
_VERIFIERS = ("verifier-one-0123456789-0123456789-0123456789", "verifier-two-0123456789-0123456789-0123456789")


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@before("16-code-flow", 7)
async def ann_signs_in(played: Replay) -> None:
    played.bearer = await played.log_in(played.names.values["<id2>"])
    played.names.values |= {
        "<session>": played.bearer, "<challenge>": _challenge(_VERIFIERS[0]), "<challenge2>": _challenge(_VERIFIERS[1]),
        "<verifier>": _VERIFIERS[0],
    }  # fmt: skip


@before("16-code-flow", 24, 54)
async def token_for_userinfo(played: Replay) -> None:
    played.bearer = played.names.values["<access_token>"]


@before("16-code-flow", 25, 57)
async def session_again(played: Replay) -> None:
    played.bearer = played.names.values["<session>"]


@fact("16-code-flow", 15)
async def id_token(played: Replay) -> Any:
    claims = claims_of(played.names.values["<id_token>"])
    beside = played.line["fact"]["alsoPresent"]
    assert all(name in claims for name in beside)
    return {"claims": {name: value for name, value in claims.items() if name not in beside}, "alsoPresent": beside}


@fact("16-code-flow", 16)
async def user_access_token(played: Replay) -> Any:
    return {"claims": claims_of(played.names.values["<access_token>"]), "typ": "JWT"}


@fact("16-code-flow", 55)
async def preview(played: Replay) -> Any:
    reply = await played.send("GET", f"{_CLIENT}/preview/{played.names.values['<id2>']}?scopes=openid+profile")
    told = reply.json
    keys = {f"{name}Keys": sorted(told[name]) for name in ("idToken", "userInfo")}
    return {"status": reply.status, "members": sorted(told), **keys}


@fact("16-code-flow", 58)
async def pushed_request(played: Replay) -> Any:
    played.bearer = played.names.values["<session>"]
    form = {
        "redirect_uri": "https://app.example/cb",
        "response_type": "code",
        "state": "state-0123456789",
        "scope": "openid",
    }
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    sent = urlencode(form).encode()
    reply = await played.send("POST", "/api/oidc/par", auth="basic app:code-flow-secret-01", headers=kind, data=sent)
    told = reply.json
    played.names.values["<request_uri>"] = told["request_uri"]
    prefix = told["request_uri"].rpartition(":")[0]
    return {"status": reply.status, "members": sorted(told), "prefix": prefix, "expires_in": told["expires_in"]}


# --- assertions


class Issuer:
    """Somebody else's issuer: two documents of keys, a journal of who fetched which."""

    def __init__(self) -> None:
        self.key, self.other, self.stranger = SigningKey(), SigningKey(), SigningKey()
        self.fetched: list[str] = []
        self.url = ""
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            self.fetched.append(request.path)
            key = self.other if request.path == "/keys/other.json" else self.key
            return web.json_response({"keys": [key.jwk]})

        self._runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def assertion(self, app: str, key: SigningKey | None = None, **changed: Any) -> str:
        claims = {"iss": self.url, "sub": "app", "aud": app, "exp": int(time.time()) + 300, "jti": str(uuid.uuid4())}
        whole = {name: value for name, value in (claims | changed).items() if value is not None}
        return (key or self.key).jwt(whole)


_issuers: dict[int, Issuer] = {}


async def stop_issuers() -> None:
    """End what the file's script started."""
    while _issuers:
        await _issuers.popitem()[1].stop()


@before("23-federated-token", 1)
async def issuer_comes_up(played: Replay) -> None:
    found = _issuers[id(played)] = Issuer()
    await found.start()
    played.names.values["<external issuer>"] = found.url


_OWN = {"sub": "system:sa:x", "aud": "aud-x"}
_ASSERTIONS: dict[int, Callable[[Issuer, str], str]] = {
    2: lambda idp, app: idp.assertion(app),
    4: lambda idp, app: idp.assertion(app),
    5: lambda idp, app: idp.assertion(app, sub="other"),
    6: lambda idp, app: idp.assertion("https://other.example"),
    7: lambda idp, app: idp.assertion(app, aud=["x", app]),
    8: lambda idp, app: idp.assertion(app, exp=None),
    9: lambda idp, app: idp.assertion(app, exp=int(time.time()) - 600),
    10: lambda idp, app: idp.assertion(app, iss="https://other.example"),
    11: lambda idp, app: idp.assertion(app, iss=None),
    12: lambda idp, app: idp.assertion(app, idp.stranger),
    13: lambda idp, app: idp.assertion(app),
    16: lambda idp, app: idp.assertion(app, idp.other, **_OWN),
    18: lambda idp, app: idp.assertion(app, idp.other, jti=None, **_OWN),
    19: lambda idp, app: idp.assertion(app, idp.other),
    22: lambda idp, app: idp.assertion(app, sub="a"),
    23: lambda idp, app: idp.assertion(app, sub="b"),
    25: lambda idp, app: idp.assertion(app),
}


@before("23-federated-token", *_ASSERTIONS)
async def assertion(played: Replay) -> None:
    played.names.values["<assertion>"] = _ASSERTIONS[played.line["n"]](_issuers[id(played)], played.url)


@fact("23-federated-token", 3, 20)
async def where_keys_came_from(played: Replay) -> Any:
    return {"paths": [path for path, _ in itertools.groupby(_issuers[id(played)].fetched)]}


# --- redirects


@before("24-redirect-match", 1)
@before("25-insecure-callbacks-off", 1)
async def somebody_signs_in(played: Replay) -> None:
    user = (await played.ask("POST", "/api/users", {"username": "ann", "email": "ann@example.com"}))["id"]
    played.bearer = await played.log_in(user)


@fact("24-redirect-match", *range(2, 18))
async def redirects(played: Replay) -> Any:
    pattern = played.line["case"].removeprefix("registered ")
    await played.ask("PUT", _CLIENT, {"name": "app", "skipConsent": True, "callbackURLs": [pattern]})
    return {"atAuthorize": {url: await _redirect(played, url) for url in played.line["fact"]["atAuthorize"]}}


async def _redirect(played: Replay, url: str) -> str:
    asked = {
        "client_id": "app",
        "redirect_uri": url,
        "response_type": "code",
        "scope": "openid",
        "state": "state-0123456789",
    }
    reply = await played.send("GET", f"/authorize?{urlencode(asked)}", auth="bearer")
    with suppress(KeyError):
        if reply.headers["Location"].startswith((f"{url}?code=", f"{url}&code=")):
            return "accepted"
    return "refused, no redirect to it"


@before("24-redirect-match", 18)
async def no_callback(played: Replay) -> None:
    await played.ask("PUT", _CLIENT, {"name": "app", "skipConsent": True})
