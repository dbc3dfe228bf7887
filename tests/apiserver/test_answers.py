"""Answers that recorded scenarios do not reach: the order of refusals, odd paths, tokens that go on, advice at registration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.apiserver.conftest import CONFIG_MAPS, MERGE, NAMESPACED, Client, config_map

from moorage.apiserver.builtin.conditions import check_conditions
from moorage.apiserver.builtin.warn import warn_builtin
from moorage.apiserver.options import make_token
from moorage.core.meta import ResourceType

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NOBODY = {"Impersonate_User": "nobody"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{NAMESPACED}/nothings"),
        ("GET", f"{CONFIG_MAPS}/none"),
        ("POST", f"{NAMESPACED}/nothings/x/y"),
        ("PATCH", CONFIG_MAPS),
        ("GET", "/apis/nothing.example.test/v1/things"),
        ("GET", "/metrics"),
        ("DELETE", "/api/v1/namespaces/default"),
    ],
)
async def test_who_may_not_learns_nothing_else(client: Client, method: str, path: str) -> None:
    """403 comes before 404 and 405, and 401 before all."""
    assert (await client.ask(method, path, None, **NOBODY)).status == 403
    assert (await client.ask(method, path, None, Authorization="Bearer nonsense")).status == 401


@pytest.mark.parametrize(
    "path",
    [
        f"{NAMESPACED}/secrets/..%2Fsecrets%2Fx",
        f"{CONFIG_MAPS}/..%2f..%2fkube-system%2fsecrets",
        "/api/v1/namespaces/default%2Fsecrets/x",
        f"{CONFIG_MAPS}/%00",
        f"{CONFIG_MAPS}/{'a' * 4000}",
        "/api/v1/watch",
        "/apis//v1/things",
        f"{NAMESPACED}/pods/x/log/../../secrets",
    ],
)
async def test_odd_paths_lead_nowhere(client: Client, path: str) -> None:
    """They are refused as what they are, without a fault of the server's own."""
    answer = await client.ask("GET", path)
    assert 400 <= answer.status < 500, answer


async def test_a_pod_log_stays_in_its_folder(client: Client) -> None:
    """Names of containers are no paths."""
    (client.folder / "secret").write_text("hidden")
    answer = await client.ask("GET", f"{NAMESPACED}/pods/x/log?container=../../../secret")
    assert (answer.status, "hidden" in str(answer.body)) == (404, False)


async def test_a_token_that_is_too_old_carries_one_that_goes_on(client: Client) -> None:
    """The rest of the list, at the newest revision, as client libraries ask for it after 410."""
    for name in "abc":
        await client.create(CONFIG_MAPS, config_map(name))
    old = client.server.hub.revision
    await client.create(CONFIG_MAPS, config_map("d"))
    await client.server.hub.store.compact(client.server.hub.revision)
    refused = await client.ask("GET", f"{CONFIG_MAPS}?limit=2&continue={make_token(old, 'default/b')}")
    assert (refused.status, refused.body["reason"]) == (410, "Expired")
    token = refused.body["metadata"]["continue"]
    rest = await client.ask("GET", f"{CONFIG_MAPS}?limit=50&continue={token}")
    assert [item["metadata"]["name"] for item in rest.body["items"]][:3] == ["b", "c", "d"]


@pytest.mark.parametrize("token", ["e30", "nonsense", "eyJ2IjoidjIifQ", "W10", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"])
async def test_tokens_of_others_are_refused_with_words(client: Client, token: str) -> None:
    """400, and no Python in it."""
    answer = await client.ask("GET", f"{CONFIG_MAPS}?continue={token}")
    assert answer.status == 400
    assert answer.body["message"].startswith("invalid continue token: ")


async def test_halves_of_characters_become_the_replacement(client: Client) -> None:
    """A lone surrogate in JSON is U+FFFD, a pair and an escaped backslash are what they say."""
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"a":"\\ud800x","b":"\\ud83d\\ude00","c":"\\\\ud800"}}'
    answer = await client.ask("POST", CONFIG_MAPS, text.encode())
    assert answer.body["data"] == {"a": "\ufffdx", "b": "😀", "c": "\\ud800"}


async def test_what_an_apply_nests_endlessly_is_refused(client: Client) -> None:
    """400, not a fault of the server's own."""
    deep = "[{a: " * 400 + "1" + "}]" * 400
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {deep}\n"
    answer = await client.ask(
        "PATCH", f"{CONFIG_MAPS}/a?fieldManager=x", body.encode(), media="application/apply-patch+yaml"
    )
    assert answer.status == 400


