"""Which server it is, and what that server can do: gates as values, checked again by what came back.

Enters: the text of a version, what was sent and what was answered. Leaves: `Version`, `Support`, names of members that did not come back. Pure.
An unreadable version ("unknown", a source build) counts as the newest: then only the readback tells. Source: spec/pocketid.md 2.1, 4.12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final

_VERSION: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[-+].*)?")
OLDEST: Final = (2, 14, 0)
"""The first server with plural secrets."""
TOO_NEW: Final = (3, 0, 0)
"""The first server that nothing is known about."""
LACKED_FOR: Final = timedelta(hours=1)
"""How long what a server dropped counts against the word of its version."""
_NEVER_ANSWERED: Final = frozenset({"logoUrl", "darkLogoUrl"})


class Feature(Enum):
    """Something that not every server can do: the member that carries it, and the first server that has it."""

    PUBLIC_KEYS = ("publicKeys", (2, 15, 0))
    BACKCHANNEL_LOGOUT = ("backchannelLogoutURL", (2, 17, 0))

    @property
    def member(self) -> str:
        """Name in the JSON."""
        return self.value[0]

    @property
    def since(self) -> tuple[int, int, int]:
        """The first version with it."""
        return self.value[1]


class Support(Enum):
    """Whether a server can do something, by its version alone."""

    YES = "yes"
    NO = "no"
    BY_READBACK = "by readback"
    """The version does not tell: send it, and look whether it came back."""


@dataclass(frozen=True, slots=True)
class Version:
    """A server's version as it says it. `number` is None when it cannot be read."""

    text: str
    number: tuple[int, int, int] | None

    @classmethod
    def of(cls, text: str) -> Version:
        """Read `2.14.0`, `v2.17`, `2.15.0-rc.1`."""
        found = _VERSION.fullmatch(text.strip())
        return cls(text[:64], (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None)

    @property
    def is_supported(self) -> bool:
        """Whether we know how to speak to it; one that cannot be read passes."""
        return self.number is None or OLDEST <= self.number < TOO_NEW

    def supports(self, feature: Feature) -> Support:
        """Whether the server has it."""
        if self.number is None:
            return Support.BY_READBACK
        return Support.YES if self.number >= feature.since else Support.NO


def dropped(sent: Mapping[str, Any], answered: Mapping[str, Any]) -> tuple[str, ...]:
    """Members of a write that carry something and that the answer does not know, by path: the server has no such feature.

    A value that came back different is not named: that is drift, not a missing feature. Lists are compared entry by entry. Logo URLs never come back.
    """
    return tuple(name for name in _dropped("", sent, answered) if name not in _NEVER_ANSWERED)


def _dropped(path: str, sent: Any, answered: Any) -> list[str]:
    if isinstance(sent, Mapping) and isinstance(answered, Mapping):
        return [
            name
            for key, value in sent.items()
            if answered.get(key) != value
            for name in (
                _dropped(f"{path}{key}.", value, answered[key])
                if key in answered
                else ([f"{path}{key}"] if value not in (None, "", [], {}, False) else [])
            )
        ]
    if isinstance(sent, list) and isinstance(answered, list):
        pairs = enumerate(zip(sent, answered, strict=False))
        return [name for index, (one, other) in pairs for name in _dropped(f"{path[:-1]}[{index}].", one, other)]
    return []
