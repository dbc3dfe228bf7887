"""`moorage run` with two replicas on a real kube-apiserver: the same manifests become Ready, and one leader at a time writes."""

from __future__ import annotations

import asyncio
import signal
import urllib.request
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError, URLError

import pytest
import yaml
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, cloud, condition, holds
from tests.e2e.kubernetes.cluster import ACCOUNT, Cluster, Replica, cluster, granted, used
from tests.real.process import poll

from moorage.core.meta import JsonObject, Key
from moorage.kube import resources
from moorage.kube.errors import ApiError
from moorage.serving.certificates import make_authority

pytestmark = [pytest.mark.conformance, pytest.mark.e2e, pytest.mark.timeout(900)]
LEASE = Key("moorage-system", "moorage")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with two replicas, both ready."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        for replica in found.replicas:
            poll(lambda one=replica: _ask(one.health, "/readyz")[0] == 200, what=f"{replica.name} ready", limit=60)  # type: ignore[misc]
        yield found


@pytest.fixture(scope="module")
def applied(running: Cluster) -> Cluster:
    """The example by kubectl, once; the name of its Service is known as a cluster's DNS knows it."""
    documents = example.manifests(running.directory)
    example.of_kind(documents, "Keystone")["spec"]["networkPolicy"] = {"ingress": [{"podSelector": {}}]}
    running.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(documents))
    asyncio.run(_named(running))
    return running


async def _named(running: Cluster) -> None:
    async with cloud(running.api.kubeconfig) as site:
        await site.until(KEYSTONE, "keystone", lambda o: condition(o, "KeystoneAPIReady")[0])
        service = await site.client.get(resources.SERVICES, site.key("keystone"))
        running.name("keystone.openstack.svc.cluster.local", service["spec"]["clusterIP"])
        await site.ready(example.BACKEND)


@pytest.fixture
async def site(running: Cluster) -> AsyncIterator[Cloud]:
    """A client of the administrator."""
    async with cloud(running.api.kubeconfig) as opened:
        yield opened


def _ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, ""
    except (URLError, OSError):
        return 0, ""


def _leads(replica: Replica) -> bool:
    return 'leader_election_master_status{name="moorage"} 1.0' in _ask(replica.metrics, "/metrics")[1]


@pytest.fixture
async def attached(applied: Cluster, site: Cloud) -> Cloud:
    """The example, Ready."""
    await site.ready(example.BACKEND)
    return site


async def test_the_same_manifests_attach_the_directory(attached: Cloud) -> None:
    """Ready on a real API server, and the token of a user of the directory is real."""
    assert (await attached.login("fry", "fry")).status == 201
    assert (await attached.login("fry", "wrong")).status == 401


async def test_a_webhook_refusal_names_every_field(attached: Cloud, running: Cluster) -> None:
    """All violations of the webhook's layer in one answer, each with its path, through the real API server."""
    bad = example.backend(running.directory, "refused", {"extraOptions": {"url": "x", "page_size": "-1"}})
    with pytest.raises(ApiError) as refused:
        await attached.apply([bad])
    causes = refused.value.details.get("causes", [])
    assert {cause["field"] for cause in causes} == {"spec.extraOptions[url]", "spec.extraOptions[page_size]"}


async def test_the_certificate_of_the_webhooks_is_renewed_in_time(attached: Cloud, running: Cluster) -> None:
    """An ageing authority is replaced, the old one stays trusted beside it, and no request is refused for it."""
    secret = Key("moorage-system", "moorage-webhook-ca")
    stored = await attached.client.get(resources.SECRETS, secret)
    old = make_authority("moorage-webhook", datetime.now(UTC) - timedelta(days=80), timedelta(days=90))
    data = {"tls.crt": old.certificate, "tls.key": old.key.reveal(), "ca.crt": old.certificate}
    await attached.client.patch(resources.SECRETS, secret, {"data": None, "stringData": data})
    ageing = await attached.client.get(resources.SECRETS, secret)
    assert ageing["data"]["tls.crt"] != stored["data"]["tls.crt"]
    await _until_changed(
        attached, resources.SECRETS, secret, lambda o: o["data"]["tls.crt"] != ageing["data"]["tls.crt"]
    )
    renewed = await attached.client.get(resources.SECRETS, secret)
    for rt in (resources.VALIDATING_WEBHOOKS, resources.MUTATING_WEBHOOKS):
        await _until_changed(attached, rt, Key("", "moorage"), lambda o: _bundles(o) == {renewed["data"]["ca.crt"]})
    bad = example.backend(running.directory, "refused", {"extraOptions": {"page_size": "-1"}})
    async with asyncio.timeout(60):
        while not await _refused_by_rule(attached, bad):
            continue


