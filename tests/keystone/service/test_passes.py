"""A Keystone on the embedded API server, walked by the real room: attach, rotate, detach, and what a second pass does."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.crashpoints import Fence, every_crash_point
from tests.keystone.service import given
from tests.keystone.service.machine import Machine, again, machine, served

from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service import keys
from moorage.keystone.service.seen import (
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    NETWORK_POLICY,
    OWNED,
    SECRET,
    SERVICE,
    mounted,
)
from moorage.keystone.service.types import KIND
from moorage.kube.client import Client
from moorage.kube.errors import NotFound
from moorage.kube.resources import EVENTS, NAMESPACES

_NAMES = iter(f"site-{number}" for number in range(10_000))


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with served(tmp_path) as found:
        yield found


@pytest.fixture
async def m(client: Client) -> AsyncIterator[Machine]:
    async with machine(client, next(_NAMES)) as found:
        yield found


async def attach(m: Machine, **short: object) -> None:
    """Declare a backend whose domain its own controller has made."""
    await m.put(BACKEND.resource, given.backend({"name": "acme", **short}))


async def secret_data(m: Machine, name: str) -> dict[str, str]:
    return keys.keys_of(await m.client.get(SECRET, Key(m.namespace, name)))


async def domains_secret(m: Machine) -> str | None:
    return mounted(await m.client.get(DEPLOYMENT, m.key), "domains")


async def generations(m: Machine) -> list[str]:
    items = (await m.client.list(SECRET, m.namespace)).items
    return [item["metadata"]["name"] for item in items if "-domains-" in item["metadata"]["name"]]


async def change_secret(m: Machine, name: str, data: dict[str, str]) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    await m.client.patch(SECRET, Key(m.namespace, name), {"data": encoded})


@pytest.mark.case("B09")
@pytest.mark.case("P1")
async def test_a_declared_keystone_becomes_ready_and_a_second_pass_writes_nothing(m: Machine) -> None:
    """Every condition turns True; a fresh process that walks the same world makes no write."""
    await m.drive()
    assert {status for status, _ in (await m.conditions()).values()} == {"True"}
    status = (await m.keystone())["status"]
    assert status["endpoint"] == f"http://keystone.{m.namespace}.svc.cluster.local:5000/v3"
    assert status["installedRelease"] == "30.0.0"
    fence = Fence()
    await m.drive(fence)
    assert fence.writes == 0


@pytest.mark.case("B09")
async def test_a_changed_bind_password_rolls_once(m: Machine) -> None:
    """Only the Secret changes: one new name, one rollout, and again no write afterwards."""
    await attach(m)
    await m.drive()
    first = await domains_secret(m)
    generation = (await m.client.get(DEPLOYMENT, m.key))["metadata"]["generation"]
    await change_secret(m, "bind", {"password": "another"})
    await m.drive()
    second = await domains_secret(m)
    assert second not in (first, None)
    assert (await m.client.get(DEPLOYMENT, m.key))["metadata"]["generation"] == generation + 1
    assert await generations(m) == sorted([first, second])
    fence = Fence()
    await m.drive(fence)
    assert fence.writes == 0


@pytest.mark.case("B09")
@pytest.mark.case("K6")
async def test_a_trailing_line_end_in_the_secret_changes_nothing(m: Machine) -> None:
    """`--from-file` adds a line end; the name is by content that is used, so nothing rolls (decisions Keystone 6)."""
    await attach(m)
    await m.drive()
    before = await domains_secret(m)
    await change_secret(m, "bind", {"password": "s3cret-bind\n"})
    await m.drive()
    assert await domains_secret(m) == before


@pytest.mark.case("B08")
async def test_the_last_detach_leaves_no_copy_of_a_password(m: Machine) -> None:
    """Two backends, then one, then none: the files equal the attached backends, and every old generation goes."""
    await attach(m)
    await attach(m, name="other", domain="Other")
    await m.drive()
    assert sorted(await secret_data(m, str(await domains_secret(m)))) == ["keystone.Other.conf", "keystone.acme.conf"]
    await m.client.delete(BACKEND.resource, Key(m.namespace, "other"))
    await m.drive()
    assert sorted(await secret_data(m, str(await domains_secret(m)))) == ["keystone.acme.conf"]
    await m.client.delete(BACKEND.resource, Key(m.namespace, "acme"))
    await m.drive()
    assert await domains_secret(m) is None
    assert await generations(m) == []
    assert (await m.conditions())["IdentityBackendsReady"] == ("True", "IdentityBackendsNotRequired")
    config = await m.client.list(CONFIG_MAP, m.namespace)
    mounted = (await m.client.get(DEPLOYMENT, m.key))["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
    text = next(c["data"]["keystone.conf"] for c in config.items if c["metadata"]["name"] == mounted)
    assert "domain_specific_drivers_enabled" not in text


async def test_three_old_generations_are_kept(m: Machine) -> None:
    """Five passwords: the present generation and the three before it stay."""
    await attach(m)
    for number in range(6):
        await change_secret(m, "bind", {"password": f"password-{number}"})
        await m.drive()
    assert len(await generations(m)) == 4
    assert await domains_secret(m) in await generations(m)


@pytest.mark.case("C15")
async def test_attaching_and_detaching_runs_no_job_again(m: Machine) -> None:
    """db_sync and bootstrap keep their uids through attach and detach."""
    await m.drive()
    before = {job["metadata"]["uid"] for job in (await m.client.list(JOB, m.namespace)).items}
    await attach(m)
    await m.drive()
    await m.client.delete(BACKEND.resource, Key(m.namespace, "acme"))
    await m.drive()
    assert {job["metadata"]["uid"] for job in (await m.client.list(JOB, m.namespace)).items} == before


async def test_a_new_admin_password_runs_bootstrap_again_and_rolls_nothing(m: Machine) -> None:
    """The gate of bootstrap is the version of the password's Secret; no hash of a password stands anywhere."""
    await m.drive()
    job = await m.client.get(JOB, Key(m.namespace, "keystone-bootstrap"))
    template = (await m.client.get(DEPLOYMENT, m.key))["spec"]["template"]
    await change_secret(m, "keystone-admin", {"password": "new"})
    await m.drive()
    again = await m.client.get(JOB, Key(m.namespace, "keystone-bootstrap"))
    assert again["metadata"]["uid"] != job["metadata"]["uid"]
    assert (await m.client.get(DEPLOYMENT, m.key))["spec"]["template"] == template
    assert (await m.conditions())["Ready"] == ("True", "AllReady")


