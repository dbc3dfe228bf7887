"""Public keys in a federated identity, as a newer server takes them [read, not verified: spec/pocketid.md 1.3, 4.12].

Enters: an entry of a write. Leaves: its keys re-encoded (known members only, in the server's order), or None for keys that are refused.
"""

from __future__ import annotations

from typing import Any

from .reading import Members, plain

PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
KNOWN = ("use", "kty", "kid", "crv", "alg", "x", "y", "n", "e")
NEEDED = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}


def known_keys(item: Members) -> list[dict[str, Any]] | None:
    """The keys of an entry; [] when it has none."""
    listed = item.get("publicKeys")
    if listed is None:
        return []
    if not isinstance(listed, list):
        return None
    keys = [plain(key) for key in listed]
    return [{name: key[name] for name in KNOWN if name in key} for key in keys] if all(map(_usable, keys)) else None


def _usable(key: Any) -> bool:
    if not isinstance(key, dict) or PRIVATE & key.keys() or not key.get("kid") or key.get("use", "sig") != "sig":
        return False
    return all(isinstance(key.get(name), str) for name in NEEDED.get(key.get("kty", ""), ("none",)))
