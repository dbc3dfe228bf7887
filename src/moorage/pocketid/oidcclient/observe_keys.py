"""Reads the public keys that federated identities refer to; writes nothing.

Enters: the world and a client. Leaves: the identities as the server takes them, or a fault. Uncached and not watched, on every pass
(seed 004, Public Keys). Nothing of a key reaches a message.
"""

from __future__ import annotations

import base64
import binascii

from moorage.core.meta import JsonObject, Key
from moorage.kube.errors import NotFound
from moorage.kube.resources import CONFIG_MAPS, SECRETS
from moorage.runtime.world import World

from .identities import resolved, source_of
from .seen_parts import Fault
from .types import PocketIDOIDCClient


async def identities_of(world: World, client: PocketIDOIDCClient) -> tuple[JsonObject, ...] | Fault:
    """The federated identities with their keys in place."""
    identities = client.spec.federated_identities or ()
    sources = {
        source
        for identity in identities
        for entry in identity.public_keys or ()
        if (source := source_of(entry)) is not None
    }
    contents = {source: await _content(world, client.metadata.namespace, source) for source in sorted(sources)}
    return resolved(identities, contents)


async def _content(world: World, namespace: str, source: tuple[str, str, str]) -> bytes | None:
    kind, name, key = source
    try:
        obj = await world.client.get(SECRETS if kind == "Secret" else CONFIG_MAPS, Key(namespace, name))
    except NotFound:
        return None
    plain = (obj.get("data") or {}).get(key) if kind == "ConfigMap" else None
    if plain is not None:
        return str(plain).encode(errors="surrogatepass")
    encoded = (obj.get("data" if kind == "Secret" else "binaryData") or {}).get(key)
    try:
        return None if encoded is None else base64.b64decode(encoded)
    except (ValueError, binascii.Error):
        return b""
