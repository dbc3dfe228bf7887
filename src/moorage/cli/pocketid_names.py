"""Names for manifests of things that have names of another kind: valid for Kubernetes, no two alike, the same at every export.

Enters: ids and the names that people gave. Leaves: a name for each id. Pure. Whoever shares a name with another one, or with a resource that is
there already, gets a part of a digest of its id appended, so that an object that comes or goes renames nobody who was alone.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

LONGEST: Final = 50
"""Characters: with what is appended to them (`-oidc-credentials`, a digest) names stay labels of 63 or names of Secrets."""
_FIRST: Final = 6
_GAPS: Final = re.compile(r"[^a-z0-9]+")


def plain(text: str, otherwise: str) -> str:
    """A text as part of a DNS name: letters without their marks, the rest as dashes; `otherwise` when nothing is left."""
    bare = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _GAPS.sub("-", bare)[:LONGEST].strip("-") or otherwise


def names_of(called: Mapping[str, str], taken: Collection[str], otherwise: str) -> dict[str, str]:
    """A name for each id.

    Args:
        called: id -> the name that people see.
        taken: names of resources that are there already.
        otherwise: for names that hold nothing that a DNS name may.
    """
    wanted = {id: plain(text, otherwise) for id, text in called.items()}
    shared = Counter(wanted.values())
    found = {id: name for id, name in wanted.items() if shared[name] == 1 and name not in taken}
    used = {*taken, *found.values()}
    for id in sorted(wanted.keys() - found.keys()):
        found[id] = _with_digest(wanted[id], id, used)
        used.add(found[id])
    return found


def _with_digest(name: str, id: str, used: Collection[str]) -> str:
    digest = hashlib.sha256(id.encode()).hexdigest()
    return next(full for size in range(_FIRST, len(digest)) if (full := f"{name}-{digest[:size]}") not in used)
