"""What the records of groups, users, configuration and limits sum up: 10, 11, 17 to 19."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.fakes.pocketid.jose import claims_of, unb64
from tests.pocketid.contract.replay import Replay, before, fact

_USERS, _GROUPS = "/api/users", "/api/user-groups"


async def _members(played: Replay, ids: list[str]) -> Any:
    reply = await played.send("PUT", f"{_GROUPS}/{played.names.values['<id1>']}/users", json={"userIds": ids})
    return {"status": reply.status, "members": [row["username"] for row in reply.json["users"]]}


@fact("10-user-groups", 28)
async def unknown_members(played: Replay) -> Any:
    return await _members(played, [played.names.values["<id3>"], "nope"])


@fact("10-user-groups", 30)
async def no_members(played: Replay) -> Any:
    return await _members(played, [])


@before("10-user-groups", 32)
async def one_member(played: Replay) -> None:
    await _members(played, [played.names.values["<id2>"]])


@before("11-users", 24)
async def rich_user(played: Replay) -> None:
    whole = {
        "username": "rich", "email": "rich@example.com", "firstName": "R", "lastName": "R", "displayName": "R", "isAdmin": True,
        "disabled": True, "locale": "en", "emailVerified": True,
    }  # fmt: skip
    played.names.values["<id8>"] = (await played.ask("POST", _USERS, whole))["id"]


def _ann(played: Replay) -> str:
    return played.names.values["<id1>"]


@fact("11-users", 34, 35, 36, 37, 38, 39, 40, 42, 43, 45, 46)
async def login_codes(played: Replay) -> Any:
    asked = played.line["fact"]["request"]
    reply = await played.send("POST", f"{_USERS}/{_ann(played)}/one-time-access-token", json=asked)
    token = reply.json["token"]
    if asked.get("ttl") == "60m":
        played.names.values["<login code of 12>"] = token
    plain = token.isascii() and token.isalnum()
    return {
        "request": asked, "status": reply.status, "members": sorted(reply.json), "tokenLength": len(token), "alphanumeric": plain,
    }  # fmt: skip


@fact("11-users", 57)
async def session_as_bearer(played: Replay) -> Any:
    played.bearer = await played.log_in(_ann(played))
    reply = await played.send("GET", f"{_USERS}/me", auth="bearer")
    return {"status": reply.status, "username": reply.json["username"]}


@fact("11-users", 58)
async def session_as_cookie(played: Replay) -> Any:
    reply = await played.send("GET", f"{_USERS}/me", auth="none", headers={"Cookie": f"access_token={played.bearer}"})
    return {"status": reply.status, "username": reply.json["username"]}


@fact("11-users", 59)
async def session_token(played: Replay) -> Any:
    header = unb64(played.bearer.split(".")[0]).decode()
    claims = claims_of(played.bearer)
    life = (claims["exp"] - claims["iat"]) // 60
    return {"alg": "RS256" if '"RS256"' in header else header, "claims": sorted(claims), "lifetimeMinutes": life}


@fact("11-users", 61)
async def own_api_key(played: Replay) -> Any:
    body = {"name": "abc", "expiresAt": "2099-01-01T00:00:00Z"}
    reply = await played.send("POST", "/api/api-keys", auth="bearer", json=body)
    played.other_key = reply.json["token"]
    assert len(played.other_key) == 32
    return {"status": reply.status, "response": reply.json | {"token": "<api key of 32>"}}


@fact("11-users", 66)
async def session_of_a_disabled_user(played: Replay) -> Any:
    reply = await played.send("GET", f"{_USERS}/me", auth="bearer")
    return {"status": reply.status, "code": reply.json["code"]}


@fact("11-users", 67)
async def code_for_a_disabled_user(played: Replay) -> Any:
    reply = await played.send("POST", f"{_USERS}/{_ann(played)}/one-time-access-token", json={"ttl": "60m"})
    played.names.values["<its code>"] = reply.json["token"]
    return {"status": reply.status}


@fact("11-users", 68)
async def its_exchange(played: Replay) -> Any:
    reply = await played.send("POST", f"/api/one-time-access-token/{played.names.values['<its code>']}", auth="none")
    return {"status": reply.status, "code": reply.json["code"]}


# --- setup and configuration


@before("17-setup", 1)
async def first_use(played: Replay) -> None:
    await played.ask("GET", "/api/version/current")


@fact("17-setup", 3)
async def session_of_the_setup_user(played: Replay) -> Any:
    assert played.last is not None
    session = played.last.headers["Set-Cookie"].split(";")[0].partition("=")[2]
    reply = await played.send("GET", _USERS, auth="none", headers={"Authorization": f"Bearer {session}"})
    return {"status": reply.status}


async def _configuration(played: Replay) -> dict[str, str]:
    return {row["key"]: row["value"] for row in await played.ask("GET", "/api/application-configuration/all")}


@fact("17-setup", 5)
async def configuration_with_one_key(played: Replay) -> Any:
    reply = await played.send("PUT", "/api/application-configuration", json={"appName": "New name"})
    fields = [item["field"] for item in reply.json["details"]["fields"]]
    return {"status": reply.status, "code": reply.json["code"], "requiredFields": fields}


@fact("17-setup", 6)
async def configuration_with_every_key(played: Replay) -> Any:
    whole = await _configuration(played) | {"appName": "New name"}
    reply = await played.send("PUT", "/api/application-configuration", json=whole)
    shape = "array of {key,type,value}" if sorted(reply.json[0]) == ["key", "type", "value"] else "another"
    return {"status": reply.status, "answer": shape, "note": played.line["fact"]["note"]}


@fact("17-setup", 7)
async def configuration_afterwards(played: Replay) -> Any:
    return {"value": [(await _configuration(played))["appName"]]}


@before("18-rate-limit", 1)
async def five_exchanges(played: Replay) -> None:
    for _ in range(5):
        assert (await played.send("POST", "/api/one-time-access-token/abcdef", auth="none")).status == 401


@fact("18-rate-limit", 2)
async def many_requests(played: Replay) -> Any:
    now = played.fake.limiter.clock()
    played.fake.limiter.clock = lambda: now  # a slow machine sends fewer than a hundred a second
    replies = await asyncio.gather(*[played.send("GET", "/api/version/current") for _ in range(480)])
    return {"statusesSeen": sorted({reply.status for reply in replies})}


@fact("19-env-config", 1)
async def configuration_of_the_environment(played: Replay) -> Any:
    played.fake.ui_config_disabled = True
    reply = await played.send("PUT", "/api/application-configuration", json=await _configuration(played))
    return {"status": reply.status, "code": reply.json["code"]}
