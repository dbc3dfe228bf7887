"""What a server holds and no resource owns.

Enters: Holdings, owners. Leaves: orphans in the order in which people read them. Pure. Users and groups of a directory have an owner: the directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moorage.cli.pocketid_holdings import Holdings
from moorage.cli.pocketid_owners import API, CLIENT, GROUP, USER, Owners
from moorage.core.meta import JsonObject, Key


@dataclass(frozen=True, slots=True)
class Orphan:
    """One object of a server that nobody declares."""

    kind: str
    id: str
    name: str
    instance: Key

    def to_wire(self) -> JsonObject:
        """The JSON form."""
        instance = {"namespace": self.instance.namespace, "name": self.instance.name}
        return {"kind": self.kind, "id": self.id, "name": self.name, "instance": instance}


def orphans(holdings: Holdings, owners: Owners, instance: Key, kinds: frozenset[str]) -> tuple[Orphan, ...]:
    """What none of the owners has, of these kinds."""
    found = (item for item in _everything(holdings, instance) if item.kind in kinds)
    return tuple(sorted((item for item in found if (item.kind, item.id) not in owners.by_id), key=_order))


def _everything(holdings: Holdings, instance: Key) -> Iterator[Orphan]:
    rows: tuple[tuple[str, tuple[Any, ...]], ...] = (
        (CLIENT.kind, holdings.clients),
        (GROUP.kind, tuple(item for item in holdings.groups if not item.ldap_id)),
        (API.kind, holdings.apis),
        (USER.kind, tuple(item for item in holdings.users if not item.ldap_id)),
    )
    for kind, things in rows:
        for item in things:
            yield Orphan(kind, item.id, item.username if kind == USER.kind else item.name, instance)


def _order(orphan: Orphan) -> tuple[str, str, str]:
    return orphan.kind, orphan.name, orphan.id
