"""Field reports that only running pods can settle: shell words in every field, ports of directories, one replica of SQLite."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, cloud, holds
from tests.e2e.one_machine.machine import Machine, machine

from moorage.core.meta import JsonObject, Key
from moorage.kube import resources
from moorage.kube.errors import Invalid

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MARK = "ran-by-a-shell"
WORDS = (
    f"x; touch /tmp/{MARK}",
    f"$(touch /tmp/{MARK})",
    f"`touch /var/lib/keystone/{MARK}`",
    f"a' | touch /tmp/{MARK} #",
    f'b" && touch /var/lib/keystone/{MARK} #',
)
NOT_OURS = "$(OS_DATABASE__CONNECTION)"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine whose Keystone and backend have shell words in every field that takes free text, and Ready."""
    with machine(tmp_path_factory.mktemp("field")) as running:
        asyncio.run(_apply(running))
        yield running


async def _apply(up: Machine) -> None:
    documents = example.manifests(up.directory)
    _furnish(example.of_kind(documents, "Keystone")["spec"])
    backend = example.of_kind(documents, "KeystoneIdentityBackend")["spec"]
    backend["domain"]["description"] = " ".join(WORDS)
    backend["ldap"]["users"]["filter"] = f"(!(description=$`;|& touch /tmp/{MARK}))"
    backend["extraOptions"] = {"user_description_attribute": WORDS[0], "group_desc_attribute": WORDS[1]}
    async with cloud(up.kubeconfig) as site:
        await site.apply(documents)
        await site.ready(example.BACKEND)


def _furnish(keystone: JsonObject) -> None:
    """All that admission lets through: names, arguments, options, rules, logger names."""
    keystone["bootstrap"] |= {
        "region": WORDS[1],
        "publicEndpoint": f"http://public.example.test/$(touch${{IFS}}/tmp/{MARK})",
    }
    keystone["trustFlush"] = {"schedule": "0 0 1 1 *", "args": [*WORDS, NOT_OURS]}
    keystone["uwsgi"] = example.QUICK["uwsgi"]
    keystone["extraConfig"] = {
        **example.QUICK["extraConfig"],
        "oslo_messaging_notifications": {"topics": WORDS[2]},
        "resource": {"admin_project_name": WORDS[3]},
    }
    keystone["plugins"] = [{"name": WORDS[0], "configSection": "acme", "config": {"words": WORDS[4]}}]
    keystone["logging"] = {"perLoggerLevels": {WORDS[0]: "INFO"}}
    keystone["policyOverrides"] = {"rules": {"acme:words": "@"}}
    keystone["networkPolicy"] = {"ingress": [{"namespaceSelector": {"matchLabels": {"words": "no"}}}]}


@pytest.fixture
async def site(up: Machine) -> AsyncIterator[Cloud]:
    """A client for this test."""
    async with cloud(up.kubeconfig) as opened:
        yield opened


def _marks(up: Machine) -> list[Path]:
    places = (up.folder, Path("/tmp"), Path("/var/tmp"))
    return [found for place in places[:1] for found in place.rglob(MARK)] + [
        place / MARK for place in places[1:] if (place / MARK).exists()
    ]


@pytest.mark.case("B81")
async def test_shell_words_in_every_field_stay_words(up: Machine, site: Cloud) -> None:
    """Database, bootstrap, API and trust flush ran with them: nothing was executed, and the words arrived unchanged."""
    flush = await _flushed(site)
    assert _marks(up) == []
    said = "\n".join([line async for line in site.client.logs(flush)])
    assert NOT_OURS in said
    assert WORDS[0] in said
    async with site.identity() as ask:
        regions = {item["id"] for item in (await ask("GET", "/regions"))[1]["regions"]}
        domain = (await ask("GET", "/domains?name=planetexpress"))[1]["domains"][0]
    assert WORDS[1] in regions
    assert domain["description"] == " ".join(WORDS)
    assert (await site.login("fry", "fry")).status == 201


async def _flushed(site: Cloud) -> Key:
    """Run the CronJob's Job now, as `kubectl create job --from` does; the key of its pod once it has ended."""
    cron = await site.client.get(resources.CRON_JOBS, site.key("keystone-trust-flush"))
    spec = copy.deepcopy(cron["spec"]["jobTemplate"]["spec"]) | {"backoffLimit": 0}
    await site.client.create(resources.JOBS, {"metadata": {"name": "now", "namespace": site.namespace}, "spec": spec})
    await site.until(resources.JOBS, "now", lambda o: (o.get("status") or {}).get("conditions"))
    pods = await site.client.list(resources.PODS, site.namespace, labels="batch.kubernetes.io/job-name=now")
    return site.key(pods.items[0]["metadata"]["name"])


@pytest.mark.case("K15", "C13")
async def test_the_network_policy_opens_the_port_of_the_attached_directory(up: Machine, site: Cloud) -> None:
    """And closes it again when the directory is detached."""
    assert up.directory.port in await _open_ports(site)
    other = example.backend(up.directory, "other", {"ldap": {"url": f"ldaps://127.0.0.1:{up.directory.tls_port}"}})
    await site.apply([other])
    await site.until(resources.NETWORK_POLICIES, "keystone", lambda o: up.directory.tls_port in _ports(o))
    await site.client.delete(BACKEND, site.key("other"))
    await site.gone(BACKEND, "other")
    await site.until(resources.NETWORK_POLICIES, "keystone", lambda o: up.directory.tls_port not in _ports(o))
    await site.until(KEYSTONE, "keystone", holds("Ready"))


async def _open_ports(site: Cloud) -> set[int]:
    return _ports(await site.client.get(resources.NETWORK_POLICIES, site.key("keystone")))


def _ports(policy: JsonObject) -> set[int]:
    return {port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())}


@pytest.mark.case("K19")
async def test_an_embedded_database_is_never_scaled(site: Cloud) -> None:
    """A second replica is refused with the field; the Deployment stays at one."""
    for change in ({"deployment": {"replicas": 2}}, {"autoscaling": {"maxReplicas": 3}}):
        with pytest.raises(Invalid) as refused:
            await site.client.patch(KEYSTONE, site.key("keystone"), {"spec": change})
        assert "embedded database" in str(refused.value)
    live = await site.client.get(resources.DEPLOYMENTS, site.key("keystone"))
    assert live["spec"]["replicas"] == 1
