"""`moorage pocketid`, wired: server, holdings, owners, manifests.

Enters: what a person named. Leaves: an Export, or orphans. It writes nothing anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from moorage.cli.pocketid_drafts import Needed
from moorage.cli.pocketid_export import Export, Place, export
from moorage.cli.pocketid_holdings import everything, listed
from moorage.cli.pocketid_orphans import Orphan, orphans
from moorage.cli.pocketid_owners import (
    API,
    CLIENT,
    GROUP,
    INSTANCE,
    Owners,
    instances_of,
    owners_among,
    resources_of,
)
from moorage.cli.pocketid_server import attached, chosen, named, reading
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, Key, key_of
from moorage.pocketid.references import LabelSelector
from moorage.pocketid.selection import Selected, one_server, select

if TYPE_CHECKING:
    from moorage.kube.client import Client

BY_DEFAULT: Final = frozenset((CLIENT.kind, GROUP.kind, API.kind))
"""Kinds whose orphans are looked for; people come and go by themselves."""
NAME: Final = "main"
KEY_SECRET: Final = "pocket-id-api-key"  # noqa: S105 - name of a Secret
KEY_NAME: Final = "token"


def export_of_server(url: str, key_file: str | None, namespace: str, *, users: bool) -> Export:
    """A server that nothing stands for yet, with a manifest of the instance that will.

    Raises:
        InputError: address or key file cannot be used.
        EnvironmentError_: the server refused, or did not answer.
    """
    reached = named(url, key_file)
    place = Place(namespace, instance=_instance(reached.server.url, namespace))

    async def read() -> Export:
        async with reading(reached) as remote:
            return export(await everything(remote), Owners(), place, users=users)

    return asyncio.run(read())


def _instance(url: str, namespace: str) -> tuple[JsonObject, Needed]:
    where = {"namespace": namespace} if namespace else {}
    manifest = {
        "apiVersion": INSTANCE.resource.api_version,
        "kind": INSTANCE.kind,
        "metadata": {"name": NAME, **where},
        "spec": {
            "external": {"url": url, "apiKeySecretRef": {"name": KEY_SECRET, "key": KEY_NAME}},
            "allowedNamespaces": [],
        },
    }
    return manifest, Needed(KEY_SECRET, KEY_NAME, f"the API key of {url}")


async def export_of_instance(client: Client, name: str | None, namespace: str, *, users: bool) -> Export:
    """What the server of an instance holds and no resource owns.

    Raises:
        InputError: the instance does not exist, or nothing selects it alone.
        EnvironmentError_: its server refused, or did not answer.
    """
    instance = await chosen(client, name, namespace)
    reached = await attached(client, instance)
    key, all_instances = key_of(instance), await instances_of(client, "")
    place = Place(key.namespace, _selector(instance, all_instances))
    owners = owners_among(await resources_of(client), _same_server(instance, all_instances))
    async with reading(reached) as remote:
        return export(await everything(remote), owners, place, users=users)


def _selector(instance: JsonObject, everything: tuple[JsonObject, ...]) -> Mapping[str, str]:
    """Labels that select this instance alone from its own namespace; none when it is the only one there.

    Raises:
        InputError: its labels are also those of another one.
    """
    key, labels = key_of(instance), instance["metadata"].get("labels") or {}
    for selector in ({}, labels):
        wanted = LabelSelector(match_labels=dict(selector)) if selector else None
        found = select(wanted, key.namespace, everything)
        if isinstance(found, Selected) and found.key == key:
            return dict(selector)
    fix = "Give it a label that no other one has"
    raise InputError(f"PocketIDInstance {key}", "no label selects it alone, so no manifest could name it", fix)


def _same_server(instance: JsonObject, everything: tuple[JsonObject, ...]) -> frozenset[Key]:
    return frozenset(key_of(item) for item in everything if one_server(instance, item))


async def orphans_of(client: Client, name: str | None, namespace: str, kinds: frozenset[str]) -> tuple[Orphan, ...]:
    """Orphans of one instance, or of all; a server that several stand for is looked at once.

    Raises:
        InputError: the instance does not exist.
        EnvironmentError_: a server refused, or did not answer.
    """
    all_instances = await instances_of(client, "")
    wanted = (await chosen(client, name, namespace),) if name else await instances_of(client, namespace)
    if not wanted:
        raise InputError("PocketIDInstance", "there is none here", "`moorage status -A` shows what is declared")
    resources = await resources_of(client)
    found: list[Orphan] = []
    looked_at: list[JsonObject] = []
    for instance in sorted(wanted, key=key_of):
        if any(one_server(instance, other) for other in looked_at):
            continue
        looked_at.append(instance)
        owners = owners_among(resources, _same_server(instance, all_instances))
        async with reading(await attached(client, instance)) as remote:
            found += orphans(await listed(remote), owners, key_of(instance), kinds)
    return tuple(found)
