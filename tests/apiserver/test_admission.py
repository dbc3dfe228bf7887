"""Webhooks: called in process and over https, with Kubernetes' rules for failure, dry run and selection."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.conftest import CONFIG_MAPS, Client, config_map

from moorage.apiserver import Server
from moorage.core.errors import EnvironmentError_

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


async def refuse_bad(review: dict[str, Any]) -> dict[str, Any]:
    """Refuses what is called bad, warns about the rest."""
    request = review["request"]
    allowed = request["object"]["metadata"]["name"] != "bad"
    response = {"uid": request["uid"], "allowed": allowed, "warnings": ["seen"]}
    if not allowed:
        response["status"] = {"message": "bad is bad", "code": 422, "reason": "Invalid"}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


async def add_label(review: dict[str, Any]) -> dict[str, Any]:
    """Adds a label."""
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"added": "yes"}}]
    response = {
        "uid": review["request"]["uid"],
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


async def not_there_yet(_review: dict[str, Any]) -> dict[str, Any]:
    """What answers in this process has not started."""
    raise EnvironmentError_("admission", "the operator has not started yet", "Try again in a moment")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    server = Server(
        tmp_path / "data", in_process={"/validate": refuse_bad, "/mutate": add_label, "/late": not_there_yet}
    )
    await server.start()
    client = Client(server, tmp_path)
    yield client
    await client.session.close()
    await server.stop()


async def register(client: Client, kind: str, path: str, **more: Any) -> None:
    service = {"namespace": "moorage-system", "name": "moorage-webhook", "path": path}
    webhook = {
        "name": f"{path.strip('/')}.moorage.internal",
        "clientConfig": {"service": service},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    body = {"metadata": {"name": path.strip("/")}, "webhooks": [webhook]}
    await client.create(f"{CONFIGURATIONS}/{kind}webhookconfigurations", body)


async def test_a_refusal_names_the_webhook_and_keeps_its_code(client: Client) -> None:
    """The message is the webhook's, with its name before it; warnings of others come through."""
    await register(client, "validating", "/validate")
    answer = await client.ask("POST", CONFIG_MAPS, config_map("bad"))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"] == 'admission webhook "validate.moorage.internal" denied the request: bad is bad'
    good = await client.ask("POST", CONFIG_MAPS, config_map("good"))
    assert good.status == 201
    assert good.headers["Warning"] == '299 - "seen"'


async def test_mutations_are_stored(client: Client) -> None:
    """The patch of a mutating webhook changes what is stored."""
    await register(client, "mutating", "/mutate")
    assert (await client.create(CONFIG_MAPS, config_map("a")))["metadata"]["labels"] == {"added": "yes"}


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
async def test_a_webhook_that_is_down(client: Client, policy: str, status: int) -> None:
    """`Fail` refuses, `Ignore` goes on."""
    url = {"url": "https://127.0.0.1:1/validate"}
    await register(client, "validating", "/validate", clientConfig=url, failurePolicy=policy, timeoutSeconds=2)
    answer = await client.ask("POST", CONFIG_MAPS, config_map("a"))
    assert answer.status == status
    if status == 500:
        assert 'failed calling webhook "validate.moorage.internal"' in answer.body["message"]


async def test_an_operator_that_has_not_started_is_a_webhook_that_cannot_be_called(client: Client) -> None:
    """With what to do in its words, as kube-apiserver says of any other; no failure of the server's own."""
    await register(client, "validating", "/late")
    answer = await client.ask("POST", CONFIG_MAPS, config_map("a"))
    assert answer.status == 500
    said = "admission: the operator has not started yet. Try again in a moment"
    assert (
        answer.body["message"]
        == f'Internal error occurred: failed calling webhook "late.moorage.internal": failed to call webhook: {said}'
    )


async def test_match_conditions_and_selectors_choose(client: Client) -> None:
    """CEL conditions and label selectors keep requests away from a webhook."""
    conditions = [{"name": "not-bad", "expression": "object.metadata.name != 'bad'"}]
    await register(client, "validating", "/validate", matchConditions=conditions)
    assert (await client.ask("POST", CONFIG_MAPS, config_map("bad"))).status == 201
    await client.ask("DELETE", f"{CONFIGURATIONS}/validatingwebhookconfigurations/validate")
    await register(client, "validating", "/validate", objectSelector={"matchLabels": {"checked": "yes"}})
    await client.ask("DELETE", f"{CONFIG_MAPS}/bad")
    assert (await client.ask("POST", CONFIG_MAPS, config_map("bad"))).status == 201


async def test_dry_run_needs_a_webhook_without_side_effects(client: Client) -> None:
    """One that may have some is not asked, and the dry run is refused."""
    await register(client, "validating", "/validate", sideEffects="NoneOnDryRun")
    assert (await client.ask("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("good"))).status == 201
    assert (await client.ask("GET", f"{CONFIG_MAPS}/good")).status == 404
