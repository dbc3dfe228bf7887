"""Federated backends on the embedded API server, walked by the real room: attach, change, rollover, detach, and every crash in between."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point
from tests.keystone.service import federated, given
from tests.keystone.service.machine import Machine, again, machine, served

from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.backend.types import ROLLOVER
from moorage.keystone.service.federation import CONFIG_VOLUME
from moorage.keystone.service.seen import CONFIG_MAP, DEPLOYMENT, JOB, SECRET, SERVICE, mounted
from moorage.keystone.service.types import KIND
from moorage.kube.client import Client
from moorage.kube.resources import EVENTS

_NAMES = iter(f"fed-{number}" for number in range(10_000))
SPEC: JsonObject = {
    "federation": federated.FEDERATION,
    "bootstrap": {
        "adminPasswordSecretRef": {"name": "keystone-admin"},
        "publicEndpoint": "https://keystone.acme.test/v3",
    },
}
THREE: JsonObject = {
    **SPEC,
    "database": {"host": "db.acme.test", "database": "keystone", "secretRef": {"name": "keystone-db"}},
    "deployment": {"replicas": 3},
}
ENTITY_PATH = "/v3/OS-FEDERATION/identity_providers/corp/protocols/mapped/auth/mellon/metadata"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with served(tmp_path) as found:
        yield found


@pytest.fixture
async def m(client: Client) -> AsyncIterator[Machine]:
    async with machine(client, next(_NAMES), spec=SPEC) as found:
        yield found


async def oidc(m: Machine, **short: Any) -> None:
    await m.put(BACKEND.resource, given.backend({"name": "acme", "type": "OIDC", **short}))


async def saml(m: Machine, **short: Any) -> None:
    await m.put(BACKEND.resource, given.backend({"name": "corp", "type": "SAML", **short}))


async def detach(m: Machine, name: str) -> None:
    await m.client.delete(BACKEND.resource, Key(m.namespace, name))


async def data(m: Machine, name: str) -> dict[str, bytes]:
    found = await m.client.get(SECRET, Key(m.namespace, name))
    return {key: base64.b64decode(value) for key, value in found["data"].items()}


async def names(m: Machine, rt: Any = SECRET) -> set[str]:
    return {item["metadata"]["name"] for item in (await m.client.list(rt, m.namespace)).items}


async def deployment(m: Machine, name: str = "keystone") -> JsonObject:
    return await m.client.get(DEPLOYMENT, Key(m.namespace, name))


async def files(m: Machine) -> dict[str, bytes]:
    """What the sidecar's pods mount; nothing without a sidecar."""
    name = mounted(await deployment(m), CONFIG_VOLUME)
    return await data(m, name) if name else {}


async def change(m: Machine, name: str, values: dict[str, str]) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    await m.client.patch(SECRET, Key(m.namespace, name), {"data": encoded})


async def annotate(m: Machine, word: str | None) -> None:
    await m.client.patch(BACKEND.resource, Key(m.namespace, "corp"), {"metadata": {"annotations": {ROLLOVER: word}}})


async def backends(m: Machine) -> tuple[str, str]:
    return (await m.conditions())["IdentityBackendsReady"]


def certificates(document: bytes) -> int:
    """Signing certificates of an SP's metadata."""
    return document.count(b'use="signing"')


@pytest.mark.case("P1")
@pytest.mark.case("C15")
async def test_attaching_oidc_puts_the_sidecar_in_front_and_runs_no_job_again(m: Machine) -> None:
    """One roll; a fresh process makes no write afterwards; detach gives the plain pods back and leaves no copy of a secret."""
    await m.drive()
    jobs = {job["metadata"]["uid"] for job in (await m.client.list(JOB, m.namespace)).items}
    before = (await deployment(m))["metadata"]["generation"]
    await oidc(m)
    await m.drive()
    live = await deployment(m)
    assert [item["name"] for item in live["spec"]["template"]["spec"]["containers"]] == ["keystone", "federation-proxy"]
    assert live["metadata"]["generation"] == before + 1
    assert await backends(m) == ("True", "AllBackendsProjected")
    assert {"acme.provider", "acme.client", "acme.conf", "proxy.conf"} <= set(await files(m))
    fence = Fence()
    await m.drive(fence)
    assert fence.writes == 0
    await detach(m, "acme")
    await m.drive()
    assert [item["name"] for item in (await deployment(m))["spec"]["template"]["spec"]["containers"]] == ["keystone"]
    assert await backends(m) == ("True", "IdentityBackendsNotRequired")
    assert not [name for name in await names(m) if "-federation-" in name]
    assert {job["metadata"]["uid"] for job in (await m.client.list(JOB, m.namespace)).items} == jobs


