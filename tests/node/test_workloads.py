"""Deployments, Jobs, CronJobs and Services on a real node."""

from __future__ import annotations

import asyncio
import re

import pytest

from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import CRON_JOBS, DEPLOYMENTS, ENDPOINTS, JOBS, PDBS, PODS, REPLICA_SETS, SERVICES

from .conftest import PYTHON, Machine, eventually, is_ready, pod

SERVER = (
    "import http.server, os, signal, sys, threading\n"
    "class Hello(http.server.BaseHTTPRequestHandler):\n"
    "    protocol_version = 'HTTP/1.1'\n"
    "    def do_GET(self):\n"
    "        body = os.environ['VERSION'].encode()\n"
    "        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)\n"
    "    def log_message(self, *_): pass\n"
    "server = http.server.ThreadingHTTPServer((os.environ['POD_IP'], 8080), Hello)\n"
    "signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())\n"
    "server.serve_forever(poll_interval=0.02)\n"
)


def web(version: str, replicas: int = 2, **spec: object) -> JsonObject:
    """A Deployment that answers its version over HTTP."""
    env = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "VERSION", "value": version},
    ]
    probe = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1}
    container = {"env": env, "ports": [{"name": "http", "containerPort": 8080}], "readinessProbe": probe}
    template = pod("web", PYTHON, "-c", SERVER, container=container)["spec"]
    del template["nodeName"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": template},
            **spec,
        },
    }


def service(**spec: object) -> JsonObject:
    full = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": full}


