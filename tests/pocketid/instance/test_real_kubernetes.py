"""Deployed instances on a real kube-apiserver: every manifest is admitted, and what the server fills in makes no second write."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from tests.keystone.folders import CASES
from tests.keystone.service.machine import established
from tests.real.kubernetes import kubernetes

from moorage.cli.systems import KINDS, RULES
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.core.outcome import Done, Failed
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CRDS, PVCS, SECRETS, STATEFUL_SETS
from moorage.pocketid.instance.observe_deployed import HTTP_ROUTES
from moorage.pocketid.instance.types import KIND
from moorage.runtime.install import rbac

from .scene import NAME, Scene, scene

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]
STORAGE_CLASSES = ResourceType("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
BROUGHT: dict[str, dict[str, str]] = {
    "enc": {"key": "a-key-of-more-than-sixteen"},
    "database": {"url": "postgres://id@db/id"},
    "s3": {"id": "me", "key": "mine"},
    "mail": {"password": "mine"},
    "ldap": {"password": "mine"},
    "geo": {"key": "mine"},
}


def _everything() -> JsonObject:
    """The spec of the case that sets every field; without TLS, which the pod of this test does not speak."""
    given = yaml.safe_load((CASES / "pocketid-instance" / "render" / "everything" / "given.yaml").read_text())
    spec: JsonObject = given["spec"]
    return {name: value for name, value in spec.items() if name != "tls"}


def _route_crd() -> JsonObject:
    """As much of the Gateway API as a route needs to be stored."""
    rt = HTTP_ROUTES
    free: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": free}}}
    version = {"name": rt.version, "served": True, "storage": True, "schema": schema}
    approved = {"api-approved.kubernetes.io": "unapproved, for a test"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": rt.group_resource, "annotations": approved},
        "spec": {
            "group": rt.group,
            "names": {"kind": rt.kind, "plural": rt.plural, "singular": "httproute", "listKind": "HTTPRouteList"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


async def test_both_forms_live_and_end_on_a_real_server(tmp_path: Path) -> None:
    """The smallest Deployment, and a StatefulSet with every field: Ready, zero writes, an upgrade, what stays and what goes."""
    with kubernetes(tmp_path) as server:
        async with Client(load_kubeconfig(server.kubeconfig)) as client:
            await client.apply(CRDS, KIND.crd())
            await established(client, KIND)
            await _grant(client, "alice")
            async with Client(load_kubeconfig(server.user_kubeconfig("alice"))) as operator:
                async with scene(client, tmp_path / "small", "small") as here:
                    here.operator = operator
                    await _small(here)
                async with scene(client, tmp_path / "large", "large") as here:
                    here.operator = operator
                    await _large(here)


async def _grant(client: Client, user: str) -> None:
    """The user may what `moorage crds` lets the operator do in all namespaces, and nothing else: it is refused nothing."""
    named = {item["kind"]: item for item in rbac(KINDS, RULES) if item["metadata"]["name"] == "moorage-operator"}
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    await client.apply(CLUSTER_ROLES, named["ClusterRole"])
    await client.apply(CLUSTER_ROLE_BINDINGS, {**named["ClusterRoleBinding"], "subjects": [subject]})


async def _small(here: Scene) -> None:
    meta, provisioner = {"name": "growing"}, "example.org/nobody"
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": provisioner}
    await here.client.create(STORAGE_CLASSES, {**body, "allowVolumeExpansion": True})
    await here.make(encryptionKey={"generate": True}, persistence={"storageClass": "growing"})
    assert isinstance(await here.drive(), Done)
    assert (await here.ready())[0] == "True/Ready"
    assert await here.writes() == 0
    await here.edit(image="pocket-id:v2.17.0", persistence={"size": "2Gi"})
    assert isinstance(await here.drive(), Done)
    assert (await here.status())["version"] == "2.17.0"
    assert await here.writes() == 0
    await here.edit(route={"enabled": True})
    assert isinstance(await here.attempt(), Failed)
    assert (await here.ready())[0] == "False/RouteUnavailable"
    await here.edit(route=None)
    await here.drive()
    await here.delete()
    left = {"Secret": [f"{NAME}-held-encryption-key"], "PersistentVolumeClaim": [f"{NAME}-data"]}
    assert {kind: names for kind, names in (await here.names()).items() if names} == left
    spec = {"deletionPolicy": "Delete", "persistence": {"storageClass": "growing", "size": "2Gi"}}
    await here.make(encryptionKey={"generate": True}, image="pocket-id:v2.17.0", **spec)
    assert isinstance(await here.drive(), Done)
    assert await here.writes() == 0
    await here.delete()
    assert [names for names in (await here.names()).values() if names] == []


async def _large(here: Scene) -> None:
    await here.client.apply(CRDS, _route_crd())
    await established(here.client, SimpleNamespace(resource=HTTP_ROUTES))  # type: ignore[arg-type]
    for name, data in BROUGHT.items():
        await here.secret(name, **data)
    spec: dict[str, Any] = _everything()
    await here.make(**spec)
    assert isinstance(await here.drive(), Done)
    assert (await here.ready())[0] == "True/Ready"
    assert here.env["DB_CONNECTION_STRING"] == "postgres://id@db/id"
    assert (await here.status())["routeName"] == "id"
    assert await here.writes() == 0
    await here.edit(route={"name": "renamed"})
    await here.drive()
    assert await here.get(HTTP_ROUTES, "id") is None
    assert await here.get(HTTP_ROUTES, "renamed") is not None
    await here.edit(route={"enabled": False})
    await here.drive()
    assert await here.get(HTTP_ROUTES, "renamed") is None
    assert "routeName" not in await here.status()
    live = await here.workload(STATEFUL_SETS)
    await here.client.patch(STATEFUL_SETS, Key(here.namespace, NAME), {"spec": {"replicas": 3}})
    await here.drive()
    again = await here.workload(STATEFUL_SETS)
    assert (again["spec"]["replicas"], again["metadata"]["uid"]) == (1, live["metadata"]["uid"])
    assert await here.writes() == 0
    await here.delete()
    assert await here.get(SECRETS, f"{NAME}-held-encryption-key") is None
    assert await here.get(PVCS, f"{NAME}-data") is None