@pytest.mark.case("S1", "P4")
async def test_a_backend_is_detached_although_the_administrators_secret_is_missing(m: Machine) -> None:
    """What runs needs no administrator: whoever is deleted loses its place in the pods, and the status still tells what is missing."""
    await oidc(m)
    await saml(m)
    await m.drive()
    secret = Key(m.namespace, "keystone-admin")
    held = await m.client.get(SECRET, secret)
    await m.client.delete(SECRET, secret)
    await detach(m, "acme")
    await m.drive()
    assert not [name for name in await files(m) if name.startswith("acme.")]
    assert "corp.digest" in await files(m)
    found = await m.conditions()
    assert found["SecretsReady"] == ("False", "WaitingForAdminCredentials")
    assert found["BootstrapReady"] == ("True", "BootstrapComplete")
    await m.put(SECRET, {**held, "metadata": {"name": secret.name, "namespace": m.namespace}})
    await m.drive()
    assert (await m.conditions())["Ready"] == ("True", "AllReady")


@pytest.mark.case("S8")
async def test_a_changed_client_secret_rolls_once_and_the_old_one_is_not_kept(m: Machine) -> None:
    """Generations with the same secrets stay for a roll back, at most three; one with another client secret goes after the roll."""
    await oidc(m)
    await m.drive()
    first = mounted(await deployment(m), CONFIG_VOLUME)
    await m.client.patch(BACKEND.resource, Key(m.namespace, "acme"), {"spec": {"oidc": {"scopes": ["openid"]}}})
    await m.drive()
    second = mounted(await deployment(m), CONFIG_VOLUME)
    assert {first, second} <= await names(m)
    generation = (await deployment(m))["metadata"]["generation"]
    await change(m, "client", {"clientSecret": "another"})
    await m.drive()
    assert (await deployment(m))["metadata"]["generation"] == generation + 1
    left = {name for name in await names(m) if "-federation-" in name}
    assert left == {mounted(await deployment(m), CONFIG_VOLUME)}
    assert b"another" in (await files(m))["acme.client"]


@pytest.mark.case("P4")
async def test_a_backend_without_its_secret_leaves_its_sibling_and_heals_by_itself(m: Machine) -> None:
    """Named in the condition, told once; the sibling's files do not change when it comes."""
    await oidc(m)
    await m.drive()
    before = await files(m)
    await oidc(m, name="broken", client="nowhere")
    await m.drive()
    assert await backends(m) == ("False", "WaitingForBackends")
    assert [event.reason for event in m.told].count("IdentityBackendSkipped") == 1
    await m.put(SECRET, given.secret("nowhere", {"clientSecret": "here"}))
    await m.drive()
    assert await backends(m) == ("True", "AllBackendsProjected")
    after = await files(m)
    assert {key: after[key] for key in before if key.startswith("acme.")} == {
        key: before[key] for key in before if key.startswith("acme.")
    }
    assert "broken.client" in after


async def test_a_passphrase_secret_without_its_key_holds_up_oidc_only(m: Machine) -> None:
    """It is named, an event says how to get a new one, and the rest of the Keystone goes on."""
    await m.put(SECRET, given.secret("keystone-oidc-crypto-passphrase", {"other": "x"}))
    await oidc(m)
    await m.drive()
    assert await backends(m) == ("False", "WaitingForBackends")
    assert (await m.conditions())["KeystoneAPIReady"] == ("True", "APIHealthy")
    assert [event.reason for event in m.told].count("IdentityBackendSkipped") == 1
    await m.client.delete(SECRET, Key(m.namespace, "keystone-oidc-crypto-passphrase"))
    await m.drive()
    assert await backends(m) == ("True", "AllBackendsProjected")


