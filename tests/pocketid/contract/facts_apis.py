"""What the records of APIs, SCIM and metadata-document clients sum up: 12, 13, 15."""

from __future__ import annotations

from typing import Any

from tests.fakes.pocketid.jose import claims_of
from tests.pocketid.contract.replay import Replay, before, fact

_APIS, _FILE = "/api/apis", "12-apis"
_CIMD = "https://app.example/client.json"


def _orders(played: Replay) -> str:
    return played.names.values["<id1>"]


async def _named(played: Replay, resource: str) -> Any:
    rows = (await played.ask("GET", f"{_APIS}?pagination%5Blimit%5D=100"))["data"]
    return next(row for row in rows if row["resource"] == resource)


async def _permissions(played: Replay, api: str, keys: list[str] | None) -> Any:
    wanted = None if keys is None else [{"key": key, "name": "n"} for key in keys]
    return await played.send("PUT", f"{_APIS}/{api}/permissions", json={"permissions": wanted})


async def _grants(played: Replay, client: str) -> Any:
    return await played.ask("GET", f"/api/api-access/{client}/apis")


async def _grant(played: Replay, api: str, client: str, user: list[str] | None, own: list[str] | None) -> None:
    """None: no access in that flow."""
    body = {
        "userDelegatedAccess": user is not None, "clientAccess": own is not None, "userDelegatedPermissionIds": user or [],
        "clientPermissionIds": own or [],
    }  # fmt: skip
    await played.ask("PUT", f"{_APIS}/{api}/clients/{client}", body)


@fact(_FILE, 50)
async def permissions_after_refusals(played: Replay) -> Any:
    held = (await played.ask("GET", f"{_APIS}/{_orders(played)}"))["permissions"]
    return {"keys": sorted(item["key"] for item in held)}


@fact(_FILE, 52)
async def free_keys(played: Replay) -> Any:
    api = (await _named(played, "https://z.example"))["id"]
    reply = await _permissions(played, api, ["sub", "aud", "email_x"])
    return {"status": reply.status, "stored": sorted(item["key"] for item in reply.json["permissions"])}


@fact(_FILE, 53)
async def order_of_new_permissions(played: Replay) -> Any:
    orders, kept = [], True
    for number in range(3):
        api = (await played.ask("POST", _APIS, {"name": "o", "resource": f"https://order{number}.example"}))["id"]
        put = (await _permissions(played, api, [f"k{key}" for key in range(12)])).json["permissions"]
        kept = kept and put == (await played.ask("GET", f"{_APIS}/{api}"))["permissions"]
        orders.append([item["key"] for item in put])
        await played.send("DELETE", f"{_APIS}/{api}")
    return {"sameForAllThree": orders[0] == orders[1] == orders[2], "getEqualsPut": kept}


@before(_FILE, 55)
async def id_of_the_second_api(played: Replay) -> None:
    played.names.values["<id5>"] = (await _named(played, "https://b.example"))["id"]


@fact(_FILE, 56)
async def many_permissions(played: Replay) -> Any:
    reply = await _permissions(played, played.names.values["<id5>"], [f"k{number}" for number in range(120)])
    return {"status": reply.status, "stored": len(reply.json["permissions"])}


@fact(_FILE, 57)
async def null_permissions(played: Replay) -> Any:
    reply = await _permissions(played, played.names.values["<id5>"], None)
    return {"status": reply.status, "left": len(reply.json["permissions"])}


@fact(_FILE, 58)
async def a_key_again(played: Replay) -> Any:
    api = played.names.values["<id5>"]
    first = (await _permissions(played, api, ["orders:read"])).json["permissions"][0]["id"]
    await _permissions(played, api, [])
    reply = await _permissions(played, api, ["orders:read"])
    played.names.values["<id7>"] = reply.json["permissions"][0]["id"]
    return {"status": reply.status, "newId": played.names.values["<id7>"] != first}


@fact(_FILE, 76)
async def grants_of_a_public_client(played: Replay) -> Any:
    rows = await _grants(played, "pub")
    return {"apis": [row["api"]["name"] for row in rows], "clientAccess": [row["clientAccess"] for row in rows]}


@fact(_FILE, 82)
async def order_of_grants(played: Replay) -> Any:
    return {"names": [row["api"]["name"] for row in await _grants(played, "app")]}


async def _of_orders(played: Replay) -> Any:
    return [row for row in await _grants(played, "app") if row["api"]["id"] == _orders(played)]


@fact(_FILE, 83)
async def a_permission_goes(played: Replay) -> Any:
    await _permissions(played, _orders(played), ["orders:read", "orders:write"])
    row = (await _of_orders(played))[0]
    keys = {item["id"]: item["key"] for item in row["api"]["permissions"]}
    return {
        "userDelegated": [keys[id] for id in row["userDelegatedPermissionIds"]],
        "client": [keys[id] for id in row["clientPermissionIds"]], "access": [row["userDelegatedAccess"], row["clientAccess"]],
    }  # fmt: skip


async def _access(played: Replay) -> Any:
    rows = await _of_orders(played)
    return {"listed": len(rows), "access": [rows[0]["userDelegatedAccess"], rows[0]["clientAccess"]]}


