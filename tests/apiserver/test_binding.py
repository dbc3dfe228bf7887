"""Pods are given to nodes by their subresource `binding`, and by nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import MERGE, NAMESPACED, Client

PODS = f"{NAMESPACED}/pods"


def pod(name: str = "bare", **spec: Any) -> dict[str, Any]:
    full = {"containers": [{"name": "main", "image": "x"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": full}


def binding(node: str = "local", kind: str = "Node", **meta: Any) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": kind, "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bare", **meta}, "target": target}


async def test_a_binding_gives_the_pod_its_node_and_its_annotations(client: Client) -> None:
    await client.create(PODS, pod())
    answer = await client.ask("POST", f"{PODS}/bare/binding", binding(annotations={"a": "b"}))
    assert (answer.status, answer.body["status"]) == (201, "Success")
    bound = (await client.ask("GET", f"{PODS}/bare")).body
    assert bound["spec"]["nodeName"] == "local"
    assert bound["metadata"]["annotations"] == {"a": "b"}
    (scheduled,) = bound["status"]["conditions"]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")


async def test_a_pod_that_has_a_node_keeps_it(client: Client) -> None:
    await client.create(PODS, pod(nodeName="first"))
    answer = await client.ask("POST", f"{PODS}/bare/binding", binding("second"))
    assert answer.status == 409
    assert answer.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "bare": pod bare is already assigned to node "first"'
    )
    answer = await client.ask("PATCH", f"{PODS}/bare", {"spec": {"nodeName": "second"}}, media=MERGE)
    assert answer.status == 422


async def test_a_dry_run_and_a_binding_for_another_uid_change_nothing(client: Client) -> None:
    await client.create(PODS, pod())
    assert (await client.ask("POST", f"{PODS}/bare/binding?dryRun=All", binding())).status == 201
    assert (await client.ask("POST", f"{PODS}/bare/binding", binding(uid="another"))).status == 409
    assert (await client.ask("POST", f"{PODS}/none/binding", binding())).status == 404
    assert "nodeName" not in (await client.ask("GET", f"{PODS}/bare")).body["spec"]


@pytest.mark.parametrize(("body", "path"), [(binding(kind="Pod"), "target.kind"), (binding(node=""), "target.name")])
async def test_a_binding_to_something_else_than_a_node_is_refused(
    client: Client, body: dict[str, Any], path: str
) -> None:
    await client.create(PODS, pod())
    answer = await client.ask("POST", f"{PODS}/bare/binding", body)
    assert answer.status == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [path]


async def test_the_subresource_is_told_by_discovery(client: Client) -> None:
    found = (await client.ask("GET", "/api/v1")).body["resources"]
    (row,) = [item for item in found if item["name"] == "pods/binding"]
    assert (row["kind"], row["verbs"]) == ("Binding", ["create"])