async def test_without_an_image_the_backend_waits_and_is_told_once(m: Machine) -> None:
    """There is no hidden default; the rest goes on; with an image it is projected at once."""
    await m.client.patch(KIND.resource, m.key, {"spec": {"federation": None}})
    await oidc(m)
    await m.drive()
    await m.drive()
    assert await backends(m) == ("False", "WaitingForBackends")
    assert [event.reason for event in m.told].count("FederationProxyImageMissing") == 1
    await m.client.patch(KIND.resource, m.key, {"spec": {"federation": federated.FEDERATION}})
    await m.drive()
    assert await backends(m) == ("True", "AllBackendsProjected")


@pytest.mark.case("C5")
async def test_sp_metadata_stands_before_the_provider_has_answered(m: Machine) -> None:
    """The domain is not ready and nothing is projected; what a person registers at the provider is there already."""
    await saml(m, ready=False)
    await m.drive()
    found = await data(m, "keystone-saml-sp-metadata")
    assert found["entityID"].decode() == f"https://keystone.acme.test{ENTITY_PATH}"
    assert found["entityID"] in found["sp-metadata.xml"]
    pair = await m.client.get(SECRET, Key(m.namespace, "keystone-saml-sp"))
    assert (pair["type"], set(pair["data"])) == ("kubernetes.io/tls", {"tls.crt", "tls.key"})
    assert await files(m) == {}


@pytest.mark.case("K12")
async def test_another_public_address_says_old_and_new_entity_id_once(m: Machine) -> None:
    """The provider must be told, so a warning names both."""
    await saml(m)
    await m.drive()
    assert "SAMLEntityIDChanged" not in [event.reason for event in m.told]
    other = {"spec": {"bootstrap": {"publicEndpoint": "https://other.acme.test/v3"}}}
    await m.client.patch(KIND.resource, m.key, other)
    await m.drive()
    await m.drive()
    (said,) = [event for event in m.told if event.reason == "SAMLEntityIDChanged"]
    assert (said.type, "keystone.acme.test" in said.message, "other.acme.test" in said.message) == (
        "Warning",
        True,
        True,
    )


async def test_the_last_saml_backend_takes_the_metadata_with_it(m: Machine) -> None:
    """The key pair stays: the same provider may be attached again."""
    await saml(m)
    await m.drive()
    await detach(m, "corp")
    await m.drive()
    left = await names(m)
    assert "keystone-saml-sp-metadata" not in left
    assert "keystone-saml-sp" in left
    assert not [name for name in left if "-federation-" in name]


async def test_a_key_pair_is_rolled_over_in_two_steps(m: Machine) -> None:
    """Stage: both certificates stand in the metadata, the old key signs. Switch: the new one alone. Once is once."""
    await saml(m)
    await m.drive()
    old = await data(m, "keystone-saml-sp")
    await annotate(m, "stage")
    await m.drive()
    staged = await data(m, "keystone-saml-sp-next")
    assert staged["tls.key"] != old["tls.key"]
    assert certificates((await data(m, "keystone-saml-sp-metadata"))["sp-metadata.xml"]) == 2
    assert (await files(m))["sp-key.pem"] == old["tls.key"]
    await annotate(m, "switch")
    await m.drive()
    assert await data(m, "keystone-saml-sp") == staged
    assert "keystone-saml-sp-next" not in await names(m)
    assert certificates((await data(m, "keystone-saml-sp-metadata"))["sp-metadata.xml"]) == 1
    assert (await files(m))["sp-key.pem"] == staged["tls.key"]
    assert [event.reason for event in m.told].count("SAMLKeyPairSwitched") == 1
    fence = Fence()
    await m.drive(fence)
    assert fence.writes == 0
    generations = [await data(m, name) for name in await names(m) if "-federation-" in name]
    assert all(found["sp-key.pem"] == staged["tls.key"] for found in generations)


async def test_a_staged_key_pair_is_withdrawn_with_its_annotation(m: Machine) -> None:
    """Nothing of it stays; the key in use was never touched."""
    await saml(m)
    await m.drive()
    old = await data(m, "keystone-saml-sp")
    await annotate(m, "stage")
    await m.drive()
    await annotate(m, None)
    await m.drive()
    assert "keystone-saml-sp-next" not in await names(m)
    assert await data(m, "keystone-saml-sp") == old
    assert certificates((await data(m, "keystone-saml-sp-metadata"))["sp-metadata.xml"]) == 1


