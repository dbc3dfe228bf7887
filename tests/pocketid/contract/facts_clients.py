"""What the records of clients, lists, groups and secrets sum up: 01, 04 to 08, 21, 22."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.fakes.pocketid.jose import claims_of, unb64
from tests.pocketid.contract.replay import Replay, before, fact

_CLIENTS = "/api/oidc/clients"


@before("01-common", 6)
async def empty_key(played: Replay) -> None:
    played.other_key = ""


@before("01-common", 9)
async def key_as_bearer(played: Replay) -> None:
    played.bearer = played.fake.api_key


@fact("01-common", 40)
async def keys(played: Replay) -> Any:
    listed = (await played.ask("GET", "/.well-known/jwks.json", auth="none"))["keys"]
    shape = {name: listed[0][name] for name in ("alg", "kty", "use")}
    return {"keys": len(listed), "members": sorted(listed[0]), **shape}


@fact("01-common", 41)
async def public_configuration(played: Replay) -> Any:
    reply = await played.send("GET", "/api/application-configuration", auth="none")
    rows = reply.json
    return {
        "status": reply.status, "shape": "array of {key,type,value}", "sample": sorted(rows[0]), "keys": [row["key"] for row in rows],
    }  # fmt: skip


@fact("01-common", 42)
async def whole_configuration(played: Replay) -> Any:
    reply = await played.send("GET", "/api/application-configuration/all")
    return {"status": reply.status, "keys": [row["key"] for row in reply.json]}


@fact("04-callback-urls", 61)
async def many_callbacks(played: Replay) -> Any:
    urls = [f"https://a.example/{number}" for number in range(150)]
    reply = await played.send("PUT", f"{_CLIENTS}/app", json={"name": "x", "callbackURLs": urls})
    return {"status": reply.status, "stored": len((await played.ask("GET", f"{_CLIENTS}/app"))["callbackURLs"])}


@fact("05-clients-list", 1)
async def created_in_order(played: Replay) -> Any:
    for name in played.line["fact"]["names"]:
        await played.ask("POST", _CLIENTS, {"name": name})
    return {"names": played.line["fact"]["names"]}


@fact("05-clients-list", *range(8, 15))
async def limits(played: Replay) -> Any:
    said = played.line["case"].removeprefix("limit ")
    limit = "x" if said == "that is no number" else said
    reply = await played.send("GET", f"{_CLIENTS}?pagination%5Blimit%5D={limit}")
    return {"status": reply.status, "rows": len(reply.json["data"]), "pagination": reply.json["pagination"]}


@fact("06-allowed-user-groups", 9)
async def times_of_groups_inside(played: Replay) -> Any:
    group = played.names.values["<id1>"]
    real = (await played.ask("GET", f"/api/user-groups/{group}"))["createdAt"]
    put = await played.ask("PUT", f"{_CLIENTS}/app", {"name": "x", "isGroupRestricted": True})
    got = await played.ask("GET", f"{_CLIENTS}/app")

    def shows(answer: Any) -> bool:
        return real in [item["createdAt"] for item in answer["allowedUserGroups"] if item["id"] == group]

    return {"putAnswerShowsTheRealTime": shows(put), "getShowsTheRealTime": shows(got)}


@fact("06-allowed-user-groups", 27)
async def counts_of_users(played: Replay) -> Any:
    """Restricts the client too, as the recorded state behind this line was."""
    group = played.names.values["<id1>"]
    user = (await played.ask("POST", "/api/users", {"username": "ann", "email": "ann@example.com"}))["id"]
    await played.ask("PUT", f"/api/user-groups/{group}/users", {"userIds": [user]})
    inside = (await played.ask("GET", f"{_CLIENTS}/app"))["allowedUserGroups"][0]["userCount"]
    listed = (await played.ask("GET", "/api/user-groups"))["data"]
    await played.ask("PUT", f"{_CLIENTS}/app", {"name": "x", "isGroupRestricted": True})
    return {"insideTheClient": inside, "inTheGroupList": next(row["userCount"] for row in listed if row["id"] == group)}


@fact("07-secrets", 5)
async def generated_secrets(played: Replay) -> Any:
    values = [played.names.values[f"<secret{number}: 32 letters and digits>"] for number in (1, 2)]
    listed = await played.ask("GET", f"{_CLIENTS}/app/secrets")
    return {
        "lengths": [len(value) for value in values], "alphanumeric": all(value.isalnum() and value.isascii() for value in values),
        "prefixIsFirst4": [row["prefix"] == value[:4] for row, value in zip(listed, values, strict=True)],
        "distinctPrefixes": len({value[:4] for value in values}) == 2,
    }  # fmt: skip


@fact("07-secrets", 7)
async def time_of_a_secret(played: Replay) -> Any:
    made = await played.ask("POST", f"{_CLIENTS}/app/secrets", {})
    listed = (await played.ask("GET", f"{_CLIENTS}/app/secrets"))[-1]
    await played.send("DELETE", f"{_CLIENTS}/app/secrets/{made['id']}")
    kinds = ["fraction" if "." in text else "seconds" for text in (made["createdAt"], listed["createdAt"])]
    same = made["createdAt"] == listed["createdAt"]
    return {
        "create": kinds[0],
        "list": kinds[1],
        "sameSecond": made["createdAt"][:19] == listed["createdAt"][:19],
        "equalText": same,
    }


@before("07-secrets", 51)
async def two_seconds_pass(played: Replay) -> None:
    played.fake.clock.offset += 5


@before("08-token", 24)
async def two_seconds_pass_too(played: Replay) -> None:
    played.fake.clock.offset += 5


@fact("07-secrets", 52)
async def twenty_secrets(played: Replay) -> Any:
    ids = [row["id"] for row in await played.ask("GET", f"{_CLIENTS}/cap/secrets")]
    for number in range(19):
        ids.append(
            (await played.ask("POST", f"{_CLIENTS}/cap/secrets", {"secret": f"cap-{number:02}-0123456789"}))["id"]
        )
    listed = await played.ask("GET", f"{_CLIENTS}/cap/secrets")
    active = sum(row["isActive"] for row in listed)
    return {"count": len(listed), "active": active, "orderOfCreation": [row["id"] for row in listed] == ids}


@fact("07-secrets", 65)
async def put_keeps_secrets(played: Replay) -> Any:
    before_it = len(await played.ask("GET", f"{_CLIENTS}/app/secrets"))
    await played.ask("PUT", f"{_CLIENTS}/app", {"name": "x", "credentials": {"secrets": []}})
    return {"secretsBefore": before_it, "secretsAfter": len(await played.ask("GET", f"{_CLIENTS}/app/secrets"))}


@before("08-token", 38)
async def machine_token(played: Replay) -> None:
    played.bearer = played.names.values["<access_token>"]


@fact("08-token", 9)
async def access_token(played: Replay) -> Any:
    token = played.names.values["<access_token>"]
    header = json.loads(unb64(token.split(".")[0]))
    claims = claims_of(token)
    numbers = dict.fromkeys(("exp", "iat"), "<num>")
    return {
        "header": sorted(header), "typ": header["typ"], "alg": header["alg"], "payload": claims | numbers,
        "lifetimeSeconds": claims["exp"] - claims["iat"],
    }  # fmt: skip


# --- order


@fact("21-ordering", 1)
async def first_use_of_the_key(played: Replay) -> Any:
    """The real server refuses a few by chance; the fake as many as a test says."""
    played.fake.refuse_first = 3
    burst = [reply.status for reply in await asyncio.gather(*[played.send("GET", _CLIENTS) for _ in range(24)])]
    again = [reply.status for reply in await asyncio.gather(*[played.send("GET", _CLIENTS) for _ in range(24)])]
    assert sorted(burst) == [200] * 21 + [401] * 3
    assert again == [200] * 24
    return played.line["fact"]


@fact("21-ordering", 2)
async def date_header(played: Replay) -> Any:
    return {"present": "Date" in (await played.send("GET", _CLIENTS)).headers}


@fact("21-ordering", 4)
async def read_after_write(played: Replay) -> Any:
    stale = 0
    for number in range(100):
        await played.ask("PUT", f"{_CLIENTS}/app", {"name": f"v{number}"})
        stale += (await played.ask("GET", f"{_CLIENTS}/app"))["name"] != f"v{number}"
    return {"stale": stale}


@fact("21-ordering", 5)
async def four_writers(played: Replay) -> Any:
    async def write(writer: int) -> list[bool]:
        names = [f"w{writer}-{number}" for number in range(20)]
        return [(await played.ask("PUT", f"{_CLIENTS}/app", {"name": name}))["name"] == name for name in names]

    own = [said for part in await asyncio.gather(*map(write, range(4))) for said in part]
    final = (await played.ask("GET", f"{_CLIENTS}/app"))["name"]
    return {
        "statuses": {"200": len(own)}, "everyAnswerIsTheWritersOwn": all(own),
        "finalStateIsOneWriters": bool(re.fullmatch(r"w[0-3]-19", final)),
    }  # fmt: skip


@fact("21-ordering", 6)
async def secrets_at_once(played: Replay) -> Any:
    made = await asyncio.gather(*[played.send("POST", f"{_CLIENTS}/app/secrets") for _ in range(16)])
    listed = await played.ask("GET", f"{_CLIENTS}/app/secrets")
    return {
        "statuses": {"201": sum(reply.status == 201 for reply in made)}, "listed": len(listed),
        "noneLost": {reply.json["id"] for reply in made} == {row["id"] for row in listed},
        "distinctPrefixes": len({row["prefix"] for row in listed}),
    }  # fmt: skip


@fact("21-ordering", 7)
async def secrets_beside_puts(played: Replay) -> Any:
    puts = [played.send("PUT", f"{_CLIENTS}/app", json={"name": f"p{number}"}) for number in range(30)]
    posts = [played.send("POST", f"{_CLIENTS}/app/secrets") for _ in range(4)]
    made = (await asyncio.gather(*puts, *posts))[30:]
    listed = {row["id"] for row in await played.ask("GET", f"{_CLIENTS}/app/secrets")}
    statuses = sorted({reply.status for reply in made})
    return {
        "secretAnswers": statuses,
        "listed": len(listed),
        "noneLost": {reply.json["id"] for reply in made} <= listed,
    }


@fact("21-ordering", 8)
async def one_id_at_once(played: Replay) -> Any:
    made = await asyncio.gather(*[played.send("POST", _CLIENTS, json={"id": "one", "name": "one"}) for _ in range(6)])
    statuses = [reply.status for reply in made]
    codes = sorted({reply.json["code"] for reply in made if reply.status != 201})
    return {"statuses": {str(status): statuses.count(status) for status in set(statuses)}, "codes": codes}


@fact("22-migrated-secret", 2)
async def legacy_secret(played: Replay) -> Any:
    played.fake.place_legacy_secret("app", "legacy-single-secret-000001")
    return played.line["fact"]


@fact("20-time-zone", 6)
async def digits(played: Replay) -> Any:
    """A fraction loses its trailing zeros, so how many digits it has is chance; nine is the most."""
    stamps = [row["createdAt"] for row in await played.ask("GET", f"{_CLIENTS}/app/secrets")]
    for _ in range(8):
        stamps.append((await played.ask("POST", f"{_CLIENTS}/app/secrets", {}))["createdAt"])
    found = [len(re.match(r".*\.(\d+)", stamp)[1]) for stamp in stamps]  # type: ignore[index]
    assert datetime.fromisoformat(stamps[0]).utcoffset() == timedelta(hours=5, minutes=30)
    assert datetime.fromisoformat(stamps[0]) <= datetime.now(UTC) + timedelta(seconds=1)
    return {"digits": max(found), "atMost": 9 if max(found) <= 9 else max(found)}
