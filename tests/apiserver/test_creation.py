"""What is remembered of created objects never changes an answer: each is as from a server that remembers nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.apiserver.conftest import CONFIG_MAPS, CRDS, NAMESPACED, Client, config_map, crd

from moorage.apiserver.builtin.lifecycle import qos_class
from moorage.apiserver.creation import Created

THINGS = "/apis/example.test/v1/namespaces/default/things"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3},
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "words": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}


def secret(**data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": data}


def thing(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {}, "spec": spec}


def with_metadata(**fields: Any) -> dict[str, Any]:
    made = config_map("", k="v")
    made["metadata"] = fields
    return made


MAPS, SECRETS = CONFIG_MAPS, f"{NAMESPACED}/secrets"
PAIRS: list[tuple[str, list[dict[str, Any]]]] = [
    (MAPS, [config_map("", k="v"), config_map("", k="w"), config_map("", k="")]),
    (
        MAPS,
        [with_metadata(labels={"a": "b"}), with_metadata(labels={"a": "not valid!"}), with_metadata(labels={"a": 1})],
    ),
    (MAPS, [with_metadata(labels=None), with_metadata(labels={}), with_metadata(annotations={"a": None})]),
    (MAPS, [with_metadata(finalizers=["a.test/b"]), with_metadata(finalizers=["b"]), with_metadata(finalizers=[1])]),
    (MAPS, [with_metadata(creationTimestamp="2020-01-01T00:00:00Z"), with_metadata(creationTimestamp="soon")]),
    (MAPS, [with_metadata(uid="a", selfLink="b"), with_metadata(deletionTimestamp="2020-01-01T00:00:00Z")]),
    (
        MAPS,
        [with_metadata(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid}]) for uid in "ab"],
    ),
    (MAPS, [with_metadata(managedFields=[]), with_metadata(managedFields=[{}])]),
    (MAPS, [{**config_map("", k="v"), "immutable": flag} for flag in (True, False, None, "x", 0, 1)]),
    (MAPS, [{**config_map("", k="v"), "binaryData": {"b": text}} for text in ("YQ==", "!!!!", "", None)]),
    (MAPS, [{**config_map("", k="v"), "wrong": text} for text in ("a", "b")]),
    (MAPS, [{**config_map("", k="v"), name: "x"} for name in ("kind", "apiVersion", "data")]),
    (MAPS, [config_map("", k=value) for value in (1, 2.5, True, {}, [], None)]),
    (SECRETS, [secret(a="YQ=="), secret(a="!"), {**secret(), "stringData": {"a": "b"}}, {**secret(), "type": "x"}]),
    (THINGS, [thing(size=1, colour="red"), thing(size=2, colour="blue"), thing(size=2, colour="green")]),
    (THINGS, [thing(colour="red"), thing(colour="blue"), thing(colour=None), thing(colour="")]),
    (THINGS, [thing(size=1, words=["a"]), thing(size=1, words=["a", 1]), thing(size=1.5), thing(size="1")]),
    (THINGS, [{**thing(size=1), "status": {"a": text}, "extra": text} for text in "ab"]),
    (THINGS, [{**thing(size=1), name: "x"} for name in ("kind", "apiVersion")]),
]


def shown(status: int, body: Any) -> tuple[int, Any]:
    """An answer without what differs from one create to the next."""
    told = copy.deepcopy(body)
    for name in ("uid", "creationTimestamp", "resourceVersion"):
        told.get("metadata", {}).pop(name, None)
    for entry in told.get("metadata", {}).get("managedFields", ()):
        entry.pop("time", None)
    return status, told


async def answers(client: Client, mode: str) -> list[Any]:
    """All creates, each twice in a row, as dry runs."""
    found = []
    for path, bodies in PAIRS:
        for number, body in enumerate([*bodies, *bodies]):
            sent = {**body, "metadata": {**body["metadata"], "name": f"x{number}"}}
            answer = await client.ask("POST", f"{path}?dryRun=All&fieldValidation={mode}", sent)
            found.append((path, number, *shown(answer.status, answer.body), answer.headers.getall("warning", [])))
    return found


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
async def test_what_is_remembered_changes_no_answer(client: Client, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of one shape but other values, one after the other: objects, refusals and warnings as without memory."""
    await client.create(CRDS, crd(schema={"openAPIV3Schema": SCHEMA}))
    await client.until("/apis/example.test/v1", lambda found: found.status == 200)
    remembered = await answers(client, mode)
    with monkeypatch.context() as patched:
        patched.setattr(Created, "whole", lambda *_: None)
        patched.setattr(Created, "find", lambda *_: None)
        anew = await answers(client, mode)
    assert remembered == anew
    assert {status for _, _, status, *_ in anew} >= {201, 400, 422}


async def test_a_changed_definition_is_not_taken_for_the_old_one(client: Client) -> None:
    """A shape that needed no default needs one once the definition says so."""
    await client.create(CRDS, crd(schema={"openAPIV3Schema": SCHEMA}))
    await client.until("/apis/example.test/v1", lambda found: found.status == 200)
    body = {**thing(size=1), "metadata": {"name": "a"}}
    assert (await client.create(THINGS, body))["spec"] == {"size": 1}
    changed = copy.deepcopy(SCHEMA)
    changed["properties"]["spec"]["properties"]["more"] = {"type": "string", "default": "yes"}  # type: ignore[index]
    patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": changed}]
    answer = await client.ask("PATCH", f"{CRDS}/things.example.test", patch, media="application/json-patch+json")
    assert answer.status == 200

    async def made() -> Any:
        return (await client.ask("POST", f"{THINGS}?dryRun=All", {**body, "metadata": {"name": "b"}})).body["spec"]

    await client.until(f"{THINGS}/a", lambda found: "more" in found.body["spec"])
    assert await made() == {"size": 1, "more": "yes"}


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Mi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], wanted: str) -> None:
    assert qos_class({"containers": [{"name": "a", "resources": resources}]}) == wanted


@pytest.mark.parametrize("generation", [99999999999999999999, 1.5, "1"])
async def test_a_generation_that_no_go_client_could_read_is_refused(client: Client, generation: Any) -> None:
    """It would break the typed list of everybody else in that namespace."""
    body = {"metadata": {"name": "odd", "generation": generation}}
    answer = await client.ask("POST", CONFIG_MAPS, body)
    assert answer.status == 400
    assert "into Go struct field ObjectMeta.metadata.generation of type int64" in answer.body["message"]