@pytest.mark.case("P4")
async def test_one_bad_backend_never_harms_a_sibling(m: Machine) -> None:
    """A backend without its Secret is named with the reason, told once, and the others are projected."""
    await attach(m)
    await attach(m, name="broken", domain="broken", bind="nowhere")
    await m.drive()
    assert sorted(await secret_data(m, str(await domains_secret(m)))) == ["keystone.acme.conf"]
    found = next(c for c in (await m.keystone())["status"]["conditions"] if c["type"] == "IdentityBackendsReady")
    assert (found["status"], found["reason"]) == ("False", "WaitingForBackends")
    assert found["message"].startswith("Waiting for identity backends: broken (")
    await m.drive()
    assert [event.reason for event in m.told].count("IdentityBackendSkipped") == 1
    assert (await m.conditions())["KeystoneAPIReady"] == ("True", "APIHealthy")


@pytest.mark.case("B77")
@pytest.mark.case("P2")
async def test_no_secret_stands_outside_of_a_secret(m: Machine) -> None:
    """Passwords and the connection URL: not in ConfigMaps, pod templates, Jobs, annotations, conditions or events."""
    await attach(m)
    await m.drive()
    texts: list[str] = [str(await m.keystone()), str(m.told)]
    for rt in (CONFIG_MAP, DEPLOYMENT, JOB, EVENTS):
        texts += [str(item) for item in (await m.client.list(rt, m.namespace)).items]
    secrets = (await m.client.list(SECRET, m.namespace)).items
    texts += [str(item["metadata"]) for item in secrets]
    for word in ("s3cret-admin", "s3cret-bind", *(await secret_data(m, "keystone-fernet-keys")).values()):
        encoded = base64.b64encode(word.encode()).decode()
        assert not any(word in text or encoded in text for text in texts)


