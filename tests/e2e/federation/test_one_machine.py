"""One machine: an OpenID Connect provider, a second one, a SAML provider and a directory on one Keystone; attached, used, hurt, detached.

One story on one machine, in the order of the file: each test leaves the four attached, the last one takes them away.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, condition, holds
from tests.e2e.federation import manifests
from tests.e2e.federation.machine import Federated, client, content, federated_machine
from tests.e2e.federation.site import ACME, BETA, CORP, PEOPLE, Site
from tests.e2e.federation.watchers import forger, watching
from tests.e2e.one_machine.machine import command_line
from tests.e2e.one_machine.quiet import Arguments, family, files, leaks, objects, secrets
from tests.fakes.idp import Realm, fake_idp
from tests.real.ports import children
from tests.real.process import TICK

from moorage.core.meta import JsonObject
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FEDERATED = (ACME, BETA, CORP)
PROVIDER, INSIDE = "127.0.0.10", "127.0.0.13"
"""Where the operator may fetch from, and another address of this machine, where a provider answers that it must not ask."""
DISCOVERY = f"{BETA}/.well-known/openid-configuration"
ALLOWED = ("--federation-metadata-allow-cidrs", f"{PROVIDER}/32")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """A machine with Keystone and the directory's domain, nothing federated yet."""
    with federated_machine(tmp_path_factory.mktemp("federated"), *ALLOWED, fetched=frozenset({BETA})) as running:
        asyncio.run(_served(running))
        yield running


async def _served(running: Federated) -> None:
    async with client(running) as on:
        bind, backend = (
            next(item for item in example.manifests(running.up.directory) if item["metadata"]["name"] == name)
            for name in ("planetexpress-bind", example.BACKEND)
        )
        await running.serve(on, bind, backend, keystone={"uwsgi": example.QUICK["uwsgi"]})
        await on.ready(example.BACKEND)


@pytest.fixture(scope="module")
def arguments(machine: Federated) -> Iterator[Arguments]:
    """The arguments of every process of the machine."""
    watcher = Arguments(machine.up)
    watcher.start()
    yield watcher
    watcher.end()


@pytest.fixture
def site(machine: Federated) -> Site:
    """The cloud as people see it, its providers as they should be."""
    assert machine.site is not None
    for realm in machine.idp.realms.values():
        realm.down = False
    return machine.site


def _processes(machine: Federated, program: str) -> list[int]:
    """Processes of pods that run a program, the first of each family."""
    assert machine.up.process is not None
    everybody = family([machine.up.process.pid, *machine.up.pods()])
    found = {pid for pid in everybody if command_line(pid).startswith(f"{program} ")}
    return sorted(found - {child for pid in found for child in children(pid)})


MOMENTS: list[tuple[str, Callable[[JsonObject], bool]]] = [
    ("its domain exists", holds("DomainReady")),
    ("its objects exist, closed", holds("MappingsReady")),
    ("its sidecar is rolled out", holds("ConfigProjected", "False", "WaitingForRollout")),
]


async def test_a_provider_is_attached_although_everything_is_killed_on_the_way(
    machine: Federated, arguments: Arguments, site: Site
) -> None:
    """First Keystone, then, at each moment of the walk, the operator between two writes: the next life goes on where the last one ended."""
    async with client(machine) as on:
        await on.apply(manifests.backends(machine.idp)[ACME])
        for pid in _processes(machine, "uwsgi"):
            os.kill(pid, signal.SIGKILL)
    for moment, reached in MOMENTS:
        async with client(machine) as on:
            found = await on.until(BACKEND, ACME, lambda obj, reached=reached: reached(obj) or holds("Ready")(obj))
            assert found, moment
        await asyncio.to_thread(machine.up.kill)
        await asyncio.to_thread(machine.up.start)
    async with client(machine) as on:
        await on.until(BACKEND, ACME, holds("Ready"))
    found = await site.bearer(site.idp.token(ACME, "alice", "cli"))
    assert (found.status, await site.scoped(found.token, ACME)) == (201, ["member", "reader"]), found.text[:300]


