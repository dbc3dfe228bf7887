"""Which client may hold nothing on an API that names its namespaces.

Enters: the API as it stands on the wire, who holds something on it, who claims clients. Leaves: yes or no. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moorage.core.meta import JsonObject, is_terminating
from moorage.pocketid.oidcclient.rivals import has_client
from moorage.pocketid.rest_types import Holder, nfc
from moorage.pocketid.selection import admits, counts_at


@dataclass(frozen=True, slots=True)
class Claimed:
    """Who claims clients at the server of an instance: `by` knows the PocketIDOIDCClients of a claim, `id:...` or `name:...`."""

    by: Callable[[str], Sequence[JsonObject]]
    here: JsonObject
    instances: Sequence[JsonObject]


def is_barred(api: JsonObject, holder: Holder, claimed: Claimed) -> bool:
    """Whether no PocketIDOIDCClient of a namespace that the API admits has the client.

    One that may be about to tell that it has it counts, unless another has it: the pass that makes a client grants before its status says the id.
    """
    known = [item for item in claimed.by(f"id:{holder.id}") if not is_terminating(item)]
    having = [item for item in known if has_client(item, claimed.here, claimed.instances, holder.id)]
    if having:
        return not any(_admitted(api, item) for item in having)
    coming = [*known, *claimed.by(f"name:{nfc(holder.name)}")]
    return not any(_admitted(api, item) and _may_come(item, claimed) for item in coming)


def _admitted(api: JsonObject, client: JsonObject) -> bool:
    return admits(api, client["metadata"]["namespace"])


def _may_come(client: JsonObject, claimed: Claimed) -> bool:
    return (
        not is_terminating(client)
        and counts_at(client, claimed.here)
        and not has_client(client, claimed.here, claimed.instances)
    )