def _bundles(configuration: JsonObject) -> set[str]:
    return {hook["clientConfig"].get("caBundle", "") for hook in configuration["webhooks"]}


async def _refused_by_rule(site: Cloud, bad: JsonObject) -> bool:
    """Whether the webhook was reached; not so while a replica still serves what the API server trusts no more."""
    try:
        await site.client.create(BACKEND, bad, dry_run=True)
    except ApiError as error:
        return "page_size" in str(error)
    raise AssertionError("it was admitted")


async def _until_changed(site: Cloud, rt: object, key: Key, done: object) -> None:
    found = Cloud(site.client, key.namespace)
    await found.until(rt, key.name, done, limit=60)  # type: ignore[arg-type]


@pytest.mark.case("P5")
async def test_two_leaders_never_write(attached: Cloud, running: Cluster) -> None:
    """The leader freezes: the other takes over. It wakes up: it writes nothing. The second dies: the first leads again."""
    first, second = sorted(running.replicas, key=_leads, reverse=True)
    assert (_leads(first), _leads(second)) == (True, False)
    transitions = await _transitions(attached)
    frozen = len(running.changes())
    assert set(running.changes()) == {first.token_id}
    first.signal(signal.SIGSTOP)
    await _taken_over(attached, transitions)
    assert await _transitions(attached) == transitions + 1
    await _rotate(attached, running, "rotated-once")
    first.signal(signal.SIGCONT)
    poll(lambda: not _leads(first) and _leads(second), what="the first knows that it does not lead")
    assert set(running.changes()[frozen:]) == {second.token_id}
    before = len(running.changes())
    second.kill()
    await _taken_over(attached, transitions + 1)
    await _rotate(attached, running, "rotated-twice")
    assert set(running.changes()[before:]) == {first.token_id}
    assert (await attached.login("fry", "fry")).status == 201
    second.start()
    poll(lambda: _ask(second.health, "/readyz")[0] == 200, what="the second is back", limit=60)


async def _transitions(site: Cloud) -> int:
    lease = await site.client.get(resources.LEASES, LEASE)
    return int(lease["spec"].get("leaseTransitions", 0))


async def _taken_over(site: Cloud, before: int) -> None:
    lease = Cloud(site.client, LEASE.namespace)
    await lease.until(resources.LEASES, LEASE.name, lambda o: o["spec"].get("leaseTransitions", 0) > before, limit=60)


async def _rotate(site: Cloud, running: Cluster, password: str) -> None:
    """Something for a leader to do: one rollout, to its end."""
    before = await site.revision()
    await asyncio.to_thread(running.directory.set_password, example.READER, password)
    await site.set_secret("planetexpress-bind", password=password)
    await site.until(BACKEND, example.BACKEND, holds("ConfigProjected", "False"))
    await site.ready(example.BACKEND)
    assert await site.revision() == before + 1


IDLE = {
    "get": "after a conflict, and where a watch is too slow",
    "create": "server-side apply of what is not there needs it, without being asked for it by name",
    "delete": "of what the spec no longer wants",
}
"""Verb -> when it is used though nothing here made the operator use it."""
RARE = {
    ("apps", "statefulsets", "patch"): "a Pocket-ID that is deployed so: tests/pocketid/instance, as this very role",
    ("gateway.networking.k8s.io", "httproutes", "patch"): "the same, with a route",
    ("", "events", "patch"): "an event that comes again is counted",
    ("keystone.openstack.c5c3.io", "keystones", "patch"): "finalizers; this kind has none yet",
    (
        "keystone.openstack.c5c3.io",
        "keystones/finalizers",
        "update",
    ): "owner references that block deletion, where that is enforced",
    ("keystone.openstack.c5c3.io", "keystoneidentitybackends/finalizers", "update"): "the same",
}
"""Right -> what it is for."""
ABSENT = "pocketid.internal"
"""Group of a system that has no object here."""


async def test_the_service_account_is_refused_nothing_and_may_little_more(attached: Cloud, running: Cluster) -> None:
    """The rules of `moorage crds` are enough for all that this file made the operator do, and nothing is granted in vain."""
    entries = running.audit()
    assert [(entry["verb"], entry["requestURI"]) for entry in entries if entry["responseStatus"]["code"] == 403] == []
    assert {entry["user"]["username"] for entry in entries} == {ACCOUNT}
    asked = used(entries)
    needed = [right for right in granted() if right[0] != ABSENT]
    unused = [right for right in needed if right not in asked and right[2] not in IDLE and right not in RARE]
    assert unused == []
