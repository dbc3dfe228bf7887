"""The snapshot of one pass over an instance.

Enters: what `observe.py` read. Leaves: frozen values that decide and report look at. It holds no API key.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from moorage.pocketid.rest_version import Version

from .types import PocketIDInstance


class Trouble(Enum):
    """What kind of failure a look ended with."""

    UNREACHABLE = "Unreachable"
    """No answer, or the server failed: it may pass by itself."""
    REFUSED = "APIClientError"
    """An answer that says no: a person must change something."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A look that failed. `after`: seconds that the server asks us to wait, 0 when it does not say."""

    trouble: Trouble
    message: str
    after: float = 0.0


Look: TypeAlias = Version | Unknown


@dataclass(frozen=True, slots=True)
class Seen:
    """One pass.

    Args:
        fault: why there is no API client; "" when there is one.
        look: what the server said; None when it was not asked.
        url: where it was asked.
        resync: seconds until the next look at a server that is well.
    """

    instance: PocketIDInstance
    url: str
    fault: str
    look: Look | None
    resync: float
