"""A server is deployed, kept as declared, and healed: over a real API server, with a fake Pocket-ID as its pod."""

from __future__ import annotations

import asyncio
import base64

import pytest

from moorage.core.meta import Key
from moorage.core.outcome import Done, Failed, Stalled, Waiting
from moorage.kube.client import PatchType
from moorage.kube.resources import DEPLOYMENTS, NAMESPACES, PODS, PVCS, SECRETS, SERVICES
from moorage.pocketid.instance.types import KEY_HASH, KIND, SETTINGS_HASH

from .scene import KEY, NAME, Scene

HELD = f"{NAME}-held-encryption-key"
API = f"{NAME}-static-api-key"
SETTINGS = f"{NAME}-settings"
DATA = f"{NAME}-data"


@pytest.mark.case("P1")
async def test_a_server_is_deployed_and_asked_and_then_left_alone(here: Scene) -> None:
    """Keys, volume, Service, workload; Ready names the version; a second pass writes nothing."""
    await here.make()
    assert isinstance(await here.drive(), Done)
    assert await here.ready() == ("True/Ready", f"Pocket-ID 2.14.0 runs at http://{NAME}.pocket-id.svc:1411")
    assert await here.names() == {
        "Secret": sorted([HELD, API]),
        "PersistentVolumeClaim": [DATA],
        "Service": [NAME],
        "Deployment": [NAME],
    }
    status = await here.status()
    assert (status["version"], status["url"]) == ("2.14.0", f"http://{NAME}.pocket-id.svc:1411")
    assert (status["staticApiKeySecretName"], status["encryptionKeySecretName"]) == (API, HELD)
    assert (await here.secret_data(HELD))["token"] == KEY
    assert len((await here.secret_data(API))["token"]) == 32
    assert here.starts == 1
    assert [event.reason for event in here.told].count("ServerDeployed") == 1
    assert await here.writes() == 0


async def test_the_pod_takes_its_secrets_from_secrets(here: Scene) -> None:
    """Neither the Deployment nor the status nor an event shows one; what stands in the resource, and what a Secret holds, comes by one Secret."""
    await here.secret("mail", password="mail-password\n")
    ref = {"secretKeyRef": {"name": "mail", "key": "password"}}
    await here.make(
        smtp={"host": "mail", "from": "id@example.org", "password": {"valueFrom": ref}},
        databaseUrl={"value": "postgres://id:db-password@db/id"},
    )
    await here.drive()
    assert here.env["SMTP_PASSWORD"] == "mail-password"
    assert here.env["DB_CONNECTION_STRING"] == "postgres://id:db-password@db/id"
    shown = str([await here.workload(), await here.status(), here.told])
    token = (await here.secret_data(API))["token"]
    assert [text for text in (KEY, token, "mail-password", "db-password") if text in shown] == []
    assert sorted(await here.secret_data(SETTINGS)) == ["DB_CONNECTION_STRING", "SMTP_PASSWORD"]


async def test_a_changed_secret_restarts_the_pod_once(here: Scene) -> None:
    """The annotation of the pod changes with it; that of the API key does not."""
    await here.secret("mail", password="before")
    ref = {"secretKeyRef": {"name": "mail", "key": "password"}}
    await here.make(smtp={"host": "mail", "from": "id@example.org", "password": {"valueFrom": ref}})
    await here.drive()
    first = (await here.workload())["spec"]["template"]["metadata"]["annotations"]
    await here.secret("mail", password="after")
    await here.drive()
    second = (await here.workload())["spec"]["template"]["metadata"]["annotations"]
    assert (here.starts, here.env["SMTP_PASSWORD"]) == (2, "after")
    assert first[KEY_HASH] == second[KEY_HASH]
    assert first[SETTINGS_HASH] != second[SETTINGS_HASH]
    assert await here.writes() == 0


async def test_a_secret_that_env_names_restarts_the_pod_once(here: Scene) -> None:
    """The pod takes it by itself; what changes in it is seen by a digest."""
    await here.secret("own", word="before")
    ref = {"secretKeyRef": {"name": "own", "key": "word"}}
    await here.make(env=[{"name": "OWN_WORD", "valueFrom": ref}])
    await here.drive()
    assert here.env["OWN_WORD"] == "before"
    await here.secret("own", word="after")
    await here.drive()
    assert (here.starts, here.env["OWN_WORD"]) == (2, "after")
    assert await here.writes() == 0


async def test_what_a_person_has_to_bring_is_named_all_at_once(here: Scene) -> None:
    """Nothing is started before; the fields and the Secrets are named; it goes on by itself."""
    secret = {"valueFrom": {"secretKeyRef": {"name": "s3", "key": "id"}}}
    await here.make(
        s3={
            "bucket": "b",
            "accessKeyID": secret,
            "secretAccessKey": {"valueFrom": {"secretKeyRef": {"name": "s3", "key": "key"}}},
        }
    )
    assert isinstance(await here.drive(), Waiting)
    said, message = await here.ready()
    assert said == "False/SecretNotFound"
    assert 'spec.s3.accessKeyID.valueFrom: Secret "s3" does not exist; create it with key "id"' in message
    assert "spec.s3.secretAccessKey.valueFrom" in message
    assert (await here.names())["Deployment"] == []
    await here.secret("s3", id="me", key="mine")
    await here.drive()
    assert (await here.ready())[0] == "True/Ready"
    assert (here.env["FILE_BACKEND"], here.env["S3_ACCESS_KEY_ID"]) == ("s3", "me")


