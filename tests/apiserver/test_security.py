"""Who gets in, what they may, what is written down."""

from __future__ import annotations

import asyncio
import json
import ssl
import stat
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.apiserver.conftest import CONFIG_MAPS, NAMESPACED, Client, config_map

from moorage.apiserver import Server
from moorage.apiserver.access import refusal
from moorage.apiserver.auth import impersonated
from moorage.apiserver.errors import StatusError
from moorage.apiserver.request import Target, User

REVIEWS = "/apis/authentication.k8s.io/v1"


async def bare(client: Client, path: str, token: str = "") -> int:
    """The status for somebody without the administrator's certificate."""
    context = ssl.create_default_context(cadata=client.authority)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(client.server.url + path, headers=headers) as answer,
    ):
        return answer.status


async def token_of(client: Client, account: str, **spec: Any) -> str:
    answer = await client.create(f"{NAMESPACED}/serviceaccounts/{account}/token", {"spec": spec})
    token: str = answer["status"]["token"]
    return token


async def test_without_credentials_only_health_and_version_answer(client: Client) -> None:
    """Everything else is 401, the index and discovery included."""
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert await bare(client, path) == 200
    for path in ("/", "/api", "/apis", "/metrics", "/openapi/v2", CONFIG_MAPS, "/nothing"):
        assert await bare(client, path) == 401
    assert await bare(client, CONFIG_MAPS, "nonsense") == 401


