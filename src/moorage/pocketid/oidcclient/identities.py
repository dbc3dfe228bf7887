"""Federated identities as the server takes them, and whether two lists of them are the same.

Enters: declared identities with the contents of the keys they refer to; the server's own list. Leaves: members of the write DTO, or a
fault that names the entry and never shows a key. Pure. The server re-encodes keys, so they are compared by their known members.
Source: spec/pocketid.md 1.3, 4.2; seed 004, Public Keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moorage.core.meta import JsonObject

from .admission import PRIVATE
from .seen_parts import Fault
from .sizes import too_many_keys
from .types_access import FederatedIdentity, PublicKey

KNOWN: Final = ("kty", "crv", "x", "y", "n", "e", "kid", "alg", "use")
"""Members of a JWK that make it the key it is."""
_TEXTS: Final = ("issuer", "subject", "audience", "jwks")

Contents = Mapping[tuple[str, str, str], bytes | None]
"""What references hold, by (`ConfigMap` or `Secret`, name, key); None when object or key is missing."""


class _Unusable(Exception):
    """A key that cannot be used; its text names members, never values."""


def source_of(entry: PublicKey) -> tuple[str, str, str] | None:
    """Where a key is kept; None for an inline one."""
    if entry.value_from is None:
        return None
    if (ref := entry.value_from.config_map_key_ref) is not None:
        return "ConfigMap", ref.name, ref.key
    secret = entry.value_from.secret_key_ref
    return None if secret is None else ("Secret", secret.name, secret.key)


def resolved(identities: Sequence[FederatedIdentity], contents: Contents) -> tuple[JsonObject, ...] | Fault:
    """The identities as members of a write, or the first fault."""
    found = []
    for index, identity in enumerate(identities):
        try:
            found.append(_resolved(identity, contents))
        except _Unusable as error:
            return Fault("PublicKeyError", f"spec.federatedIdentities[{index}]{error}")
    if why := too_many_keys(found):
        return Fault("PublicKeyError", f"spec.federatedIdentities: {why}")
    return tuple(found)


def _resolved(identity: FederatedIdentity, contents: Contents) -> JsonObject:
    wire: JsonObject = {"issuer": identity.issuer, "replayProtection": identity.replay_protection}
    wire |= {name: getattr(identity, name) for name in _TEXTS[1:] if getattr(identity, name)}
    entries = identity.public_keys or ()
    if not entries:
        return wire
    if identity.jwks:
        raise _Unusable(": jwks and publicKeys are mutually exclusive")
    keys = [key for at, entry in enumerate(entries) for key in _keys(f".publicKeys[{at}]", entry, contents)]
    if not keys:
        raise _Unusable(
            ".publicKeys: none of the keys exists, and without any Pocket-ID would trust the issuer's own address"
        )
    return {**wire, "publicKeys": keys}


def _keys(path: str, entry: PublicKey, contents: Contents) -> Iterator[JsonObject]:
    source = source_of(entry)
    if source is None:
        yield _public(f"{path}.value", entry.value)
        return
    kind, name, key = source
    text = contents.get(source)
    if text is None:
        if not _is_optional(entry):
            raise _Unusable(f"{path}: {kind} {name} has no key {key}, or does not exist; create it or set optional")
        return
    yield from _document(f"{path} ({kind} {name}, key {key})", text)


def _is_optional(entry: PublicKey) -> bool:
    source = entry.value_from
    if source is None:
        return False
    refs = (source.config_map_key_ref, source.secret_key_ref)
    return any(ref is not None and bool(ref.optional) for ref in refs)


def _document(path: str, text: bytes) -> Iterator[JsonObject]:
    """One JWK, or all keys of a JWKS document in order."""
    try:
        found = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise _Unusable(f"{path}: is no JSON") from None
    if isinstance(found, dict) and "keys" in found:
        keys = found["keys"]
        if not isinstance(keys, list) or not keys:
            raise _Unusable(f"{path}: is a JWKS document without keys")
        for at, key in enumerate(keys):
            yield _public(f"{path}, keys[{at}]", key)
        return
    yield _public(path, found)


def _public(path: str, key: Any) -> JsonObject:
    """A JWK that holds nothing private; everything else is the server's to judge.

    Raises:
        _Unusable: it is none, or holds private or symmetric material.
    """
    if not isinstance(key, dict) or not key:
        raise _Unusable(f"{path}: is no JWK, which is a JSON object")
    if private := sorted(PRIVATE & _names(key)):
        raise _Unusable(
            f"{path}: holds private or symmetric key material ({', '.join(private)}); it is not sent, use the public key"
        )
    return key


def _names(value: Any) -> set[str]:
    """Names of members at any depth, in lower case: the server reads them without regard to case."""
    if isinstance(value, dict):
        return {str(name).lower() for name in value}.union(*(_names(item) for item in value.values()))
    return set().union(*map(_names, value)) if isinstance(value, list) else set()


def same_identities(wanted: Sequence[JsonObject], there: Sequence[JsonObject]) -> bool:
    """Whether both say the same, whatever the server's encoding of keys."""
    return [_canonical(item) for item in wanted] == [_canonical(item) for item in there]


def held_with_keys(identity: JsonObject, there: Sequence[JsonObject]) -> JsonObject | None:
    """The server's entry for the same issuer, subject and audience, if it holds keys."""
    return next((item for item in there if item.get("publicKeys") and _whose(item) == _whose(identity)), None)


def _whose(identity: JsonObject) -> tuple[str, ...]:
    return tuple(identity.get(name) or "" for name in _TEXTS[:3])


def _canonical(identity: JsonObject) -> tuple[Any, ...]:
    texts = tuple(identity.get(name) or "" for name in _TEXTS)
    keys = tuple(_known(key) for key in identity.get("publicKeys") or () if isinstance(key, dict))
    return (*texts, bool(identity.get("replayProtection")), keys)


def _known(key: JsonObject) -> tuple[str, ...]:
    return tuple(str(key.get(name) or "").rstrip("=") for name in KNOWN)
