"""What a pass came to. Exceptions are for bugs and broken wires; everything foreseen is one of these four.

Done        nothing left to do; wake on a change or the resync
Waiting     somebody else must act first; look again after `after` seconds, or only when a watch wakes us
Stalled     a person must act; look again only on a change or the resync
Failed      an attempt failed; try again with back-off
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """The world is as declared. `after`: seconds until the next look, None for the resync alone."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something else must happen first.

    `keep`: the look itself failed, so a condition that is True stays True (seed 000, transient reasons).
    """

    reason: str
    message: str = ""
    after: float | None = None
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Stalled:
    """Only a person can mend this; the message says how."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt failed; the queue retries with back-off. `keep` as in Waiting."""

    reason: str
    message: str
    keep: bool = False


Outcome = Done | Waiting | Stalled | Failed