async def test_a_service_account_token_is_a_user_until_its_account_goes(client: Client) -> None:
    """403 before it is given a role, 200 after, 401 once the account is deleted."""
    await client.create(f"{NAMESPACED}/serviceaccounts", {"metadata": {"name": "robot"}})
    token = await token_of(client, "robot")
    assert await bare(client, CONFIG_MAPS, token) == 403
    assert await bare(client, f"{NAMESPACED}/nothings", token) == 403
    binding = {
        "metadata": {"name": "view"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    }
    await client.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
    assert await bare(client, CONFIG_MAPS, token) == 200
    assert await bare(client, f"{NAMESPACED}/secrets", token) == 403
    await client.ask("DELETE", f"{NAMESPACED}/serviceaccounts/robot")
    assert await bare(client, CONFIG_MAPS, token) == 401


async def test_a_token_for_another_audience_is_no_login(client: Client) -> None:
    """It opens nothing here; TokenReview for that audience knows it."""
    token = await token_of(client, "default", audiences=["vault"])
    assert await bare(client, "/api", token) == 401
    review = {"spec": {"token": token, "audiences": ["vault"]}}
    status = (await client.create(f"{REVIEWS}/tokenreviews", review))["status"]
    assert status["authenticated"] is True
    assert status["audiences"] == ["vault"]


async def test_a_forged_or_changed_token_is_401(client: Client) -> None:
    """No algorithm but ours, no changed claim, no cut signature."""
    head, body, signature = (await token_of(client, "default")).split(".")
    none = "eyJhbGciOiJub25lIn0"
    for forged in (
        f"{none}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}x.{signature}",
        "a.b.c",
        ".",
    ):
        assert await bare(client, "/api", forged) == 401


async def test_nobody_grants_what_they_do_not_hold(client: Client) -> None:
    """A namespace admin cannot write a role with more than their own rules."""
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    binding = {
        "metadata": {"name": "admin"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await client.create(f"{roles}/rolebindings", binding)
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role = {"metadata": {"name": "r"}, "rules": [rule]}
    refused = await client.ask("POST", f"{roles}/roles", role, Impersonate_User="ann")
    assert refused.status == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused.body["message"]
    role["rules"] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    assert (await client.ask("POST", f"{roles}/roles", role, Impersonate_User="ann")).status == 201


async def test_impersonation_needs_the_right(client: Client) -> None:
    """The administrator may; an ordinary user may not."""
    review = {"metadata": {}}
    answer = await client.ask("POST", f"{REVIEWS}/selfsubjectreviews", review, Impersonate_User="ann")
    assert answer.body["status"]["userInfo"]["username"] == "ann"
    await client.create(f"{NAMESPACED}/serviceaccounts", {"metadata": {"name": "robot"}})
    token = await token_of(client, "robot")
    context = ssl.create_default_context(cadata=client.authority)
    headers = {"Authorization": f"Bearer {token}", "Impersonate-User": "ann"}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(client.server.url + "/api", headers=headers) as answer2,
    ):
        assert answer2.status == 403
        assert 'cannot impersonate resource "users"' in (await answer2.json())["message"]


@pytest.mark.parametrize(
    ("resource", "more"),
    [("groups", {}), ("uids", {"impersonate-uid": "7"}), ("userextras/scope", {"impersonate-extra-scope": "s"})],
)
def test_each_part_of_an_impersonated_user_needs_the_right(resource: str, more: dict[str, str]) -> None:
    """Who may be somebody else may not say more of him; the refusal names the part as kube-apiserver names it."""

    def require(user: User, target: Target) -> None:
        if target.resource != "users":
            raise refusal(user, target)

    groups = ("g",) if resource == "groups" else ()
    with pytest.raises(StatusError) as found:
        impersonated(User("bob"), {"impersonate-user": "ann", **more}, groups, require)
    head, _, why = found.value.message.partition(" is forbidden: ")
    assert head.partition(".")[0].partition(" ")[0] == resource.partition("/")[0]
    assert why.startswith(f'User "bob" cannot impersonate resource "{resource}" in API group ')


async def test_the_audit_log_holds_who_did_what_and_no_secret(client: Client) -> None:
    """One line for a change, a refusal and a read of Secrets; none has a body; whoever acts as somebody else is named himself."""
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2hunter2"}}
    await client.create(f"{NAMESPACED}/secrets", secret)
    await client.ask("GET", CONFIG_MAPS, Impersonate_User="ann")
    await client.ask("GET", f"{NAMESPACED}/secrets")
    text = (client.folder / "data" / "audit.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert any(line["verb"] == "create" and line["path"].endswith("/secrets") and line["code"] == 201 for line in lines)
    refused = next(line for line in lines if line["code"] == 403)
    assert (refused["user"], refused["impersonatedUser"]) == ("moorage-admin", "ann")
    assert any(line["verb"] == "list" and line["path"].endswith("/secrets") for line in lines)
    assert "hunter2" not in text


async def test_private_files_are_private(client: Client) -> None:
    """Keys and the kubeconfig are readable by their owner only."""
    for path in (client.kubeconfig, *(client.folder / "data" / "pki").glob("*.key")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_certificates_survive_a_restart(tmp_path: Path) -> None:
    """The administrator's kubeconfig of yesterday still opens today's server."""
    first = Server(tmp_path / "data")
    await first.start()
    client = Client(first, tmp_path)
    port = int(first.url.rpartition(":")[2])
    await client.create(CONFIG_MAPS, config_map("a"))
    await first.stop()
    second = Server(tmp_path / "data", port=port)
    await second.start()
    client.server = second
    try:
        assert (await client.ask("GET", f"{CONFIG_MAPS}/a")).status == 200
    finally:
        await client.session.close()
        await second.stop()


async def test_sizes_are_limited(client: Client) -> None:
    """A body over 3 MiB and an object over 1.5 MiB are 413, ConfigMap data over 1 MiB is 422."""
    assert (await client.ask("POST", CONFIG_MAPS, config_map("a", k="x" * (3 * 1024 * 1024)))).status == 413
    assert (await client.ask("POST", CONFIG_MAPS, config_map("a", k="x" * (1024 * 1024 + 1)))).status == 422
    assert (await asyncio.wait_for(client.ask("GET", CONFIG_MAPS), 10)).status == 200


async def test_one_user_holds_so_many_watches_and_no_more(client: Client) -> None:
    """A further one is told to come back later; others go on."""
    client.server.api.most_watchers_of_a_user = 1
    async with client.session.get(f"{client.server.url}{CONFIG_MAPS}?watch=1") as first:
        assert first.status == 200
        answer = await client.ask("GET", f"{CONFIG_MAPS}?watch=1")
    assert answer.status == 429
