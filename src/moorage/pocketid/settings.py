"""How the operator was started, as far as Pocket-ID's kinds care: from the environment, with the defaults of seed 004.

Enters: a mapping of variables. Leaves: Settings. A value that cannot be read counts as absent: a typo must not stop every client.
Source: spec/pocketid.md 6.2.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from moorage.core.durations import parse_duration

RESYNC: Final = 120.0
"""Seconds between two looks at an object; Pocket-ID tells of no change."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds between looks, what logos are without a word of the resource, the time zone of rotation windows, and the image of servers."""

    resync: float = RESYNC
    autogenerate_logos: bool = True
    light_logo: str = ""
    dark_logo: str = ""
    zone: tzinfo = UTC
    image: str = ""


def settings(env: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process."""
    found = os.environ if env is None else env
    return Settings(
        resync=_resync(found.get("RESYNC_INTERVAL", "")),
        autogenerate_logos=found.get("AUTOGENERATE_LOGOS", "true").lower() != "false",
        light_logo=found.get("DEFAULT_LOGO_URL", ""),
        dark_logo=found.get("DEFAULT_DARK_LOGO_URL", ""),
        zone=_zone(found.get("TZ", "")),
        image=found.get("POCKET_ID_IMAGE", ""),
    )


def _resync(text: str) -> float:
    try:
        found = parse_duration(text)
    except ValueError:
        return RESYNC
    return found if found > 0 else RESYNC


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (OSError, ValueError):
        return UTC
