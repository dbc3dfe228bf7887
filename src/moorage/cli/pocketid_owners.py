"""Which resource owns what at a server.

Enters: the resources of a cluster, a server's address. Leaves: owners by kind and id. A resource owns what its status names, as long as it is bound to
an instance of that server; a declared id that nothing was made of yet owns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.core.errors import EnvironmentError_
from moorage.core.meta import JsonObject, Key, key_of
from moorage.kube.errors import NotFound
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.user.types import KIND as USER
from moorage.pocketid.usergroup.types import KIND as GROUP

if TYPE_CHECKING:
    from moorage.kube.client import Client
    from moorage.schema import Kind

__all__ = [
    "API",
    "CLIENT",
    "GROUP",
    "IDS",
    "INSTANCE",
    "OWNING",
    "USER",
    "Owners",
    "instances_of",
    "owners_among",
    "resources_of",
]
IDS: Final[Mapping[str, str]] = {
    CLIENT.kind: "clientID",
    GROUP.kind: "groupID",
    API.kind: "apiID",
    USER.kind: "userID",
}
"""Kind -> the field of its status that names its counterpart."""
OWNING: Final[tuple[Kind[Any], ...]] = (USER, GROUP, API, CLIENT)
"""The kinds that have a counterpart, each after those that it refers to."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Who owns what.

    Args:
        by_id: (kind, id at the server) -> the resource.
        resources: all resources of these kinds, of every server.
    """

    by_id: Mapping[tuple[str, str], Key] = field(default_factory=dict)
    resources: tuple[JsonObject, ...] = ()

    def names(self, kind: str, namespace: str) -> frozenset[str]:
        """Names that are taken in a namespace."""
        there = (item for item in self.resources if item["kind"] == kind)
        return frozenset(key_of(item).name for item in there if key_of(item).namespace == namespace)


def owners_among(resources: tuple[JsonObject, ...], instances: frozenset[Key]) -> Owners:
    """The owners at one server. `instances`: all PocketIDInstances that stand for it."""
    found: dict[tuple[str, str], Key] = {}
    for item in resources:
        status = item.get("status") or {}
        bound, id = status.get("instance"), status.get(IDS[item["kind"]])
        told = [(bound, id), *((way["instance"], way.get("clientID")) for way in status.get("moving") or ())]
        for where, made in told:
            if made and where and Key(where["namespace"], where["name"]) in instances:
                found[item["kind"], made] = key_of(item)
    return Owners(found, resources)


async def resources_of(client: Client) -> tuple[JsonObject, ...]:
    """All resources of these kinds in all namespaces.

    Raises:
        EnvironmentError_: the server does not know the kinds.
        ApiError: the server refuses.
    """
    found = [await _all(client, kind, "") for kind in OWNING]
    return tuple(item for items in found for item in items)


async def instances_of(client: Client, namespace: str) -> tuple[JsonObject, ...]:
    """All PocketIDInstances of a namespace; "" for all.

    Raises:
        EnvironmentError_: the server does not know the kind.
        ApiError: the server refuses.
    """
    return await _all(client, INSTANCE, namespace)


async def _all(client: Client, kind: Kind[Any], namespace: str) -> tuple[JsonObject, ...]:
    try:
        return tuple((await client.list(kind.resource, namespace)).items)
    except NotFound as error:
        raise EnvironmentError_(kind.kind, "the server does not serve this kind", "Apply `moorage crds`") from error
