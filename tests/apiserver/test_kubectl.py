"""The real kubectl against the embedded server: what a person types works as on Kubernetes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.conftest import CONFIG_MAPS, CRDS, MERGE, NAMESPACED, Client, config_map, crd

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on this machine")

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]},
        },
    },
}


class Kubectl:
    """Runs kubectl with a cache folder of its own."""

    def __init__(self, client: Client) -> None:
        self.client, self.folder = client, client.folder
        self.environment = {**os.environ, "KUBECONFIG": str(client.kubeconfig), "HOME": str(client.folder)}

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        assert KUBECTL is not None
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(KUBECTL, *words, env=self.environment, stdout=pipe, stderr=pipe)

    async def __call__(self, *words: str, code: int = 0) -> str:
        process = await self.start(*words)
        out, err = await process.communicate()
        assert process.returncode == code, f"{words}: {process.returncode}\n{out.decode()}\n{err.decode()}"
        return (out + err).decode() if code else out.decode()

    def file(self, *objects: dict[str, Any]) -> str:
        path: Path = self.folder / "manifest.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        return str(path)


@pytest.fixture
def kubectl(client: Client) -> Kubectl:
    return Kubectl(client)


async def test_create_get_label_annotate_and_delete(kubectl: Kubectl) -> None:
    """The life of a ConfigMap; kubectl writes it as protobuf."""
    assert "configmap/a created" in await kubectl("create", "configmap", "a", "--from-literal=k=v")
    assert await kubectl("get", "cm", "a", "-o", "jsonpath={.data.k}") == "v"
    await kubectl("label", "cm", "a", "tier=front")
    await kubectl("annotate", "cm", "a", "note=hello")
    table = await kubectl("get", "cm", "-l", "tier=front", "--show-labels")
    assert table.splitlines()[0].split() == ["NAME", "DATA", "AGE", "LABELS"]
    assert "tier=front" in table
    assert 'configmap "a" deleted' in await kubectl("delete", "cm", "a")
    assert "NotFound" in await kubectl("get", "cm", "a", code=1)


async def test_creating_every_kind_that_kubectl_builds_itself(kubectl: Kubectl) -> None:
    """All of these travel as protobuf."""
    for words in (
        "namespace n", "secret generic s --from-literal=a=b", "serviceaccount robot", "service clusterip svc --tcp=80:8080",
        "deployment d --image=nginx --replicas=0", "job j --image=busybox", "cronjob cj --image=busybox --schedule=0_0_*_*_*",
        "role r --verb=get --resource=pods", "rolebinding rb --role=r --user=u", "clusterrole cr --verb=get --resource=pods",
        "clusterrolebinding crb --clusterrole=cr --user=u", "poddisruptionbudget pdb --selector=a=b --min-available=1",
        "token robot",
    ):  # fmt: skip
        await kubectl("create", *(word.replace("_", " ") for word in words.split(" ")))
    assert await kubectl("get", "service", "svc", "-o", "jsonpath={.spec.ports[0].targetPort}") == "8080"
    assert await kubectl("get", "secret", "s", "-o", "jsonpath={.data.a}") == "Yg=="


async def test_client_side_apply_and_diff(kubectl: Kubectl) -> None:
    """Apply, apply unchanged, apply changed, and a diff that exits with 1 when there is one."""
    path = kubectl.file(DEPLOYMENT)
    assert "created" in await kubectl("apply", "-f", path)
    assert "unchanged" in await kubectl("apply", "-f", path)
    await kubectl("diff", "-f", path)
    changed = json.loads(json.dumps(DEPLOYMENT))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    path = kubectl.file(changed)
    assert "+      - image: nginx:2" in (await kubectl("diff", "-f", path, code=1))
    assert "configured" in await kubectl("apply", "-f", path)
    assert await kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.generation}") == "2"


async def test_server_side_apply_names_the_other_manager(kubectl: Kubectl) -> None:
    """A second manager conflicts, and takes over by force."""
    path = kubectl.file(config_map("a", k="v"))
    assert "serverside-applied" in await kubectl("apply", "--server-side", "--field-manager=one", "-f", path)
    path = kubectl.file(config_map("a", k="w"))
    refused = await kubectl("apply", "--server-side", "--field-manager=two", "-f", path, code=1)
    assert 'conflict with "one": .data.k' in refused
    await kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", path)
    assert await kubectl("get", "cm", "a", "-o", "jsonpath={.data.k}") == "w"


async def test_patch_in_three_ways_and_replace(kubectl: Kubectl) -> None:
    """JSON, merge and strategic merge patch; replace keeps nothing of the old."""
    await kubectl("apply", "-f", kubectl.file(DEPLOYMENT))
    await kubectl("patch", "deploy", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":2}]')
    await kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}')
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"E","value":"1"}]}]}}}}'
    await kubectl("patch", "deploy", "web", "-p", strategic)
    wanted = "jsonpath={.spec.replicas} {.metadata.labels.a} {.spec.template.spec.containers[0].image}"
    assert await kubectl("get", "deploy", "web", "-o", wanted) == "2 b nginx"
    assert "replaced" in await kubectl("replace", "-f", kubectl.file(DEPLOYMENT))
    assert await kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.labels.a}") == ""


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
async def test_delete_with_every_cascade(kubectl: Kubectl, cascade: str) -> None:
    """Dependents go with their owner, before it, or stay without it."""
    owner = await kubectl.client.create(CONFIG_MAPS, config_map("owner"))
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
    ]
    await kubectl.client.create(CONFIG_MAPS, child)
    await kubectl("delete", "cm", "owner", f"--cascade={cascade}")
    path = f"{CONFIG_MAPS}/child"
    if cascade == "orphan":
        found = await kubectl.client.until(path, lambda answer: "ownerReferences" not in answer.body["metadata"])
        assert found.status == 200
    else:
        await kubectl.client.until(path, lambda answer: answer.status == 404)


async def test_scale_wait_and_rollout_status(kubectl: Kubectl) -> None:
    """What waits for a status is released by the status."""
    await kubectl("apply", "-f", kubectl.file(DEPLOYMENT))
    await kubectl("scale", "deploy", "web", "--replicas=3")
    rollout = await kubectl.start("rollout", "status", "deploy/web", "--timeout=60s")
    waiting = await kubectl.start("wait", "--for=condition=Available", "deploy/web", "--timeout=60s")
    assert rollout.stdout is not None
    assert b"Waiting for deployment" in await rollout.stdout.readline()
    status = {
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m"}],
    }  # fmt: skip
    path = "/apis/apps/v1/namespaces/default/deployments/web/status"
    answer = await kubectl.client.ask("PATCH", path, {"status": status}, media=MERGE)
    assert answer.status == 200, answer.body
    out, err = await rollout.communicate()
    assert b"successfully rolled out" in out, err
    out, err = await waiting.communicate()
    assert b"condition met" in out, err


async def test_get_watches(kubectl: Kubectl) -> None:
    """`get -w` shows what comes after it started, in the columns of the table."""
    watching = await kubectl.start("get", "cm", "-w", "--output-watch-events", "-l", "seen=yes")
    await asyncio.sleep(0)
    labelled = config_map("a", k="v")
    labelled["metadata"]["labels"] = {"seen": "yes"}
    await kubectl.client.until(
        "/metrics", lambda answer: b'verb="WATCH"' in answer.body or kubectl.client.server.api.watchers
    )
    await kubectl.client.create(CONFIG_MAPS, labelled)
    assert watching.stdout is not None
    assert (await watching.stdout.readline()).split() == [b"EVENT", b"NAME", b"DATA", b"AGE"]
    assert (await watching.stdout.readline()).split()[:3] == [b"ADDED", b"a", b"1"]
    watching.terminate()
    await watching.communicate()


async def test_custom_resources_are_first_class(kubectl: Kubectl) -> None:
    """A CRD is served at once: create, get by short name with its columns, explain, edit by patch, delete with its objects."""
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "description": "What is wanted.",
                "properties": {"size": {"type": "integer", "maximum": 9}},
            },
            "status": {"type": "object"},
        },
    }
    definition = crd(additionalPrinterColumns=columns, schema={"openAPIV3Schema": schema})
    definition["spec"]["names"]["shortNames"] = ["th"]
    await kubectl("apply", "-f", kubectl.file(definition))
    await kubectl("wait", "--for=condition=Established", "crd/things.example.test", "--timeout=30s")
    thing = {"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 3}}
    await kubectl("create", "-f", kubectl.file(thing))
    assert (await kubectl("get", "th")).split() == ["NAME", "SIZE", "a", "3"]
    assert "What is wanted." in await kubectl("explain", "thing.spec")
    thing["spec"] = {"size": 10}
    assert "should be less than or equal to 9" in await kubectl("apply", "-f", kubectl.file(thing), code=1)
    thing["spec"] = {"sise": 1}
    assert "unknown field" in await kubectl("apply", "-f", kubectl.file(thing), code=1)
    await kubectl("delete", "crd", "things.example.test")
    assert "the server could not find the requested resource" in await kubectl("get", "things", code=1)


async def test_describe_events_and_explain(kubectl: Kubectl) -> None:
    """Events of an object stand in its description and in `kubectl events`."""
    await kubectl("apply", "-f", kubectl.file(DEPLOYMENT))
    uid = await kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1"}, "reason": "Rolled", "message": "all is new",
        "type": "Normal", "count": 2, "source": {"component": "test"}, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {"kind": "Deployment", "namespace": "default", "name": "web", "uid": uid, "apiVersion": "apps/v1"},
    }  # fmt: skip
    await kubectl.client.create(f"{NAMESPACED}/events", event)
    assert "all is new" in await kubectl("describe", "deploy", "web")
    assert "Rolled" in await kubectl("events", "--for", "deployment/web")
    assert "all is new" in await kubectl("get", "events")
    assert "maxUnavailable" in await kubectl("explain", "deployment.spec.strategy.rollingUpdate")


async def test_api_resources_and_versions(kubectl: Kubectl) -> None:
    """Discovery, with short names and verbs."""
    table = await kubectl("api-resources", "-o", "wide")
    assert any(line.split()[:2] == ["deployments", "deploy"] for line in table.splitlines())
    assert "rbac.authorization.k8s.io/v1" in await kubectl("api-versions")


async def test_auth_can_i(kubectl: Kubectl) -> None:
    """The administrator may all; a ServiceAccount what it is given."""
    await kubectl("create", "serviceaccount", "robot")
    robot = "--as=system:serviceaccount:default:robot"
    assert (await kubectl("auth", "can-i", "delete", "nodes")).strip() == "yes"
    assert "no" in await kubectl("auth", "can-i", "list", "configmaps", robot, code=1)
    await kubectl("create", "rolebinding", "view", "--clusterrole=view", "--serviceaccount=default:robot")
    assert (await kubectl("auth", "can-i", "list", "configmaps", robot)).strip() == "yes"
    assert "system:masters" in await kubectl("auth", "whoami")
    assert "is forbidden: User" in await kubectl("create", "configmap", "x", robot, code=1)


async def test_logs_follow_until_the_container_ends(kubectl: Kubectl) -> None:
    """`logs -f` shows what is written and ends with the container; `--previous`, `--tail` and `--timestamps` choose."""
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "here", "containers": [{"name": "c", "image": "x"}]},
    }  # fmt: skip
    await kubectl.client.create(f"{NAMESPACED}/pods", pod)
    folder = kubectl.folder / "data" / "logs" / "default" / "p" / "c"
    folder.mkdir(parents=True)
    (folder / "0.log").write_text("2026-01-01T00:00:00.000000Z stdout F before\n")
    log = folder / "1.log"
    log.write_text("2026-01-02T00:00:00.000000Z stdout F one\n2026-01-02T00:00:01.000000Z stderr F two\n")
    assert await kubectl("logs", "p") == "one\ntwo\n"
    assert await kubectl("logs", "p", "--previous") == "before\n"
    assert await kubectl("logs", "p", "--tail=1", "--timestamps") == "2026-01-02T00:00:01.000000Z two\n"
    following = await kubectl.start("logs", "-f", "p")
    assert following.stdout is not None
    assert await following.stdout.readline() == b"one\n"
    with log.open("a") as file:
        file.write("2026-01-02T00:00:02.000000Z stdout F three\n")
    assert await following.stdout.readline() == b"two\n"
    assert await following.stdout.readline() == b"three\n"
    ended = {
        "status": {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}], "phase": "Succeeded"}
    }
    await kubectl.client.ask("PATCH", f"{NAMESPACED}/pods/p/status", ended, media=MERGE)
    await following.communicate()
    assert following.returncode == 0


async def test_a_namespace_is_deleted_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    """`kubectl delete namespace` waits, and ends."""
    await kubectl("create", "namespace", "n")
    await kubectl("create", "configmap", "a", "-n", "n")
    await kubectl("create", "deployment", "d", "--image=x", "-n", "n")
    assert 'namespace "n" deleted' in await kubectl("delete", "namespace", "n", "--timeout=60s")
    answer = await kubectl.client.ask("GET", CRDS)
    assert answer.status == 200