def rolled_out(found: JsonObject) -> bool:
    """As `kubectl rollout status` judges."""
    status, wanted = found.get("status") or {}, found["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return seen and counts == [wanted] * 3


async def ask(address: str, port: int = 80) -> str:
    """The body of one request on a connection of its own."""
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    return answer.partition(b"\r\n\r\n")[2].decode()


async def test_a_deployment_rolls_to_a_new_version_without_a_failed_request(machine: Machine) -> None:
    await machine.client.create(DEPLOYMENTS, web("one"))
    address = (await machine.client.create(SERVICES, service()))["spec"]["clusterIP"]
    await machine.until(DEPLOYMENTS, "web", rolled_out)
    seen: list[str] = []
    stop = asyncio.Event()

    async def load() -> None:
        while not stop.is_set():
            seen.append(await ask(address))

    async with asyncio.TaskGroup() as group:
        group.create_task(load())
        changed = web("two", strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        await machine.client.apply(DEPLOYMENTS, changed)
        await machine.until(DEPLOYMENTS, "web", lambda item: item["metadata"]["generation"] > 1 and rolled_out(item))
        await eventually(lambda: _is(seen[-1] == "two"))
        stop.set()
    assert set(seen) == {"one", "two"}
    sets = await machine.client.list(REPLICA_SETS, "default")
    assert sorted(item["spec"]["replicas"] for item in sets.items) == [0, 2]
    found = await machine.client.get(DEPLOYMENTS, Key("default", "web"))
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


async def test_a_stuck_rollout_keeps_the_old_version_and_says_that_its_time_is_over(machine: Machine) -> None:
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await machine.client.create(DEPLOYMENTS, web("one", strategy=strategy))
    await machine.until(DEPLOYMENTS, "web", rolled_out)
    broken = web("two", strategy=strategy, progressDeadlineSeconds=1)
    broken["spec"]["template"]["spec"]["containers"][0]["image"] = "example/unknown"
    await machine.client.apply(DEPLOYMENTS, broken)
    found = await machine.until(DEPLOYMENTS, "web", lambda item: "ProgressDeadlineExceeded" in str(item["status"]))
    assert found["status"]["availableReplicas"] == 2


async def test_recreate_never_runs_two_generations(machine: Machine) -> None:
    await machine.client.create(DEPLOYMENTS, web("one", strategy={"type": "Recreate"}))
    await machine.until(DEPLOYMENTS, "web", rolled_out)
    old = {item["metadata"]["uid"] for item in await machine.pods("web")}
    await machine.client.apply(DEPLOYMENTS, web("two", strategy={"type": "Recreate"}))
    both = False
    listing = await machine.client.list(PODS, "default")
    alive = {item["metadata"]["uid"] for item in listing.items}
    async for event in machine.client.watch(PODS, "default", since=listing.resource_version):
        uid = event.object["metadata"]["uid"]
        alive = alive - {uid} if event.type == "DELETED" else alive | {uid}
        both = both or bool(alive & old and alive - old)
        if not alive & old and len(alive) == 2 and event.type == "MODIFIED" and is_ready(event.object):
            break
    assert not both


@pytest.mark.timeout(150)  # half of the controller's own second look
async def test_recreate_goes_on_as_soon_as_an_old_pod_that_was_never_ready_is_gone(machine: Machine) -> None:
    """Its ReplicaSet has nothing to tell when it ends, and the progress deadline is minutes away: neither may be waited for."""
    strategy = {"type": "Recreate"}
    stubborn = web("one", 1, strategy=strategy)
    stubborn["spec"]["template"]["spec"] |= {"terminationGracePeriodSeconds": 2}
    (container,) = stubborn["spec"]["template"]["spec"]["containers"]
    container["command"] = [PYTHON, "-c", "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"]
    await machine.client.create(DEPLOYMENTS, stubborn)
    await eventually(lambda: _runs(machine))
    await machine.client.apply(DEPLOYMENTS, web("two", 1, strategy=strategy))
    await machine.until(DEPLOYMENTS, "web", lambda item: item["metadata"]["generation"] > 1 and rolled_out(item))


async def _runs(machine: Machine) -> bool:
    return any((item.get("status") or {}).get("phase") == "Running" for item in await machine.pods("web"))


async def test_scaling_and_deleting_follow_the_declaration(machine: Machine) -> None:
    await machine.client.create(DEPLOYMENTS, web("one", replicas=1))
    await machine.until(DEPLOYMENTS, "web", rolled_out)
    await machine.client.patch(DEPLOYMENTS, Key("default", "web"), {"spec": {"replicas": 3}})
    await machine.until(DEPLOYMENTS, "web", lambda item: item["spec"]["replicas"] == 3 and rolled_out(item))
    await machine.client.delete(DEPLOYMENTS, Key("default", "web"), propagation="Background")
    await eventually(lambda: _none(machine))


async def _none(machine: Machine) -> bool:
    return not await machine.pods("web")


async def test_a_deleted_pod_of_a_replica_set_is_replaced(machine: Machine) -> None:
    await machine.client.create(DEPLOYMENTS, web("one", replicas=1))
    await machine.until(DEPLOYMENTS, "web", rolled_out)
    first = (await machine.pods("web"))[0]
    await machine.client.delete(PODS, Key("default", first["metadata"]["name"]))
    await machine.gone(PODS, first["metadata"]["name"])
    await machine.until(DEPLOYMENTS, "web", rolled_out)
    assert [item["metadata"]["uid"] for item in await machine.pods("web")] != [first["metadata"]["uid"]]


async def test_a_service_without_ready_pods_refuses_and_its_endpoints_say_who_is_behind(machine: Machine) -> None:
    address = (await machine.client.create(SERVICES, service()))["spec"]["clusterIP"]
    await machine.until(ENDPOINTS, "web", lambda item: not item.get("subsets"))
    refused = False
    try:
        await ask(address)
    except ConnectionRefusedError:
        refused = True
    assert refused
    await machine.client.create(DEPLOYMENTS, web("one", replicas=1))
    found = await machine.until(ENDPOINTS, "web", lambda item: (item.get("subsets") or [{}])[0].get("addresses"))
    assert found["subsets"][0]["ports"] == [{"port": 8080, "protocol": "TCP"}]
    await eventually(lambda: _answers(address, "one"))


async def _answers(address: str, wanted: str) -> bool:
    try:
        return await ask(address) == wanted
    except OSError:
        return False


async def test_a_pod_reaches_a_service_by_each_of_its_names(machine: Machine) -> None:
    await machine.client.create(DEPLOYMENTS, web("one", replicas=1))
    address = (await machine.client.create(SERVICES, service()))["spec"]["clusterIP"]
    await eventually(lambda: _answers(address, "one"))
    script = (
        "import socket\n"
        "for name in ('web', 'web.default', 'web.default.svc', 'web.default.svc.cluster.local'):\n"
        "    print(socket.gethostbyname(name))\n"
    )
    await machine.client.create(PODS, pod("asks", PYTHON, "-c", script, restartPolicy="Never"))
    await machine.until(PODS, "asks", lambda item: item.get("status", {}).get("phase") == "Succeeded")
    assert machine.log("asks") == [address] * 4


async def test_a_running_pod_learns_of_a_later_service(machine: Machine) -> None:
    script = "import socket, time\nwhile True:\n    try: print(socket.gethostbyname('web')); break\n    except OSError: time.sleep(0.02)"
    await machine.client.create(PODS, pod("waits", PYTHON, "-c", script, restartPolicy="Never"))
    await machine.until(PODS, "waits", is_ready)
    address = (await machine.client.create(SERVICES, service()))["spec"]["clusterIP"]
    await machine.until(PODS, "waits", lambda item: item["status"]["phase"] == "Succeeded")
    assert machine.log("waits") == [address]


async def test_a_deployment_that_is_scaled_in_the_middle_of_a_rollout_grows_where_its_pods_serve(
    machine: Machine,
) -> None:
    """A rollout that is stuck (its image is nowhere) must not get all of the new replicas."""
    await machine.client.create(DEPLOYMENTS, web("1", 4))
    await machine.until(DEPLOYMENTS, "web", rolled_out)
    lost = {"spec": {"template": web("2")["spec"]["template"]}}
    lost["spec"]["template"]["spec"]["containers"][0]["image"] = "nowhere/none"
    await machine.client.patch(DEPLOYMENTS, Key("default", "web"), lost)
    await machine.until(DEPLOYMENTS, "web", lambda item: item["status"].get("updatedReplicas") == 2)
    await machine.client.patch(DEPLOYMENTS, Key("default", "web"), {"spec": {"replicas": 8}})
    await machine.until(DEPLOYMENTS, "web", lambda item: item["status"].get("availableReplicas") == 6)
    found = (await machine.client.list(REPLICA_SETS, "default")).items
    assert sorted(item["spec"]["replicas"] for item in found) == [4, 6]


async def test_a_bare_pod_is_given_to_this_node_and_runs_unless_it_is_meant_for_somebody_else(machine: Machine) -> None:
    """What `kubectl run` makes names no node."""
    wanted = {name: pod(name, "/bin/true", restartPolicy="Never") for name in ("bare", "gated", "theirs")}
    for item in wanted.values():
        del item["spec"]["nodeName"]
    wanted["gated"]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    wanted["theirs"]["spec"]["schedulerName"] = "another"
    for item in wanted.values():
        await machine.client.create(PODS, item)
    found = await machine.until(PODS, "bare", lambda item: item["status"]["phase"] == "Succeeded")
    assert found["spec"]["nodeName"] == "local"
    for name in ("gated", "theirs"):
        left = await machine.client.get(PODS, Key("default", name))
        assert "nodeName" not in left["spec"]
        assert left["status"]["phase"] == "Pending"


def job(name: str, *command: str, **spec: object) -> JsonObject:
    template = pod(name, *command, restartPolicy="Never")["spec"]
    del template["nodeName"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": template}, **spec},
    }


def ended(type_: str) -> object:
    return lambda item: any(
        found["type"] == type_ and found["status"] == "True"
        for found in (item.get("status") or {}).get("conditions") or ()
    )


async def test_a_job_runs_its_completions_in_parallel_and_completes(machine: Machine) -> None:
    await machine.client.create(JOBS, job("work", "/bin/true", completions=3, parallelism=2))
    found = await machine.until(JOBS, "work", ended("Complete"))  # type: ignore[arg-type]
    assert found["status"]["succeeded"] == 3


async def test_a_job_that_fails_too_often_is_failed(machine: Machine) -> None:
    await machine.client.create(JOBS, job("bad", "/bin/false", backoffLimit=1))
    found = await machine.until(JOBS, "bad", ended("Failed"))  # type: ignore[arg-type]
    assert found["status"]["failed"] == 2
    assert found["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"


async def test_a_job_goes_away_when_its_time_after_the_end_is_over(machine: Machine) -> None:
    await machine.client.create(JOBS, job("brief", "/bin/true", ttlSecondsAfterFinished=0))
    await machine.gone(JOBS, "brief")
    await eventually(lambda: _no_pods(machine))


async def _no_pods(machine: Machine) -> bool:
    return not await machine.pods()


async def test_a_cron_job_makes_the_job_of_a_time_that_has_passed(machine: Machine) -> None:
    """Made with a last schedule in the past, as after an hour in which the machine was off."""
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job("x", "/bin/true")["spec"]}, "suspend": True},
    }
    await machine.client.create(CRON_JOBS, cron)
    past = {"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}}
    await machine.client.patch(CRON_JOBS, Key("default", "tick"), past, subresource="status")
    await machine.client.patch(CRON_JOBS, Key("default", "tick"), {"spec": {"suspend": False}})
    found = await machine.until(CRON_JOBS, "tick", lambda item: item["status"].get("lastSuccessfulTime"))
    listing = await machine.client.list(JOBS, "default")
    assert re.fullmatch(r"tick-\d+", listing.items[0]["metadata"]["name"])
    assert found["status"]["lastScheduleTime"] > "2026-01-01T00:00:00Z"


async def test_a_budget_counts_the_pods_that_may_go(machine: Machine) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await machine.client.create(PDBS, budget)
    await machine.client.create(DEPLOYMENTS, web("one"))
    found = await machine.until(PDBS, "web", lambda item: (item.get("status") or {}).get("currentHealthy") == 2)
    assert (found["status"]["disruptionsAllowed"], found["status"]["desiredHealthy"]) == (1, 1)


async def _is(value: bool) -> bool:
    return value