async def test_a_key_pair_that_somebody_deleted_is_made_anew_and_told(m: Machine) -> None:
    """The provider has to learn of it; a pair that is made for the first time is no news."""
    await saml(m)
    await m.drive()
    old = await data(m, "keystone-saml-sp")
    assert "SAMLKeyPairLost" not in [event.reason for event in m.told]
    await m.client.delete(SECRET, Key(m.namespace, "keystone-saml-sp"))
    await m.drive()
    new = await data(m, "keystone-saml-sp")
    assert new["tls.key"] != old["tls.key"]
    assert (await files(m))["sp-key.pem"] == new["tls.key"]
    (said,) = [event for event in m.told if event.reason == "SAMLKeyPairLost"]
    assert (said.type, "register the new SP metadata" in said.message) == ("Warning", True)


async def test_a_passphrase_that_somebody_deleted_is_made_anew_and_told(m: Machine) -> None:
    """Sessions end with it; the first one is no news."""
    await oidc(m)
    await m.drive()
    assert "OIDCPassphraseLost" not in [event.reason for event in m.told]
    backend = await m.client.get(BACKEND.resource, Key(m.namespace, "acme"))
    reached = {**backend["status"]["conditions"][0], "type": "ConfigProjected"}
    status = {"status": {"conditions": [*backend["status"]["conditions"], reached]}}
    await m.client.patch(BACKEND.resource, Key(m.namespace, "acme"), status, subresource="status")
    await m.client.delete(SECRET, Key(m.namespace, "keystone-oidc-crypto-passphrase"))
    await m.drive()
    assert "keystone-oidc-crypto-passphrase" in await names(m)
    (said,) = [event for event in m.told if event.reason == "OIDCPassphraseLost"]
    assert (said.type, "sign in once more" in said.message) == ("Warning", True)


async def test_a_key_pair_that_somebody_spoiled_says_what_to_do(m: Machine) -> None:
    """Ours is never written over: the sentence names the Secret, what is wrong with it, and the way out."""
    await saml(m)
    await m.drive()
    await change(m, "keystone-saml-sp", {"tls.key": "nonsense"})
    await m.drive()
    found = (await m.keystone())["status"]["conditions"]
    (said,) = [item["message"] for item in found if item["type"] == "IdentityBackendsReady"]
    assert (
        "keystone-saml-sp: tls.key is no unencrypted PEM private key; delete the Secret to have a new pair made" in said
    )


@pytest.mark.case("C10")
async def test_a_bad_certificate_of_somebody_is_the_fault_of_its_backend_alone(m: Machine) -> None:
    """An OIDC sibling is projected, the pipeline goes on, and a mended Secret heals it."""
    await m.put(SECRET, given.secret("brought", {"tls.crt": "nonsense", "tls.key": "nonsense"}))
    await oidc(m)
    await saml(m, pair="brought")
    await m.drive()
    assert await backends(m) == ("False", "WaitingForBackends")
    assert "acme.client" in await files(m)
    assert (await m.conditions())["DeploymentReady"] == ("True", "DeploymentReady")
    await change(m, "brought", {"tls.crt": federated.CRT, "tls.key": federated.PRIVATE})
    await m.drive()
    assert await backends(m) == ("True", "AllBackendsProjected")
    assert "keystone-saml-sp" not in await names(m)


@pytest.mark.case("K11")
@pytest.mark.case("K22")
async def test_with_three_replicas_one_pod_of_its_own_answers_saml(client: Client) -> None:
    """A second Deployment and Service come and go with SAML, and with the number of replicas; ClientIP affinity likewise."""
    async with machine(client, next(_NAMES), spec=THREE) as m:
        await saml(m)
        await m.drive()
        single, api = await deployment(m, "keystone-saml"), await deployment(m)
        assert (single["spec"]["replicas"], single["spec"]["strategy"]) == (1, {"type": "Recreate"})
        assert ["SAML_HERE" in commands(item) for item in (single, api)] == [True, False]
        assert await affinity(m) == "ClientIP"
        assert await backends(m) == ("True", "AllBackendsProjected")
        await m.client.patch(KIND.resource, m.key, {"spec": {"deployment": {"replicas": 1}}})
        await m.drive()
        assert await names(m, DEPLOYMENT) == await names(m, SERVICE) == {"keystone"}
        assert "SAML_HERE" in commands(await deployment(m))
        await detach(m, "corp")
        await m.drive()
        assert await affinity(m) == "None"
        assert await backends(m) == ("True", "IdentityBackendsNotRequired")