@pytest.mark.case("S1")
async def test_the_others_are_attached_and_nobody_forges_a_login_meanwhile(
    machine: Federated, arguments: Arguments, on: Cloud, site: Site
) -> None:
    """From before the first object is made until everything is Ready, claims of nobody's are refused."""
    async with watching(forger(site, *FEDERATED)) as attacker:
        await machine.attach(on, BETA, CORP)
    assert attacker.asked > 20
    assert not attacker.bad


@pytest.mark.parametrize("name", FEDERATED)
async def test_people_sign_in(site: Site, name: str) -> None:
    """With the roles of the groups that their provider asserts."""
    token = await site.token_of(name)
    said = await site.said_of(token)
    assert (said["user"]["name"], said["user"]["domain"]["name"]) == (PEOPLE[name], name)
    assert await site.scoped(token, name) == ["member", "reader"]


async def test_a_bearer_token_is_taken_and_the_directory_serves_its_users(on: Cloud, site: Site) -> None:
    """Two ways more to get in, at the same sidecar."""
    found = await site.bearer(site.idp.token(ACME, "alice", "cli"))
    assert (found.status, found.user, await site.scoped(found.token, ACME)) == (201, "alice", ["member", "reader"])
    assert (await on.login("fry", "fry")).status == 201


async def test_status_names_the_metadata_for_the_provider(on: Cloud, site: Site) -> None:
    """entityID and document are where the status says, and the sidecar serves the same document."""
    backend = await on.client.get(BACKEND, on.key(CORP))
    name = backend["status"]["samlSPMetadataSecretName"]
    secret = await on.client.get(resources.SECRETS, on.key(name))
    assert content(secret, "entityID").decode() == site.mellon("metadata")
    served = await site.raw("GET", f"{site.protected(CORP)}/mellon/metadata")
    assert (served.status, "AssertionConsumerService" in served.text) == (200, True)


@pytest.mark.case("B30")
async def test_the_provider_signs_with_a_new_key_and_nothing_is_started_anew(on: Cloud, site: Site) -> None:
    """OIDC: the module reads the key set again by itself; the document, fetched once more, is the same and rolls nothing."""
    before, fetched = await on.revision(), site.idp.asked("GET", DISCOVERY)
    site.idp.realm(BETA).rotate()
    assert await site.token_of(BETA)
    await on.ask_again(BETA, "a new key")
    async with asyncio.timeout(60):
        while site.idp.asked("GET", DISCOVERY) == fetched:  # noqa: ASYNC110  a journal tells nobody
            await asyncio.sleep(TICK)
    await on.ask_again(BETA, "")  # one more pass, with what was fetched
    await on.until(BACKEND, BETA, holds("Ready"))
    assert await on.revision() == before


@pytest.mark.case("S6")
async def test_a_discovered_provider_is_asked_for_its_document_and_its_keys_only(site: Site) -> None:
    """It offers dynamic registration as well: nobody registers there. Its people signed in, so the private authority was trusted."""
    assert await site.token_of(BETA)
    assert site.idp.asked("GET", DISCOVERY) >= 1
    assert not site.idp.asked("POST", f"{BETA}/register")


async def test_while_a_provider_is_down_its_people_stay_out_and_passwords_go_on(on: Cloud, site: Site) -> None:
    """Federated logins fail closed; the others do not notice. When it is back, so are they."""
    site.idp.realm(ACME).down = True
    token = site.idp.token(ACME, "alice", "cli")
    assert (await site.bearer(token)).status in (401, 502, 503)
    assert (await site.administrator_gets_in()).status == 201
    assert (await on.login("fry", "fry")).status == 201
    assert await site.token_of(BETA)
    site.idp.realm(ACME).down = False
    assert (await site.bearer(token)).status == 201


