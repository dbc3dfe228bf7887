"""API keys of a user as Secrets hold them: a token a key, and beside it, in an annotation, which key at the server it belongs to.

Enters: Secrets as they stand on the wire, the declared keys, the time. Leaves: frozen values, and Secrets to write. Pure; no token enters an
annotation. The token of a key is seen once, so what a Secret holds is carried over. Source: spec/pocketid.md 2.4, 4.7.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from moorage.core.meta import JsonObject, owner_reference, ref_of
from moorage.pocketid.references import GROUP, MANAGED_BY, OPERATOR

from .types import ApiKey, PocketIDUser

RECORD: Final = f"{GROUP}/api-keys"
"""Annotation of a Secret with API keys: JSON with the user's id and, by name, each key's id, end, and entry in the data."""
LIFE: Final = timedelta(days=365)
"""How long a key lives that declares no end; it is made anew `AHEAD` before it ends."""
AHEAD: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Held:
    """A key that a Secret holds.

    Args:
        entry: where its token stands in the data.
        declared_end: what the resource said of its end when it was made; "" for nothing.
        former: ids of keys that it replaced and that are still at the server.
    """

    name: str
    id: str
    entry: str
    ends: str
    made: str
    declared_end: str = ""
    former: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shelf:
    """One Secret with keys; `data` is base64 as on the wire. `foreign`: somebody else's, or nobody's."""

    secret: str
    user: str = ""
    held: tuple[Held, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict, repr=False)
    exists: bool = False
    foreign: bool = False

    def get(self, name: str) -> Held | None:
        """The key of that name whose token is there."""
        found = next((item for item in self.held if item.name == name), None)
        return found if found is not None and self.data.get(found.entry) else None


def place(user: PocketIDUser, key: ApiKey) -> tuple[str, str]:
    """Secret and entry of a declared key."""
    return (
        (key.secret_ref.name, key.secret_ref.key)
        if key.secret_ref
        else (f"{user.metadata.name}-{key.name}-key", "token")
    )


def shelf_of(secret: JsonObject, *, foreign: bool) -> Shelf:
    """What a Secret holds; a record that cannot be read counts as none."""
    name, data = secret["metadata"]["name"], secret.get("data") or {}
    if foreign:
        return Shelf(name, exists=True, foreign=True)
    user, held = _read((secret["metadata"].get("annotations") or {}).get(RECORD, ""))
    return Shelf(name, user, held, data, exists=True)


def _read(text: str) -> tuple[str, tuple[Held, ...]]:
    try:
        record = json.loads(text)
        held = [Held(**{**item, "former": tuple(item.get("former") or ())}) for item in record["keys"]]
        return str(record["user"]), tuple(held)
    except (ValueError, TypeError, KeyError, AttributeError):
        return "", ()


def is_due(key: ApiKey, held: Held | None, now: datetime) -> bool:
    """Whether a key is to be made: there is none, its end was declared anew, or it ends soon without a declared end."""
    if held is None or held.declared_end != (key.expires_at or ""):
        return True
    return key.expires_at is None and datetime.fromisoformat(held.ends) - AHEAD <= now


def end_of(key: ApiKey, now: datetime) -> datetime:
    """When a key that is made now ends."""
    return datetime.fromisoformat(key.expires_at) if key.expires_at else (now + LIFE).replace(microsecond=0)


def manifest(user: PocketIDUser, shelf: Shelf) -> JsonObject:
    """The Secret of a shelf: tokens of the keys that it holds, and nothing else."""
    kept = {item.entry: shelf.data[item.entry] for item in shelf.held if item.entry in shelf.data}
    record = {"user": shelf.user, "keys": [_written(item) for item in shelf.held]}
    annotations = {RECORD: json.dumps(record, sort_keys=True, separators=(",", ":"))}
    return secret(user, shelf.secret, kept, annotations)


def _written(held: Held) -> dict[str, Any]:
    return {name: getattr(held, name) for name in ("name", "id", "entry", "ends", "made", "declared_end", "former")}


def secret(user: PocketIDUser, name: str, data: Mapping[str, str], annotations: Mapping[str, str]) -> JsonObject:
    """A Secret that belongs to the resource; `data` is base64."""
    owner = owner_reference(
        ref_of({"apiVersion": user.api_version, "kind": user.kind, "metadata": user.metadata.to_wire()})
    )
    meta = {
        "name": name,
        "namespace": user.metadata.namespace,
        "labels": {MANAGED_BY: OPERATOR},
        "annotations": dict(annotations),
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": dict(data)}


def encoded(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Texts as `data` of a Secret; empty ones are left out."""
    return {name: base64.b64encode(text.encode()).decode() for name, text in values if text}
