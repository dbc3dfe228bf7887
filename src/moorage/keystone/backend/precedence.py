"""Who comes first where not all backends of a Keystone can be served.

Enters: a backend with its status. Leaves: a key to sort by, the same in both rooms. Pure. A name is nobody's merit, and neither is an edit:
who is served as it stands comes before who was served before its last edit, so that nobody edits itself into the place of another.
Source: decisions, Admission 1 (who comes later gives way); spec/keystone.md 4.5, 7 (C8, C9).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from .types import CONFIG_PROJECTED, DOMAIN_READY, FEDERATION_OBJECTS_READY, KeystoneIdentityBackend

SERVED: Final = 0
"""The pods run this backend as it is declared, or are about to."""
EDITED: Final = 1
"""They run an earlier form of it, or people can still log in through it."""
NEW: Final = 2

Precedence: TypeAlias = tuple[int, bool, str, str]


def precedence(backend: KeystoneIdentityBackend) -> Precedence:
    """The lowest comes first: who is served, then whose domain is ready, then the oldest."""
    ready = any(item.type == DOMAIN_READY and item.status == "True" for item in backend.status.conditions)
    return standing(backend), not ready, backend.metadata.creation_timestamp or "", backend.metadata.name


def standing(backend: KeystoneIdentityBackend) -> int:
    """SERVED, EDITED or NEW; of one on its way out something may be mounted, whatever its status says."""
    found, generation = EDITED if backend.metadata.deletion_timestamp else NEW, backend.metadata.generation
    for item in backend.status.conditions:
        if item.type == CONFIG_PROJECTED and (item.status == "True" or item.reason == "WaitingForRollout"):
            current = (item.observed_generation or 0) >= generation
            found = min(found, SERVED if current else EDITED)
        elif item.type == FEDERATION_OBJECTS_READY and item.status == "True":
            found = min(found, EDITED)
    return found