def commands(live: JsonObject) -> list[str]:
    containers = live["spec"]["template"]["spec"]["containers"]
    return [word for item in containers if item["name"] == "federation-proxy" for word in item["command"]]


async def affinity(m: Machine) -> str:
    return str((await m.client.get(SERVICE, m.key))["spec"]["sessionAffinity"])


@pytest.mark.case("K22")
async def test_ready_waits_for_the_pod_that_answers_saml(client: Client) -> None:
    """It is part of the rollout: until it runs the projection, nobody may log in through it."""
    async with machine(client, next(_NAMES), spec=THREE) as m:
        await m.drive()
        await saml(m)
        m.pods_ready = False
        await m.drive()
        assert await backends(m) == ("False", "WaitingForRollout")
        m.pods_ready = True
        await m.drive()
        assert await backends(m) == ("True", "AllBackendsProjected")


@pytest.mark.case("P2")
async def test_no_secret_of_federation_stands_outside_of_a_secret(m: Machine) -> None:
    """Client secret, passphrase and private keys: not in ConfigMaps, pod templates, annotations, conditions or events."""
    await oidc(m)
    await saml(m)
    await m.drive()
    texts: list[str] = [str(await m.keystone()), str(m.told)]
    for rt in (CONFIG_MAP, DEPLOYMENT, JOB, EVENTS, SERVICE):
        texts += [str(item) for item in (await m.client.list(rt, m.namespace)).items]
    texts += [str(item["metadata"]) for item in (await m.client.list(SECRET, m.namespace)).items]
    values = [b"s3cret-client", (await data(m, "keystone-oidc-crypto-passphrase"))["passphrase"]]
    values += [line for line in (await data(m, "keystone-saml-sp"))["tls.key"].splitlines() if b"-----" not in line]
    for value in values:
        encoded = base64.b64encode(value).decode()
        assert not any(value.decode() in text or encoded in text for text in texts)


# --- crashes


async def state(m: Machine) -> JsonObject:
    """What a person can see, apart from what is random: names that hash a key pair or a passphrase, and numbers of generations."""
    found = await m.state()
    found.pop("volumes")
    found["Secret"] = sorted(name.rpartition("-")[0] if "-federation-" in name else name for name in found["Secret"])
    documents = {key: value for key, value in (await files(m)).items() if key.startswith("acme.")}
    return {**found, "files": sorted(await files(m)), "documents": documents}


@contextlib.asynccontextmanager
async def _attaching(client: Client) -> AsyncIterator[Machine]:
    async with machine(client, "crashing", spec=THREE) as m:
        await oidc(m)
        await saml(m)
        yield m


@contextlib.asynccontextmanager
async def _detaching(client: Client) -> AsyncIterator[Machine]:
    async with _attaching(client) as m:
        await m.drive()
        await detach(m, "acme")
        await detach(m, "corp")
        yield m


@contextlib.asynccontextmanager
async def _switching(client: Client) -> AsyncIterator[Machine]:
    async with machine(client, "crashing", spec=SPEC) as m:
        await saml(m)
        await m.drive()
        await annotate(m, "stage")
        await m.drive()
        await annotate(m, "switch")
        yield m


@pytest.mark.case("P5")
@pytest.mark.timeout(600)
async def test_every_crash_point_of_attach_heals(tmp_path: Path) -> None:
    """An OIDC and a SAML backend at three replicas, from nothing to Ready."""
    assert await every_crash_point(again(tmp_path, _attaching), Machine.drive, state) >= 20


@pytest.mark.case("P5")
@pytest.mark.timeout(600)
async def test_every_crash_point_of_detach_heals(tmp_path: Path) -> None:
    """Both leave at three replicas: no workload, no metadata and no copy of a secret stays."""
    assert await every_crash_point(again(tmp_path, _detaching), Machine.drive, state) > 5


@pytest.mark.case("P5")
@pytest.mark.timeout(600)
async def test_every_crash_point_of_a_rollover_heals(tmp_path: Path) -> None:
    """Killed anywhere in the second step, the staged pair is the present one in the end, and it is gone from its staging place."""
    staged = again(tmp_path, _switching)

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Machine]:
        async with staged() as m:
            found = await data(m, "keystone-saml-sp-next")
            yield m
            assert await data(m, "keystone-saml-sp") == found

    assert await every_crash_point(fresh, Machine.drive, state) >= 4
