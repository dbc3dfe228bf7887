"""The Keystone image, built for real and run as the service's pods run it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import moorage
from moorage.core.meta import JsonObject
from moorage.kube.resources import CONFIG_MAPS, DEPLOYMENTS, JOBS, PVCS, SECRETS, SERVICES
from moorage.node import Recipe

from .conftest import QUICK, Machine, api_server
from .test_workloads import ended, rolled_out

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

IMAGE = "moorage/keystone:30.0.0"
KEYSTONE = Recipe(("moorage/keystone",), Path(moorage.__file__).parent / "keystone" / "service" / "image")
CONFIG = """
[database]
connection = sqlite:////var/lib/keystone/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = /etc/keystone/fernet-keys
[credential]
key_repository = /etc/keystone/credential-keys
[identity]
password_hash_rounds = 4
"""
KEYS = {"0": "MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=", "1": "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE="}
MANAGE = ["keystone-manage", "--config-dir=/etc/keystone/keystone.conf.d/"]


@pytest.fixture
async def keystone(tmp_path: Path) -> AsyncIterator[Machine]:
    """A machine that knows the Keystone image."""
    async with api_server(tmp_path) as client:
        found = Machine(tmp_path, client, replace(QUICK, recipes=(KEYSTONE,)))
        await found.start()
        try:
            yield found
        finally:
            await found.stop()


def spec(*command: str, **container: object) -> JsonObject:
    names = {"config": "keystone.conf.d", "fernet": "fernet-keys", "credential": "credential-keys"}
    mounts = [
        {"name": name, "mountPath": f"/etc/keystone/{folder}", "readOnly": True} for name, folder in names.items()
    ]
    main = {
        "name": "main",
        "image": IMAGE,
        "command": list(command),
        "volumeMounts": [*mounts, {"name": "state", "mountPath": "/var/lib/keystone"}],
        **container,
    }
    return {
        "containers": [main],
        "securityContext": {"runAsUser": 42424, "runAsGroup": 42424, "fsGroup": 42424, "runAsNonRoot": True},
        "volumes": [
            {"name": "config", "configMap": {"name": "config"}},
            {"name": "fernet", "secret": {"secretName": "keys", "defaultMode": 0o400}},
            {"name": "credential", "secret": {"secretName": "keys", "defaultMode": 0o400}},
            {"name": "state", "persistentVolumeClaim": {"claimName": "state"}},
        ],
    }


def meta(kind: str, name: str, version: str = "v1", **parts: object) -> JsonObject:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **parts}


def job(name: str, *command: str, **container: object) -> JsonObject:
    template = {"spec": {**spec(*command, **container), "restartPolicy": "Never"}}
    return meta("Job", name, "batch/v1", spec={"backoffLimit": 0, "template": template})


async def request(address: str, method: str, path: str, body: JsonObject | None = None) -> tuple[int, JsonObject]:
    reader, writer = await asyncio.open_connection(address, 5000)
    payload = json.dumps(body).encode() if body else b""
    head = f"{method} {path} HTTP/1.0\r\nHost: k\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    writer.write(head.encode() + payload)
    answer = await reader.read()
    writer.close()
    head_text, _, text = answer.partition(b"\r\n\r\n")
    return int(head_text.split()[1]), json.loads(text or b"{}")


async def test_keystone_is_migrated_bootstrapped_and_gives_a_token(keystone: Machine) -> None:
    client = keystone.client
    await client.create(CONFIG_MAPS, meta("ConfigMap", "config", data={"keystone.conf": CONFIG}))
    await client.create(SECRETS, meta("Secret", "keys", stringData=KEYS))
    await client.create(SECRETS, meta("Secret", "admin", stringData={"password": "-secret-"}))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await client.create(PVCS, meta("PersistentVolumeClaim", "state", spec=claim))
    await client.create(JOBS, job("db-sync", *MANAGE, "db_sync"))
    await keystone.until(JOBS, "db-sync", ended("Complete"))  # type: ignore[arg-type]
    env = [{"name": "OS_BOOTSTRAP_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "admin", "key": "password"}}}]
    await client.create(JOBS, job("bootstrap", *MANAGE, "bootstrap", "--bootstrap-region-id=RegionOne", env=env))
    await keystone.until(JOBS, "bootstrap", ended("Complete"))  # type: ignore[arg-type]
    await client.create(DEPLOYMENTS, _deployment())
    ports = {"selector": {"app": "keystone"}, "ports": [{"port": 5000}]}
    address = (await client.create(SERVICES, meta("Service", "keystone", spec=ports)))["spec"]["clusterIP"]
    await keystone.until(DEPLOYMENTS, "keystone", rolled_out)
    user = {"name": "admin", "domain": {"id": "default"}, "password": "-secret-"}
    login = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
    status, body = await request(address, "POST", "/v3/auth/tokens", login)
    assert (status, body["token"]["user"]["name"]) == (201, "admin")
    assert (await request(address, "POST", "/v3/auth/tokens", {"auth": {**login["auth"], "scope": "x"}}))[0] >= 400


def _deployment() -> JsonObject:
    command = (
        *("uwsgi", "--http-socket", "$(POD_IP):5000", "--module", "keystone.wsgi.api:application", "--master"),
        *("--lazy-apps", "--need-app", "--processes", "1", "--threads", "1", "--enable-threads"),
        *("--buffer-size", "65535", "--log-master", "--hook-master-start", "unix_signal:15 gracefully_kill_them_all"),
        "--pyargv=--config-dir=/etc/keystone/keystone.conf.d/",
    )
    env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    probe = {"httpGet": {"path": "/v3", "port": 5000}, "periodSeconds": 1, "timeoutSeconds": 5}
    pod = spec(*command, env=env, readinessProbe=probe)
    labels = {"app": "keystone"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return meta("Deployment", "keystone", "apps/v1", spec=wanted)


LATER = """\
import sys, keystone.wsgi.api, keystone.cmd.cli
print("saml2" in sys.modules)
from keystone.federation import idp
print(idp.MetadataGenerator.__module__, "saml2" in sys.modules)
"""


async def test_the_image_has_ldap_and_its_tools_and_reads_the_identity_provider_when_it_is_used(
    keystone: Machine,
) -> None:
    await keystone.client.create(CONFIG_MAPS, meta("ConfigMap", "config", data={"keystone.conf": CONFIG}))
    await keystone.client.create(SECRETS, meta("Secret", "keys", stringData=KEYS))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await keystone.client.create(PVCS, meta("PersistentVolumeClaim", "state", spec=claim))
    words = "import ldap, ldappool, pymysql, psycopg2, pymemcache; print(ldap.__version__)"
    await keystone.client.create(
        JOBS,
        job(
            "look",
            "sh",
            "-c",
            f'python3 -c "{words}" && python3 -c "$LATER" && keystone-manage --version && id -un',
            env=[{"name": "LATER", "value": LATER}],
        ),
    )
    await keystone.until(JOBS, "look", ended("Complete"))  # type: ignore[arg-type]
    (pod,) = await keystone.pods()
    said = keystone.log(pod["metadata"]["name"])
    assert said[-2:] == ["30.0.0", "keystone"]
    assert [line for line in said if line.startswith(("True", "False", "keystone.f"))] == [
        "False",
        "keystone.federation.idp True",
    ]