async def test_kubectl_takes_over_from_its_client_side_apply(client: Client) -> None:
    """Only fields that the annotation declared, and only for the manager kubectl."""
    last = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    first = {
        **last,
        "data": {"k": "v", "other": "x"},
        "metadata": {
            "name": "a",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(last)},
        },
    }
    await client.ask("POST", f"{CONFIG_MAPS}?fieldManager=kubectl-client-side-apply", first)

    async def apply(manager: str, **data: str) -> Any:
        body = json.dumps({**last, "data": data}).encode()
        path = f"{CONFIG_MAPS}/a?fieldManager={manager}"
        return await client.ask("PATCH", path, body, media="application/apply-patch+yaml")

    assert (await apply("somebody", k="w")).status == 409
    refused = await apply("kubectl", k="w", other="y")
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [".data.other"]
    assert (await apply("kubectl", k="w")).status == 200


async def test_a_condition_that_asks_the_authorizer_is_refused_at_registration(client: Client) -> None:
    """Clearly, and not when the first request comes."""
    hook = {
        "name": "a.b.c",
        "clientConfig": {"url": "https://127.0.0.1/x"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "x", "expression": "authorizer.path('/x').check('get').allowed()"}],
    }
    answer = await client.ask("POST", HOOKS, {"metadata": {"name": "x"}, "webhooks": [hook]})
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == "webhooks[0].matchConditions[0].expression"
    assert "does not offer it" in answer.body["message"]


@pytest.mark.parametrize(
    ("conditions", "paths"),
    [
        ([{"name": "a", "expression": "object.authorizer == 'authorizer'"}], ["c[0].expression"]),
        ([{"name": "a", "expression": "request.name == 'authorizer'"}], []),
        ([{"name": "", "expression": ""}], ["c[0].expression", "c[0].name"]),
        ([{"name": "a", "expression": "nothing == 1"}], ["c[0].expression"]),
        ([{"name": "a", "expression": "true"}, {"name": "a", "expression": "1 + 1"}], ["c[1].expression", "c[1].name"]),
        ([{"name": f"a{n}", "expression": "true"} for n in range(65)], ["c"]),
    ],
)
def test_conditions_are_judged_one_by_one(conditions: list[dict[str, str]], paths: list[str]) -> None:
    """A text that holds the word is no use of the variable."""
    assert [error.path for error in check_conditions("c", conditions)] == paths


@pytest.mark.parametrize(
    ("data", "warning"),
    [
        ({}, "tls: failed to find any PEM data in certificate input"),
        ({"tls.crt": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="}, "tls: failed to find any PEM data in key input"),
        (
            {"tls.crt": "LS0tLS1CRUdJTiBSU0EgS0VZLS0tLS0K"},
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [RSA KEY]',
        ),
    ],
)
def test_advice_about_a_pair_that_is_none(data: dict[str, str], warning: str) -> None:
    """As Go's TLS words it."""
    rt = ResourceType("", "v1", "Secret", "secrets")
    assert warn_builtin(rt, {"type": "kubernetes.io/tls", "data": data}) == (warning,)


async def test_a_definition_is_held_only_while_it_ends(client: Client) -> None:
    """Nothing stands in its finalizers before it is deleted; the server's own status writes have an owner."""
    from tests.apiserver.conftest import crd

    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await client.create(path, crd())
    made = await client.until(f"{path}/things.example.test", lambda found: found.body["status"]["conditions"])
    assert "finalizers" not in made.body["metadata"]
    owners = [(item["manager"], item.get("subresource")) for item in made.body["metadata"]["managedFields"]]
    assert ("kube-apiserver", "status") in owners


async def test_a_namespace_that_must_be_there_cannot_be_deleted(client: Client) -> None:
    """403 with the sentence, also for the administrator."""
    for name in ("default", "kube-system", "kube-public"):
        answer = await client.ask("DELETE", f"/api/v1/namespaces/{name}")
        assert (answer.status, "may not be deleted" in answer.body["message"]) == (403, True)


async def test_fields_of_any_kind_are_kept(client: Client) -> None:
    """managedFields of a built-in object, defaults and examples of a definition: their content is nobody's to prune."""
    made = await client.create(CONFIG_MAPS, config_map("a", k="v"))
    answer = await client.ask("PUT", f"{CONFIG_MAPS}/a?fieldValidation=Strict", made)
    assert (answer.status, answer.body["metadata"]["managedFields"]) == (200, made["metadata"]["managedFields"])
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    part = {"type": "object", "default": {"x": {"y": [1]}}, "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": part}}
    names = {"plural": "things", "kind": "Thing"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.test", "scope": "Namespaced", "names": names, "versions": [version]}
    body = {"metadata": {"name": "things.example.test"}, "spec": spec}
    stored = (await client.ask("POST", f"{path}?fieldValidation=Strict", body)).body
    assert stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == schema


async def test_a_null_in_a_map_of_texts_is_the_empty_text(client: Client) -> None:
    """As Go decodes it, before any default is set."""
    made = await client.create(CONFIG_MAPS, {**config_map("a"), "data": {"k": None}})
    assert made["data"] == {"k": ""}
    patched = await client.ask("PATCH", f"{CONFIG_MAPS}/a", {"data": {"k": None}}, media=MERGE)
    assert "data" not in patched.body
