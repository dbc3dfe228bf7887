"""How much a client may declare in what every look at the server's clients reads again: its lists of URLs and its federated identities.

Enters: a spec, or identities with their keys in place. Leaves: which field takes most, and why that is too much. Pure. Bounds of one list and of one text
stand in `types.py`; together they would let one object be larger than its store, and a few of them fill the list that all clients of an instance share.
Source: ADR 0022.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from moorage.calling import wire
from moorage.core.meta import JsonObject

from .types import Spec

LIMIT: Final = 64 << 10
"""Bytes of JSON: some six hundred URLs of a hundred characters; real clients have a few dozen."""


class Excess(NamedTuple):
    """What is too much: the field that takes most, and a sentence with sizes and the remedy."""

    path: str
    why: str


def excess(spec: Spec) -> Excess | None:
    """What is declared too much of, None when it may be sent."""
    identities = [item.to_wire() for item in spec.federated_identities or ()]
    lists = {
        "callbackUrls": spec.callback_urls,
        "logoutCallbackUrls": spec.logout_callback_urls,
        "federatedIdentities": identities,
    }
    sizes = {name: len(wire.dumps(items)) for name, items in lists.items() if items}
    if sum(sizes.values()) <= LIMIT:
        return None
    most = max(sizes, key=lambda name: sizes[name])
    return Excess(
        f"spec.{most}",
        f"has {sizes[most]} bytes as JSON; {', '.join(lists)} may have {LIMIT} together, these have {sum(sizes.values())}:"
        " take out what is not used, let one wildcard stand for many addresses, or make several clients",
    )


def too_many_keys(identities: Sequence[JsonObject]) -> str:
    """Why identities with the keys that they refer to are too much, "" when they may be sent."""
    size = len(wire.dumps(identities))
    if size <= LIMIT:
        return ""
    return f"with the keys that they refer to they have {size} bytes as JSON, and may have {LIMIT}: take out keys that are not used"