@fact(_FILE, 84)
async def the_last_of_a_flow_goes(played: Replay) -> Any:
    await _permissions(played, _orders(played), ["orders:write"])
    return await _access(played)


@fact(_FILE, 85)
async def all_permissions_go(played: Replay) -> Any:
    await _permissions(played, _orders(played), [])
    return {"listed": len(await _of_orders(played))}


@fact(_FILE, 86)
async def bare_access_survives(played: Replay) -> Any:
    await _permissions(played, _orders(played), ["orders:read"])
    await _grant(played, _orders(played), "app", [], [])
    await _permissions(played, _orders(played), [])
    return await _access(played)


@fact(_FILE, 87)
async def grants_after_public(played: Replay) -> Any:
    await played.ask("PUT", "/api/oidc/clients/app", {"name": "app", "isPublic": True})
    reply = await played.send("GET", "/api/api-access/app/apis")
    rows = [
        [row["api"]["name"], row["userDelegatedAccess"], row["clientAccess"], len(row["clientPermissionIds"])]
        for row in reply.json
    ]
    await played.ask("PUT", "/api/oidc/clients/app", {"name": "app"})
    return {"status": reply.status, "grants": rows}


async def _switch(played: Replay, body: Any) -> Any:
    reply = await played.send("PUT", f"{_APIS}/{_orders(played)}/cimd-access", json=body)
    allowed = sorted(item["key"] for item in reply.json["permissions"] if item["allowedForCimdClients"])
    return reply.status, {"allowCimdClients": reply.json["allowCimdClients"], "allowed": allowed}


async def _reading(played: Replay) -> str:
    held = (await played.ask("GET", f"{_APIS}/{_orders(played)}"))["permissions"]
    return next(item["id"] for item in held if item["key"] == "orders:read")


@fact(_FILE, 92)
async def switch_on(played: Replay) -> Any:
    await _permissions(played, _orders(played), ["orders:read", "orders:write"])
    status, told = await _switch(played, {"enabled": True, "permissionIds": [await _reading(played), "nope"]})
    return {"status": status, **told}


@fact(_FILE, 93)
async def switch_off(played: Replay) -> Any:
    return (await _switch(played, {"enabled": False, "permissionIds": [await _reading(played)]}))[1]


@fact(_FILE, 94)
async def switch_without_permissions(played: Replay) -> Any:
    return (await _switch(played, {"enabled": True}))[1]


@fact(_FILE, 95)
async def standard_client_and_the_switch(played: Replay) -> Any:
    rows = await _grants(played, "app")
    return {"apis": [row["api"]["name"] for row in rows if row["api"]["id"] == _orders(played)]}


@fact(_FILE, 101)
async def clients_after_a_deletion(played: Replay) -> Any:
    rows = (await played.ask("GET", f"{_APIS}/{_orders(played)}/clients"))["data"]
    return {"ids": [row["client"]["id"] for row in rows if row["client"]["id"] == "app"]}


async def _ids(played: Replay) -> list[str]:
    return [item["id"] for item in (await played.ask("GET", f"{_APIS}/{_orders(played)}"))["permissions"]]


@before(_FILE, 106)
async def user_delegated_only(played: Replay) -> None:
    await _grant(played, _orders(played), "m2m", await _ids(played), None)


@before(_FILE, 107)
async def client_access(played: Replay) -> None:
    await _grant(played, _orders(played), "m2m", None, await _ids(played))


@fact(_FILE, 108)
async def token_for_the_api(played: Replay) -> Any:
    claims = claims_of(played.names.values["<access_token>"])
    return {"aud": claims["aud"], "scopeSet": sorted(claims["scp"]), "sub": claims["sub"]}


@before(_FILE, 112)
async def access_without_permissions(played: Replay) -> None:
    await _grant(played, _orders(played), "m2m", None, [])


# --- SCIM


@fact("13-scim", 29)
async def eight_providers(played: Replay) -> Any:
    body = {"endpoint": "https://s.example/scim", "oidcClientId": "many"}
    ids = [(await played.ask("POST", "/api/scim/service-provider", body))["id"] for _ in range(8)]
    reply = await played.send("GET", "/api/oidc/clients/many/scim-service-provider")
    return {"status": reply.status, "hasTheLowestId": reply.json["id"] == min(ids)}


# --- metadata-document clients


@fact("15-cimd", 6)
async def placed_row(played: Replay) -> Any:
    played.fake.place_cimd_client(_CIMD, "tmpl", ["https://app.example/cb"], "doc")
    return played.line["fact"]


@before("15-cimd", 20)
async def id_of_the_group(played: Replay) -> None:
    played.names.values["<id1>"] = (await played.ask("GET", "/api/user-groups"))["data"][0]["id"]


@before("15-cimd", 23)
async def permissions_of_the_api(played: Replay) -> None:
    api = (await _named(played, "https://b.example"))["id"]
    made = (await _permissions(played, api, ["k", "l"])).json["permissions"]
    ids = {item["key"]: item["id"] for item in made}
    played.names.values |= {"<id2>": api, "<id3>": ids["k"], "<id4>": ids["l"]}
