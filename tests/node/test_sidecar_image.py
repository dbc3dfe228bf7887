"""The sidecar's image, built for real and run as the service's pods run it; a stand-in for Keystone, to be slow on demand.

What is proven: two containers share a socket, a roll in either direction loses no request though the port's number changes, and a
request in flight outlives its pod's end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from tests.keystone.service import given

import moorage
from moorage.core.meta import JsonObject, Key
from moorage.keystone.addresses import PORT
from moorage.keystone.service import draining, manifests, pods
from moorage.keystone.service.federated_pods import PORT as SIDECAR
from moorage.keystone.service.federated_pods import Sidecar, federated
from moorage.keystone.service.federation import CONFIG_VOLUME, METADATA_VOLUME, Mount
from moorage.keystone.service.httpd import httpd_conf
from moorage.keystone.service.proxy import SOCKET
from moorage.kube.resources import DEPLOYMENTS, EVENTS, PODS, SECRETS, SERVICES
from moorage.node import Recipe

from .conftest import QUICK, Machine, api_server, eventually
from .test_workloads import rolled_out

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FOLDER = Path(moorage.__file__).parent / "keystone" / "service"
RECIPES = (
    Recipe(("moorage/keystone",), FOLDER / "image"),
    Recipe(("moorage/keystone-federation-proxy",), FOLDER / "sidecar"),
)
BASE = """\
ServerRoot /tmp
PidFile /tmp/apache2.pid
DefaultRuntimeDir /tmp
Mutex file:/tmp default
ServerName sidecar
Listen ${POD_IP}:5050
ErrorLog /dev/stderr
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule auth_openidc_module /usr/lib/apache2/modules/mod_auth_openidc.so
LoadModule auth_mellon_module /usr/lib/apache2/modules/mod_auth_mellon.so
KeepAlive Off
StartServers 1
ThreadsPerChild 25
MaxRequestWorkers 50
IncludeOptional /etc/keystone-federation-proxy/conf.d/*.conf
"""
PROXY = f'ProxyPass "/" "unix:{SOCKET}|http://localhost/" disablereuse=on\n'
STAND_IN = """\
import http.server, os, signal, socketserver, sys, threading, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/slow":
            time.sleep(3)
        body = sys.argv[1].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def address_string(self):
        return "client"
    def log_message(self, *_):
        pass
class Local(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    request_queue_size = 100
class Remote(http.server.ThreadingHTTPServer):
    daemon_threads = False
if sys.argv[2].startswith("/"):
    server = Local(sys.argv[2], Answer)
else:
    server = Remote((sys.argv[2], 5000), Answer)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever(poll_interval=0.02)
server.server_close()
"""
KEYSTONE = given.keystone({"deployment": {"replicas": 1, "preStopSleepSeconds": 1}})


def plain() -> JsonObject:
    """The template of plain API pods with the stand-in in place of Keystone."""
    template = pods.api_template(KEYSTONE, pods.Mounts("none"), "")
    api = {
        **template["spec"]["containers"][0],
        "command": ["python3", "-c", STAND_IN, "plain", "$(POD_IP)"],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "volumeMounts": [],
    }
    kept = {"terminationGracePeriodSeconds", "securityContext"}
    spec = {name: value for name, value in template["spec"].items() if name in kept}
    return {"metadata": template["metadata"], "spec": {**spec, "containers": [api], "volumes": []}}


def sided() -> JsonObject:
    """The same behind the sidecar."""
    image = "moorage/keystone-federation-proxy"
    mounts = (
        Mount(CONFIG_VOLUME, "httpd-base.conf", "httpd-base.conf"),
        Mount(CONFIG_VOLUME, "proxy.conf", "conf.d/proxy.conf"),
        Mount(METADATA_VOLUME, "acme.provider", "metadata/idp.acme.test%2Fa.provider"),
    )
    template = federated(KEYSTONE, plain(), Sidecar(image, "files", mounts))
    template["spec"]["containers"][0]["command"] = ["python3", "-c", STAND_IN, "federated", SOCKET]
    return template


def deployment(template: JsonObject, replicas: int = 2) -> JsonObject:
    made = in_default(manifests.deployment(KEYSTONE, template))
    made["spec"]["replicas"] = replicas
    return made


def in_default(obj: JsonObject) -> JsonObject:
    meta = {"name": obj["metadata"]["name"], "namespace": "default", "labels": obj["metadata"]["labels"]}
    return {**obj, "metadata": meta}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Machine]:
    """A machine that knows both images, the sidecar's files, and the Service."""
    async with api_server(tmp_path) as client:
        found = Machine(tmp_path, client, replace(QUICK, recipes=RECIPES))
        await found.start()
        files = {"httpd-base.conf": BASE, "proxy.conf": PROXY, "acme.provider": "{}"}
        meta = {"name": "files", "namespace": "default"}
        await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": files})
        await client.create(SERVICES, in_default(manifests.service(KEYSTONE)))
        try:
            yield found
        finally:
            await found.stop()


async def url(site: Machine) -> str:
    service = await site.client.get(SERVICES, Key("default", "keystone"))
    return f"http://{service['spec']['clusterIP']}:5000"


async def said(address: str, path: str = "/v3") -> str:
    """The answer's text on a connection of its own, or what went wrong."""
    try:
        async with aiohttp.ClientSession() as session, session.get(address + path) as answer:
            return await answer.text() if answer.status == 200 else str(answer.status)
    except aiohttp.ClientError as error:
        return repr(error)


async def roll(site: Machine, template: JsonObject) -> Counter[str]:
    """Answers of requests made one after another while the Deployment rolls to another template."""
    answers: Counter[str] = Counter()
    ended = asyncio.Event()

    async def ask() -> None:
        address = await url(site)
        while not ended.is_set():
            answers[await said(address)] += 1

    tasks = [asyncio.create_task(ask()) for _ in range(3)]
    await site.client.apply(DEPLOYMENTS, deployment(template))
    await site.until(DEPLOYMENTS, "keystone", rolled_out)
    ended.set()
    await asyncio.gather(*tasks)
    return answers


@pytest.mark.case("C19")
async def test_attach_and_detach_roll_without_a_lost_request_though_the_port_changes(site: Machine) -> None:
    """The Service asks for the port by name; plain pods have it at 5000, federated ones at 5050."""
    await site.client.apply(DEPLOYMENTS, deployment(plain()))
    await site.until(DEPLOYMENTS, "keystone", rolled_out)
    assert await said(await url(site)) == "plain"
    there = await roll(site, sided())
    assert set(there) == {"plain", "federated"}, there
    assert await said(await url(site)) == "federated"
    back = await roll(site, plain())
    assert set(back) == {"plain", "federated"}, back


@pytest.mark.case("C19")
def test_the_real_base_configuration_ends_each_connection_with_its_answer() -> None:
    """As the one of these tests does: on an idle connection of an ending pod a request would be lost."""
    assert "KeepAlive Off" in httpd_conf(None).splitlines()


@pytest.mark.case("C19")
async def test_a_request_in_flight_outlives_the_end_of_its_pod(site: Machine) -> None:
    """Apache drains before Keystone is told to stop; no hook is cut short."""
    await site.client.apply(DEPLOYMENTS, deployment(sided(), 1))
    await site.until(DEPLOYMENTS, "keystone", rolled_out)
    (pod,) = (await site.client.list(PODS, "default")).items
    slow = [asyncio.create_task(said(await url(site), "/slow")) for _ in range(5)]
    await eventually(lambda: _connected(site))
    await site.client.delete(PODS, Key("default", pod["metadata"]["name"]))
    assert await asyncio.gather(*slow) == ["federated"] * 5
    await site.gone(PODS, pod["metadata"]["name"])
    events = (await site.client.list(EVENTS, "default")).items
    assert "FailedPreStopHook" not in {event["reason"] for event in events}


@pytest.mark.case("C19")
async def test_keystone_does_not_wait_for_a_sidecar_that_never_began(site: Machine) -> None:
    """A template that is replaced while its first pod starts: an hour of grace is not spent on a hand-over that nobody makes."""
    template = sided()
    template["spec"]["terminationGracePeriodSeconds"] = 3600
    keystone, proxy = template["spec"]["containers"]
    keystone["lifecycle"]["preStop"]["exec"]["command"][-3:] = ["0", "3500", str(SIDECAR)]
    proxy["image"] = "moorage/nothing"
    await site.client.apply(DEPLOYMENTS, deployment(template, 1))
    await eventually(lambda: _begun(site))
    (pod,) = (await site.client.list(PODS, "default")).items
    await site.client.apply(DEPLOYMENTS, deployment(template, 0))
    await site.gone(PODS, pod["metadata"]["name"])


async def _begun(site: Machine) -> bool:
    """Whether Keystone's container runs, and the sidecar's does not."""
    pods_ = (await site.client.list(PODS, "default")).items
    statuses = [
        (item["name"], "running" in item["state"])
        for pod in pods_
        for item in pod["status"].get("containerStatuses") or ()
    ]
    return sorted(statuses) == [("federation-proxy", False), ("keystone", True)]


async def _connected(site: Machine) -> bool:
    """Whether the slow requests have reached the stand-in, which is when another one is answered beside them."""
    return await said(await url(site)) == "federated"


ONE_AT_A_TIME = """\
import time
def application(environ, start_response):
    time.sleep(0.75 if environ["PATH_INFO"] == "/slow" else 0)
    start_response("200 OK", [])
    return [b"answered"]
"""
SHORT = given.keystone(
    {
        "deployment": {"replicas": 1, "preStopSleepSeconds": 1, "terminationGracePeriodSeconds": 16},
        "uwsgi": {"processes": 1},
    }
)


def served(template: JsonObject, socket: str = "") -> JsonObject:
    """The template with the real uWSGI and a stand-in of one worker; hooks and grace as SHORT declares them."""
    argv = pods.uwsgi(SHORT.spec, socket=socket)
    at = argv.index("--module")
    argv[at : at + 2] = ["--eval", ONE_AT_A_TIME]
    template["spec"]["containers"][0]["command"] = argv
    template["spec"]["terminationGracePeriodSeconds"] = SHORT.spec.pods.grace
    behind = [draining.behind(SHORT.spec, SIDECAR), draining.proxy(SHORT.spec)]
    hooks = behind if socket else [draining.alone(SHORT.spec, PORT)]
    for container, hook in zip(template["spec"]["containers"], hooks, strict=True):
        container["lifecycle"] = {"preStop": {"exec": {"command": hook}}}
    return template


@pytest.mark.case("C19")
@pytest.mark.parametrize("which", ["plain", "federated"])
async def test_everybody_in_the_queue_of_an_ending_pod_is_answered(site: Machine, which: str) -> None:
    """Twelve requests wait for one worker when the pod is told to end: nine seconds, where its pause is one. uWSGI alone would drop them."""
    template = served(plain()) if which == "plain" else served(sided(), SOCKET)
    await site.client.apply(DEPLOYMENTS, deployment(template, 1))
    await site.until(DEPLOYMENTS, "keystone", rolled_out)
    (pod,) = (await site.client.list(PODS, "default")).items
    waiting = [asyncio.create_task(said(await url(site), "/slow")) for _ in range(12)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await site.client.delete(PODS, Key("default", pod["metadata"]["name"]))
    assert Counter(await asyncio.gather(*waiting)) == {"answered": 12}
    await site.gone(PODS, pod["metadata"]["name"])
    events = (await site.client.list(EVENTS, "default")).items
    assert "FailedPreStopHook" not in {event["reason"] for event in events}


async def test_files_of_the_sidecar_are_regular_and_its_root_is_read_only(site: Machine) -> None:
    """A folder of a Secret mounted by subPath shows no link (decision 9); `%` may stand in a name."""
    await site.client.apply(DEPLOYMENTS, deployment(sided(), 1))
    await site.until(DEPLOYMENTS, "keystone", rolled_out)
    template = sided()
    folder = "/etc/keystone-federation-proxy"
    script = (
        f"cd {folder}; for f in httpd-base.conf conf.d/proxy.conf 'metadata/idp.acme.test%2Fa.provider'; do "
        'stat -c "%F %a %u %n" "$f"; done; touch /x 2>/dev/null || echo refused'
    )
    pod_spec = {**template["spec"], "restartPolicy": "Never"}
    looking = {**pod_spec["containers"][1], "name": "main", "command": ["sh", "-c", script]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe", "lifecycle"):
        looking.pop(probe)
    meta = {"name": "look", "namespace": "default"}
    await site.client.create(
        PODS,
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta,
         "spec": {**pod_spec, "containers": [looking], "nodeName": "local"}},
    )  # fmt: skip
    await site.until(PODS, "look", lambda found: (found.get("status") or {}).get("phase") in ("Succeeded", "Failed"))
    lines = site.log("look")
    assert [line.split()[0] for line in lines[:3]] == ["regular"] * 3, lines
    assert {line.split()[3] for line in lines[:3]} == {"42424"}
    assert {line.split()[2] for line in lines[:3]} == {"400"}
    assert lines[-1] == "refused"