async def test_a_sidecar_that_is_killed_comes_back(machine: Federated, on: Cloud, site: Site) -> None:
    """The container is started anew in its pod; Keystone itself is not."""
    pods = (await on.client.list(resources.PODS, on.namespace, labels="app.kubernetes.io/component=api")).items
    for item in [item for item in pods if item["metadata"].get("deletionTimestamp")]:
        await on.gone(resources.PODS, item["metadata"]["name"])
    (pod,) = [item for item in pods if not item["metadata"].get("deletionTimestamp")]
    (apache,) = _processes(machine, "apache2")
    os.kill(apache, signal.SIGKILL)

    def again(obj: dict) -> bool:  # type: ignore[type-arg]
        states = {item["name"]: item for item in obj["status"].get("containerStatuses", ())}
        return states["federation-proxy"]["restartCount"] >= 1 and all(item["ready"] for item in states.values())

    after = await on.until(resources.PODS, pod["metadata"]["name"], again)
    counts = {item["name"]: item["restartCount"] for item in after["status"]["containerStatuses"]}
    assert [count for name, count in counts.items() if name != "federation-proxy"] == [0]
    async with asyncio.timeout(60):
        while (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status != 201:  # noqa: ASYNC110  an endpoint tells nobody
            await asyncio.sleep(TICK)


def _hostile(site: Site) -> Iterator[tuple[str, str]]:
    """Documents that no provider of ours sends, and what the status says of each."""
    good = site.idp.metadata(CORP).decode()
    yield '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>', "document type declaration is refused"
    yield good.replace(site.idp.entity(CORP) + '"', 'https://elsewhere.example/"', 1), "entityID"
    yield good.replace("md:KeyDescriptor", "md:Nothing"), "certificate"
    yield good.replace("entityID=", 'validUntil="2020-01-01T00:00:00Z" entityID=', 1), "validUntil"


@pytest.mark.case("B41", "S6", "P4")
async def test_bad_metadata_closes_its_own_backend_only_and_new_metadata_heals_it(on: Cloud, site: Site) -> None:
    """Hostile, foreign and ended documents, and an authority that is none: siblings' logins go on, and status repeats nothing of them.

    Then the SAML provider has a new key, and the other one its authority again.
    """
    await on.set_secret(
        "beta-ca", **{"ca.crt": "-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n"}
    )
    await on.until(BACKEND, BETA, lambda obj: "caBundleSecretRef" in condition(obj, "ConfigProjected")[2])
    for text, said in _hostile(site):
        await on.set_secret("corp-metadata", **{"idp-metadata.xml": text})
        found = await on.until(BACKEND, CORP, lambda obj, said=said: said in condition(obj, "ConfigProjected")[2])
        assert "passwd" not in str(found["status"])
        assert "elsewhere" not in str(found["status"])
    for name in (BETA, CORP):
        await on.until(BACKEND, name, holds("FederationObjectsReady", "False"))
        assert not await _gets_in(site, name)
    assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201
    assert await site.token_of(ACME)
    site.idp.realm(CORP).rotate()
    await on.set_secret("corp-metadata", **{"idp-metadata.xml": site.idp.metadata(CORP).decode()})
    await on.set_secret("beta-ca", **{"ca.crt": site.idp.authority.pem.decode()})
    for name in (BETA, CORP):
        await on.until(BACKEND, name, holds("Ready"))
        assert await site.token_of(name)


async def _gets_in(site: Site, name: str) -> bool:
    """Whether somebody signs in at a provider; a refusal on the way is an answer."""
    person = site.visitor()
    page = await person.open(site.websso(name))
    if page.form is not None and "username" in page.form.fields:
        page = await person.carry_on(await person.sign_in(page, PEOPLE[name]))
    return bool(page.token)


@pytest.mark.case("S6")
async def test_metadata_elsewhere_on_this_machine_is_not_fetched_however_it_is_spelled(
    machine: Federated, on: Cloud, site: Site, tmp_path: Path
) -> None:
    """One address is allowed. Another provider would answer with a good document, and is never asked; all refusals read the same."""
    *_, backend = manifests.fetched(manifests.backends(machine.idp)[BETA])
    backend = json.loads(json.dumps(backend).replace(f'"{BETA}"', '"inside"'))
    del backend["spec"]["oidc"]["caBundleSecretRef"]
    said = set()
    with fake_idp(tmp_path, [Realm(ACME)], machine.authority, host=INSIDE) as inside:
        port = inside.url.rpartition(":")[2]
        for host in SPELLED:
            url = f"https://{host}:{port}/realms/{ACME}/.well-known/openid-configuration"
            backend["spec"]["oidc"] |= {"providerMetadataURL": url, "issuer": f"https://{host}/realms/inside"}
            await on.apply([backend])
            found = await on.until(
                BACKEND, "inside", lambda obj, url=url: f"{url} failed" in condition(obj, "ConfigProjected")[2]
            )
            said.add(condition(found, "ConfigProjected")[2].replace(url, "URL"))
        await machine.detach(on, "inside")
        assert len(said) == 1, said
        assert inside.journal == []
    assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201


SPELLED = (INSIDE, "127.13", "2130706445", "0x7f00000d", "0177.0.0.015", f"[::ffff:{INSIDE}]", "localhost")
"""Spellings of that address, and the machine's name for itself."""


@pytest.mark.case("S7")
async def test_no_secret_is_seen_anywhere(machine: Federated, arguments: Arguments, on: Cloud) -> None:
    """Client secret, key pair, passphrase: not in a log, an object, an argument."""
    values = await secrets(on)
    assert {
        "acme-client/clientSecret",
        "keystone-saml-sp/tls.key",
        "keystone-oidc-crypto-passphrase/passphrase",
    } <= set(values)
    texts = [(f"object {item['kind']} {item['metadata']['name']}", str(item)) for item in await objects(on)]
    assert not leaks([*files(machine.up), *texts, ("arguments", "\n".join(arguments.seen))], values)


@pytest.mark.case("S1")
async def test_detached_one_after_the_other_and_nobody_forges_a_login_meanwhile(
    machine: Federated, on: Cloud, site: Site
) -> None:
    """Those that stay go on; with the last one the sidecar goes, and the administrator gets in as before."""
    async with watching(forger(site, *FEDERATED)) as attacker:
        await machine.detach(on, ACME, BETA)
        assert await site.token_of(CORP)
        assert (await on.login("fry", "fry")).status == 201
        await machine.detach(on, CORP)
        await on.until(resources.DEPLOYMENTS, "keystone", _alone)
        await on.until(KEYSTONE, "keystone", holds("Ready"))
    assert not attacker.bad
    assert not [name for name in await on.mounted() if "federation" in name]
    for name in await _secrets(on):
        await on.gone(resources.SECRETS, name, limit=60)
    async with site.administrator() as admin:
        assert (await admin.made("GET", "/OS-FEDERATION/identity_providers"))["identity_providers"] == []
        assert (await admin.made("GET", "/OS-FEDERATION/mappings"))["mappings"] == []
        names = {item["name"] for item in (await admin.made("GET", "/domains"))["domains"]}
    assert not names & set(FEDERATED)
    assert (await site.administrator_gets_in()).status == 201
    assert (await on.login("fry", "fry")).status == 201


def _alone(deployment: JsonObject) -> bool:
    """Whether Keystone stands without a sidecar."""
    return [item["name"] for item in deployment["spec"]["template"]["spec"]["containers"]] == ["keystone"]


async def _secrets(on: Cloud) -> list[str]:
    """Secrets of federation: each holds a copy of a client secret or a key."""
    names = [item["metadata"]["name"] for item in (await on.client.list(resources.SECRETS, on.namespace)).items]
    return [name for name in names if "-federation-" in name or name == "keystone-saml-sp-metadata"]