@pytest.mark.case("P3")
async def test_drift_is_repaired_and_foreign_additions_stay(here: Scene) -> None:
    """A changed image, a deleted Service, stripped labels come back; what others add stays."""
    await here.make()
    await here.drive()
    containers = [{"name": "pocket-id", "image": "evil:1"}]
    patch = {
        "spec": {"replicas": 3, "template": {"spec": {"containers": containers}}},
        "metadata": {"labels": {"theirs": "x"}},
    }
    await here.client.patch(DEPLOYMENTS, here.key, patch, type=PatchType.STRATEGIC)
    await here.client.delete(SERVICES, here.key)
    await here.client.patch(
        SECRETS,
        Key(here.namespace, HELD),
        {"metadata": {"labels": {"managed-by": "pocket-id-operator", "app.kubernetes.io/name": "pocket-id"}}},
    )
    await here.drive()
    live = await here.workload()
    assert (live["spec"]["replicas"], live["spec"]["template"]["spec"]["containers"][0]["image"]) == (
        1,
        "pocket-id:v2.14.0",
    )
    assert live["metadata"]["labels"]["theirs"] == "x"
    assert await here.get(SERVICES, NAME) is not None
    assert await here.writes() == 0


async def test_a_lost_api_key_is_made_anew_and_the_pod_follows(here: Scene) -> None:
    """The key is nothing but a password between us and the server."""
    await here.make()
    await here.drive()
    before = (await here.secret_data(API))["token"]
    await here.client.delete(SECRETS, Key(here.namespace, API))
    await here.drive()
    after = (await here.secret_data(API))["token"]
    assert before != after
    assert (here.env["STATIC_API_KEY"], here.starts) == (after, 2)
    short = base64.b64encode(b"short").decode()
    await here.client.patch(SECRETS, Key(here.namespace, API), {"data": {"token": short}})
    await here.drive()
    assert len((await here.secret_data(API))["token"]) == 32
    assert (await here.ready())[0] == "True/Ready"
    assert "APIKeyReplaced" in [event.reason for event in here.told]


async def test_an_upgrade_restarts_the_pod_in_place_and_is_told(here: Scene) -> None:
    """Progressing until the new pod answers; the version of the status is what the server says."""
    await here.make()
    await here.drive()
    here.pods_run = False
    await here.edit(image="pocket-id:v2.17.0")
    await here.drive()
    assert (await here.ready())[0] == "False/Progressing"
    here.pods_run = True
    await here.drive()
    assert await here.ready() == ("True/Ready", f"Pocket-ID 2.17.0 runs at http://{NAME}.pocket-id.svc:1411")
    assert [event.message for event in here.told if event.reason == "ServerUpgraded"] == [
        "Pocket-ID 2.17.0 runs in the place of 2.14.0"
    ]


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("pocket-id:v3.0.0", "UnsupportedVersion"),
        ("pocket-id:v2.13.1", "UnsupportedVersion"),
        ("pocket-id:v2.16.0", "DowngradeRefused"),
    ],
)
async def test_an_image_that_would_harm_is_not_rolled_out(here: Scene, image: str, reason: str) -> None:
    """The running server stays; the message says what to do."""
    await here.make(image="pocket-id:v2.17.0")
    await here.drive()
    await here.edit(image=image)
    assert isinstance(await here.drive(), Stalled)
    said, message = await here.ready()
    assert said == f"False/{reason}"
    assert "spec.image" in message
    assert (await here.workload())["spec"]["template"]["spec"]["containers"][0]["image"] == "pocket-id:v2.17.0"
    if reason == "DowngradeRefused":
        await here.annotate(allow_downgrade="true")
        await here.drive()
        assert (await here.status())["version"] == "2.16.0"


async def test_a_volume_grows_and_what_cannot_change_is_told(here: Scene) -> None:
    """Admission refuses it first; a pass that meets it all the same says which field, and touches nothing."""
    await here.make()
    await here.drive()
    await here.edit(persistence={"size": "2Gi"})
    await here.drive()
    claim = await here.get(PVCS, DATA)
    assert claim is not None
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    await here.edit(persistence={"size": "1Gi"})
    await here.drive()
    said, message = await here.ready()
    assert said == "False/VolumeFixed"
    assert message.startswith("spec.persistence.size: a volume of 2Gi does not shrink to 1Gi;")


async def test_a_claim_of_a_person_is_waited_for_and_never_changed(here: Scene) -> None:
    """Its name is all that we know of it."""
    await here.make(persistence={"existingClaim": "mine"})
    await here.drive()
    assert (await here.ready())[0] == "False/VolumeClaimNotFound"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mine", "namespace": here.namespace},
        "spec": spec,
    }
    await here.client.create(PVCS, body)
    await here.drive()
    assert (await here.ready())[0] == "True/Ready"
    found = await here.get(PVCS, "mine")
    assert found is not None
    assert {"labels", "annotations", "ownerReferences"} & found["metadata"].keys() == set()


