"""A rule's answer that its part of the service is as wanted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Met:
    """The condition is True, with this reason and sentence."""

    reason: str
    message: str = ""