async def test_an_api_that_does_not_answer_is_said_and_heals(m: Machine) -> None:
    """KeystoneAPIReady gives the status code, and turns True by itself."""
    m.stub.status = 503
    await m.drive()
    found = next(c for c in (await m.keystone())["status"]["conditions"] if c["type"] == "KeystoneAPIReady")
    assert (found["reason"], found["message"].endswith("answered 503")) == ("APIUnhealthy", True)
    m.stub.status = 200
    await m.drive()
    assert (await m.conditions())["Ready"] == ("True", "AllReady")


async def test_a_failed_db_sync_is_said_and_stops_the_deployment(m: Machine) -> None:
    """DBSyncFailed names the Job and where its log is; nothing is deployed on a schema that is not there."""
    m.jobs_fail = True
    await m.drive()
    assert (await m.conditions())["DatabaseReady"] == ("False", "DBSyncFailed")
    assert (await m.client.list(DEPLOYMENT, m.namespace)).items == ()
    m.jobs_fail, m.later = False, timedelta(minutes=2)
    await m.drive()
    assert (await m.conditions())["Ready"] == ("True", "AllReady")


async def test_an_object_of_somebody_else_is_not_seized(m: Machine) -> None:
    """A Service of the wanted name that we did not make stays as it is, and the condition names it."""
    service: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "keystone"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}},
    }
    await m.put(SERVICE, service)
    await m.drive()
    assert (await m.conditions())["DeploymentReady"] == ("False", "ForeignObject")
    live = await m.client.get(SERVICE, m.key)
    assert live["spec"]["selector"] == {"app": "theirs"}


async def test_fernet_keys_rotate_by_schedule_without_a_roll(m: Machine) -> None:
    """The old primary stays, the staged key becomes primary, the pod template does not change."""
    await m.drive()
    before = await secret_data(m, "keystone-fernet-keys")
    template = (await m.client.get(DEPLOYMENT, m.key))["spec"]["template"]
    old = {"annotations": {keys.ROTATED_AT: "2026-01-01T00:00:00Z"}}
    await m.client.patch(SECRET, Key(m.namespace, "keystone-fernet-keys"), {"metadata": old})
    await m.drive()
    after = await secret_data(m, "keystone-fernet-keys")
    assert (after["1"], after["2"]) == (before["1"], before["0"])
    assert sorted(after) == ["0", "1", "2"]
    assert (await m.client.get(DEPLOYMENT, m.key))["spec"]["template"] == template
    assert (await m.conditions())["FernetKeysReady"] == ("True", "FernetKeysRotated")
    assert "FernetKeysRotated" in [event.reason for event in m.told]
    names = [s["metadata"]["name"] for s in (await m.client.list(SECRET, m.namespace)).items]
    assert "keystone-fernet-keys-rotation" not in names


async def test_credential_keys_rotate_only_after_everything_is_encrypted_anew(m: Machine) -> None:
    """While the migration fails no key changes; once it succeeds the rotation goes through and its Job is removed."""
    await m.drive()
    before = await secret_data(m, "keystone-credential-keys")
    old = {"annotations": {keys.ROTATED_AT: "2026-01-01T00:00:00Z"}}
    await m.client.patch(SECRET, Key(m.namespace, "keystone-credential-keys"), {"metadata": old})
    m.jobs_fail = True
    await m.drive()
    assert await secret_data(m, "keystone-credential-keys") == before
    assert (await m.conditions())["CredentialKeysReady"] == ("False", "CredentialMigrationFailed")
    m.jobs_fail, m.later = False, timedelta(minutes=2)
    await m.drive()
    after = await secret_data(m, "keystone-credential-keys")
    assert (after["1"], after["2"]) == (before["1"], before["0"])
    jobs = [j["metadata"]["name"] for j in (await m.client.list(JOB, m.namespace)).items]
    assert "keystone-credential-migrate" not in jobs


async def test_keys_that_were_mangled_are_never_replaced(m: Machine) -> None:
    """A repository that cannot serve is reported; nobody writes over what may be the only copy."""
    await m.drive()
    await change_secret(m, "keystone-fernet-keys", {"1": "mangled"})
    before = await secret_data(m, "keystone-fernet-keys")
    await m.drive()
    assert (await m.conditions())["FernetKeysReady"] == ("False", "FernetKeysInvalid")
    assert await secret_data(m, "keystone-fernet-keys") == before