async def test_objects_of_others_are_not_seized(here: Scene) -> None:
    """Whatever carries the name of a child and is not ours stops the instance, and stays as it is."""
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": here.namespace},
        "spec": {"ports": [{"port": 80}]},
    }
    made = await here.client.create(SERVICES, body)
    await here.make()
    assert isinstance(await here.attempt(), Failed)
    assert (await here.ready())[0] == "False/ForeignObject"
    found = await here.get(SERVICES, NAME)
    assert found is not None
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await here.client.delete(SERVICES, here.key)
    await here.drive()
    assert (await here.ready())[0] == "True/Ready"


@pytest.mark.parametrize("name", [HELD, API])
async def test_a_secret_of_somebody_else_is_no_key_of_ours(here: Scene, name: str) -> None:
    """It is neither read nor changed."""
    await here.secret(name, token="somebody-elses-secret")
    await here.make()
    await here.drive()
    said, message = await here.ready()
    assert said == "False/ForeignObject"
    assert f'Secret "{name}" exists and is not ours' in message
    assert await here.secret_data(name) == {"token": "somebody-elses-secret"}


async def test_stateful_sets_are_not_served_here_and_that_is_told(here: Scene) -> None:
    """One-machine mode has Deployments."""
    await here.make(deploymentType="StatefulSet")
    assert isinstance(await here.attempt(), Failed)
    said, message = await here.ready()
    assert said == "False/DeploymentUnavailable"
    assert "deploymentType Deployment" in message


async def test_without_the_gateway_api_a_route_is_told_and_the_server_runs(here: Scene) -> None:
    """It comes last, so nothing but the route is missing."""
    await here.make()
    await here.drive()
    await here.edit(route={"enabled": True, "parentRefs": [{"name": "gateway"}]})
    assert isinstance(await here.attempt(), Failed)
    assert (await here.ready())[0] == "False/RouteUnavailable"
    assert here.starts == 1
    await here.edit(route=None)
    await here.drive()
    assert (await here.ready())[0] == "True/Ready"


async def test_an_instance_without_an_image_says_where_one_comes_from(
    here: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resource, or the operator's environment."""
    monkeypatch.delenv("POCKET_ID_IMAGE", raising=False)
    await here.make(image=None)
    await here.drive()
    assert (await here.ready())[0] == "False/ImageNotSet"
    monkeypatch.setenv("POCKET_ID_IMAGE", "pocket-id:v2.15.0")
    await here.drive()
    assert (await here.status())["version"] == "2.15.0"


async def test_a_server_that_refuses_the_key_is_told(here: Scene) -> None:
    """The pod is ready, and says no: its own look is kept."""
    await here.make()
    await here.drive()
    here.fake.api_key = "another-key-of-sixteen-letters"
    await here.drive()
    assert (await here.ready())[0] == "False/APIClientError"


@pytest.mark.case("P2")
async def test_a_pod_that_does_not_run_tells_why_and_no_secret(here: Scene) -> None:
    """Its last words stand in the condition, the password in them does not."""
    here.pods_run = False
    await here.make(databaseUrl={"value": "postgres://id:hunter2-hunter2@db/id"})
    await here.drive()
    words = "cannot connect to postgres://id:hunter2-hunter2@db/id: refused"
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": f"starting\n{words}\n"}}
    state = {"name": "pocket-id", "image": "x", "imageID": "", "ready": False, "restartCount": 3, "lastState": ended}
    labels = {"app.kubernetes.io/name": "pocket-id", "app.kubernetes.io/instance": NAME}
    meta = {"name": "pod", "namespace": here.namespace, "labels": labels}
    spec = {"containers": [{"name": "pocket-id", "image": "x"}]}
    await here.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    status = {"phase": "Running", "containerStatuses": [{**state, "state": {}}]}
    await here.client.patch(PODS, Key(here.namespace, "pod"), {"status": status}, subresource="status")
    await here.drive()
    said, message = await here.ready()
    assert said == "False/Progressing"
    assert "cannot connect to ***: refused" in message
    assert "hunter2" not in str([await here.status(), here.told])


async def test_a_namespace_that_ends_gets_nothing_new_and_ends(here: Scene) -> None:
    """The instance is held by somebody's finalizer; what was deployed goes, and nothing is made again."""
    await here.make()
    await here.drive()
    hold = {"metadata": {"finalizers": ["example.org/hold"]}}
    await here.client.patch(KIND.resource, here.key, hold)
    await here.client.delete(NAMESPACES, Key("", here.namespace))
    async with asyncio.timeout(60):
        while (await here.names())["Deployment"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert isinstance(await here.drive(), Done)
    assert (await here.names())["Deployment"] == []
    assert await here.ready() == (
        "False/Deleting",
        "what was deployed is deleted; the volume and the encryption key stay in the namespace for an instance of the same name",
    )
    await here.client.patch(KIND.resource, here.key, {"metadata": {"finalizers": None}})
