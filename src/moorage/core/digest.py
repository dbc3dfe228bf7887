"""Content hashes by which projected objects are named.

Source: spec/keystone.md 1.4: sha256 over `len(key):key=len(value):value\\n` of the sorted keys, first eight hex digits.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any


def content_hash(data: Mapping[str, bytes]) -> str:
    """Eight hex digits over names and contents; map order does not matter."""
    total = hashlib.sha256()
    for name in sorted(data):
        value = data[name]
        encoded = name.encode()
        total.update(b"%d:%s=%d:%s\n" % (len(encoded), encoded, len(value), value))
    return total.hexdigest()[:8]


def concealed_digest(value: str, key: bytes) -> str:
    """Sixteen hex digits that tell a change of a secret, and nothing to who guesses: `key` is random for each run."""
    return hmac.digest(key, value.encode(), "sha256").hex()[:16]


def json_digest(value: Any) -> str:
    """Sixteen hex digits over a JSON value; equal values give equal digests whatever their key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