@pytest.mark.case("P5")
@pytest.mark.timeout(400)
async def test_every_crash_point_of_attach_heals(tmp_path: Path) -> None:
    """Killed after any write of making a Keystone with a backend, the next start ends in the same state."""
    writes = await every_crash_point(again(tmp_path, _with_backend), Machine.drive, Machine.state)
    assert writes > 15


@pytest.mark.case("P5")
@pytest.mark.timeout(400)
async def test_every_crash_point_of_detach_heals(tmp_path: Path) -> None:
    """Killed after any write of a detach, nothing stays mounted and no password stays behind."""
    writes = await every_crash_point(again(tmp_path, _detaching), Machine.drive, Machine.state)
    assert writes >= 4


@pytest.mark.case("P5")
@pytest.mark.timeout(400)
async def test_every_crash_point_of_both_rotations_heals(tmp_path: Path) -> None:
    """Killed after any write of a rotation, no key is lost and the rotation ends exactly once."""
    writes = await every_crash_point(again(tmp_path, _rotating), Machine.drive, Machine.state)
    assert writes >= 8


@contextlib.asynccontextmanager
async def _with_backend(client: Client) -> AsyncIterator[Machine]:
    async with machine(client, next(_NAMES)) as found:
        await attach(found)
        yield found


@contextlib.asynccontextmanager
async def _detaching(client: Client) -> AsyncIterator[Machine]:
    async with _with_backend(client) as found:
        await found.drive()
        await client.delete(BACKEND.resource, Key(found.namespace, "acme"))
        yield found


@contextlib.asynccontextmanager
async def _rotating(client: Client) -> AsyncIterator[Machine]:
    async with machine(client, next(_NAMES)) as found:
        await found.drive()
        for name in ("fernet", "credential"):
            old = {"annotations": {keys.ROTATED_AT: "2026-01-01T00:00:00Z"}}
            await client.patch(SECRET, Key(found.namespace, f"keystone-{name}-keys"), {"metadata": old})
        yield found


@pytest.mark.case("B80")
async def test_nothing_is_made_in_a_namespace_that_ends(client: Client) -> None:
    """The namespace is deleted while the Keystone still stands (a finalizer of somebody else): no child appears."""
    async with machine(client, next(_NAMES), finalizers=["acme.test/hold"]) as m:
        await client.delete(NAMESPACES, Key("", m.namespace))
        await m.drive()
        for rt in OWNED:
            made = [i["metadata"]["name"] for i in (await client.list(rt, m.namespace)).items]
            assert not [
                name for name in made if name.startswith("keystone-") and name not in ("keystone-admin", "keystone-db")
            ]


@pytest.mark.case("B78")
async def test_a_keystone_that_is_deleted_is_not_restored(m: Machine) -> None:
    """A terminating Keystone makes nothing anew, whatever is missing; it has no finalizer of ours."""
    await m.drive()
    await m.client.patch(KIND.resource, m.key, {"metadata": {"finalizers": ["acme.test/hold"]}})
    await m.client.delete(KIND.resource, m.key)
    await m.client.delete(SERVICE, m.key)
    await m.drive()
    assert (await m.keystone())["metadata"]["finalizers"] == ["acme.test/hold"]
    with pytest.raises(NotFound):
        await m.client.get(SERVICE, m.key)


async def test_a_network_policy_comes_and_goes(m: Machine) -> None:
    """Declared it is made, undeclared it is deleted."""
    await m.client.patch(KIND.resource, m.key, {"spec": {"networkPolicy": {"ingress": [{"podSelector": {}}]}}})
    await m.drive()
    assert (await m.conditions())["NetworkPolicyReady"] == ("True", "NetworkPolicyReady")
    await m.client.patch(KIND.resource, m.key, {"spec": {"networkPolicy": None}})
    await m.drive()
    assert (await m.client.list(NETWORK_POLICY, m.namespace)).items == ()
    assert (await m.conditions())["NetworkPolicyReady"] == ("True", "NetworkPolicyNotRequired")
