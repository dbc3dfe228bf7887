"""A Keystone of two replicas with a directory, an OpenID Connect and a SAML provider, which leave it one after the other.

Enters: a folder, an order. Leaves: a running machine for the time of a `with`, or what was noticed while they left. The orders are walked in two
files: a roll of two real replicas takes its time, and two workers walk at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.e2e import example
from tests.e2e.cloud import KEYSTONE, Cloud, holds
from tests.e2e.databases.site import credentials
from tests.e2e.federation.machine import Federated, client, federated_machine, on_server
from tests.e2e.federation.site import ACME, CORP, Site
from tests.e2e.federation.watchers import administrator, forger, watching
from tests.real.mariadb import mariadb

from moorage.kube import resources

LDAP = example.BACKEND
REPLICAS = 2
ORDERS = list(itertools.permutations((LDAP, ACME, CORP)))


@contextlib.contextmanager
def two_replicas(folder: Path) -> Iterator[Federated]:
    """Keystone with two replicas, nothing attached."""
    places = [folder / "mariadb", folder / "machine"]
    for place in places:
        place.mkdir()
    with mariadb(places[0]) as database, federated_machine(places[1]) as running:

        async def serve() -> None:
            async with client(running) as on:
                await running.serve(
                    on,
                    credentials(database.password),
                    keystone=on_server(database, REPLICAS) | {"uwsgi": example.QUICK["uwsgi"]},
                )

        asyncio.run(serve())
        yield running


def site_of(machine: Federated) -> Site:
    """The cloud as people see it."""
    assert machine.site is not None
    return machine.site


async def attach_all(machine: Federated, on: Cloud) -> None:
    """All three."""
    directory = example.manifests(machine.up.directory)
    await on.apply([item for item in directory if item["metadata"]["name"] in ("planetexpress-bind", LDAP)])
    await machine.attach(on, ACME, CORP)
    await on.ready(LDAP)
    await on.until(KEYSTONE, "keystone", holds("Ready"))


async def _gets_in(on: Cloud, site: Site, name: str) -> bool:
    """Whether people of a backend log in."""
    if name == LDAP:
        return (await on.login("fry", "fry")).status == 201
    return bool(await site.token_of(name))


async def all_leave(machine: Federated, on: Cloud, order: Sequence[str]) -> None:
    """No login of the administrator fails, no forged one works, people of those that stay get in after each step."""
    site = site_of(machine)
    async with watching(administrator(site)) as people, watching(forger(site, ACME, CORP)) as attacker:
        await attach_all(machine, on)
        for number, name in enumerate(order, start=1):
            await machine.detach(on, name)
            # Sign-in by SAML pauses while its one pod is replaced (ADR 0012), and a directory does not wait for that pod.
            await on.until(KEYSTONE, "keystone", holds("Ready"))
            for other in order[number:]:
                assert await _gets_in(on, site, other), (name, other)
    assert (people.bad, attacker.bad) == ([], [])
    assert people.asked > 20
    live = await on.client.get(resources.DEPLOYMENTS, on.key("keystone"))
    assert [item["name"] for item in live["spec"]["template"]["spec"]["containers"]] == ["keystone"]
    assert not [name for name in await on.mounted() if name == "domains" or "federation" in name]
