"""Pods behind the sidecar: who is reachable, how each container is probed, and that both ends fit into the grace period."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.keystone.service import federated, given

from moorage.core.meta import JsonObject
from moorage.keystone.service import manifests, pods
from moorage.keystone.service.render import wanted, workload

OIDC = {"name": "acme", "type": "OIDC"}
SAML = {"name": "corp", "type": "SAML"}
THREE = {
    "database": {"host": "db.acme.test", "database": "keystone", "secretRef": {"name": "keystone-db"}},
    "deployment": {"replicas": 3},
}


def deployments(*backends: dict[str, Any], spec: JsonObject | None = None) -> dict[str, JsonObject]:
    """Pod specs by name of their Deployment."""
    keystone = given.keystone({"federation": federated.FEDERATION, **(spec or {})})
    found = given.inputs(
        {"keystone": {"metadata": {"name": "keystone"}, "spec": keystone.spec.to_wire()}, "backends": backends}
    )
    children = [item.manifest for item in workload(found.keystone, wanted(found))]
    return {c["metadata"]["name"]: c["spec"]["template"]["spec"] for c in children if c["kind"] == "Deployment"}


def container(pod: JsonObject, name: str) -> JsonObject:
    return next(item for item in pod["containers"] if item["name"] == name)


@pytest.mark.case("K18")
def test_only_the_sidecar_is_reachable() -> None:
    """uWSGI listens on a socket in a folder of the pod; no container declares port 5000; the sidecar carries the public name."""
    pod = deployments(OIDC)["keystone"]
    keystone, proxy = container(pod, "keystone"), container(pod, "federation-proxy")
    assert keystone["command"][:4] == ["uwsgi", "--http-socket", "/run/keystone/keystone.sock", "--chmod-socket=660"]
    assert "$(POD_IP)" not in " ".join(keystone["command"])
    assert keystone["command"][keystone["command"].index("--buffer-size") + 1] == "65535"
    assert "ports" not in keystone
    assert proxy["ports"] == [{"name": "public", "containerPort": 5050, "protocol": "TCP"}]
    assert {"name": "run", "emptyDir": {}} in pod["volumes"]
    mounted = [[m["mountPath"] for m in item["volumeMounts"] if m["name"] == "run"] for item in (keystone, proxy)]
    assert mounted == [["/run/keystone"], ["/run/keystone"]]


def test_plain_and_federated_pods_carry_the_port_that_the_service_asks_for() -> None:
    """So no moment of a roll points at a number that pods do not have."""
    asked = manifests.service(given.keystone())["spec"]["ports"][0]["targetPort"]
    for pod in (deployments()["keystone"], deployments(OIDC)["keystone"]):
        named = [p["containerPort"] for item in pod["containers"] for p in item.get("ports", ()) if p["name"] == asked]
        assert len(named) == 1


def test_each_container_has_its_probes_and_readiness_goes_through_both() -> None:
    pod = deployments(OIDC)["keystone"]
    keystone, proxy = container(pod, "keystone"), container(pod, "federation-proxy")
    for probe in ("startupProbe", "readinessProbe"):
        assert proxy[probe]["httpGet"] == {"path": "/v3", "port": 5050}
    assert proxy["livenessProbe"]["tcpSocket"] == {"port": 5050}
    assert "readinessProbe" not in keystone
    for probe in ("startupProbe", "livenessProbe"):
        assert keystone[probe]["exec"]["command"][0] == "python3"


@pytest.mark.case("C19")
@pytest.mark.parametrize(("grace", "sleep"), [(30, 5), (10, 0), (10, 9), (120, 30)])
def test_draining_fits_into_the_grace_period(grace: int, sleep: int) -> None:
    """The sidecar sleeps and drains; Keystone waits for it, then its workers have their mercy; together no more than the grace."""
    spec = {"deployment": {"replicas": 1, "terminationGracePeriodSeconds": grace, "preStopSleepSeconds": sleep}}
    pod = deployments(OIDC, spec=spec)["keystone"]
    keystone, proxy = container(pod, "keystone"), container(pod, "federation-proxy")
    waits = keystone["lifecycle"]["preStop"]["exec"]["command"]
    mercy = int(keystone["command"][keystone["command"].index("--worker-reload-mercy") + 1])
    pause, wait, port = map(int, waits[-3:])
    assert (pause, port) == (sleep, 5050)
    assert proxy["lifecycle"]["preStop"]["exec"]["command"][-1] == str(sleep)
    assert sleep + wait + mercy <= grace
    assert "kill -WINCH 1" in proxy["lifecycle"]["preStop"]["exec"]["command"][2]


def test_the_sidecar_is_confined_and_small() -> None:
    """Read-only root, no capability, no root user; Apache's own files go to an emptyDir."""
    pod = deployments(OIDC)["keystone"]
    proxy = container(pod, "federation-proxy")
    assert proxy["securityContext"] == pods.CONFINED
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 42424)
    assert proxy["resources"] == {"requests": {"cpu": "25m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
    assert {"name": "federation-proxy-tmp", "mountPath": "/tmp"} in proxy["volumeMounts"]


@pytest.mark.case("K9")
def test_files_are_mounted_by_sub_path_and_volumes_name_their_items() -> None:
    """A volume without items would show every file of the Secret; one without a backend of its type is not there."""
    for backends, volumes in (
        ((OIDC,), {"federation-metadata"}),
        ((SAML,), {"federation-mellon"}),
        ((OIDC, SAML), {"federation-metadata", "federation-mellon"}),
    ):
        pod = deployments(*backends)["keystone"]
        secrets = {
            v["name"]: v["secret"] for v in pod["volumes"] if v["name"].startswith("federation-") and "secret" in v
        }
        assert set(secrets) == {"federation-proxy-config", *volumes}
        assert all(secret["items"] and secret["defaultMode"] == 0o400 for secret in secrets.values())
        mounts = [m for m in container(pod, "federation-proxy")["volumeMounts"] if m["name"] in secrets]
        assert all(m["readOnly"] and m["subPath"] for m in mounts)


@pytest.mark.case("K22")
def test_saml_is_answered_at_one_place() -> None:
    """One replica answers itself; three hand it on to the one pod of the second Deployment, which runs the very same files."""
    one = deployments(SAML)
    assert set(one) == {"keystone"}
    assert "SAML_HERE" in container(one["keystone"], "federation-proxy")["command"]
    three = deployments(SAML, spec=THREE)
    assert "SAML_HERE" not in container(three["keystone"], "federation-proxy")["command"]
    assert "SAML_HERE" in container(three["keystone-saml"], "federation-proxy")["command"]
    assert three["keystone"]["volumes"] == three["keystone-saml"]["volumes"]
    assert set(deployments(OIDC, spec=THREE)) == {"keystone"}


@pytest.mark.case("K22")
def test_the_service_of_the_keystone_does_not_find_the_pod_that_answers_saml() -> None:
    keystone = given.keystone(THREE)
    plain, single = (
        manifests.service(keystone)["spec"]["selector"],
        manifests.saml_service(keystone)["spec"]["selector"],
    )
    assert any(plain[name] != single[name] for name in plain)
    assert manifests.disruption_budget(keystone)["spec"]["selector"]["matchLabels"] == plain


@pytest.mark.case("P2")
def test_no_secret_stands_in_a_federated_pod() -> None:
    text = json.dumps(deployments(OIDC, SAML, spec=THREE))
    for word in ("s3cret", "PRIVATE KEY", "CERTIFICATE"):
        assert word not in text
