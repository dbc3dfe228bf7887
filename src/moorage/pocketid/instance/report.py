"""What a person reads about an instance: Ready, its address and version, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure.
"""

from __future__ import annotations

from typing import Final

from moorage.core import conditions
from moorage.core.outcome import Done, Outcome
from moorage.pocketid.references import READY
from moorage.pocketid.rest_version import Version
from moorage.runtime.room import Event, Report

from .seen import Seen

REASONS: Final = {
    READY: ("Ready", "Unreachable", "APIClientError", "UnsupportedVersion", "DeploymentUnavailable", "Deleting")
}
"""Every reason by condition type, for the reference."""
EVENTS: Final = (
    "ServerAttached",
    "Unreachable",
    "APIClientError",
    "UnsupportedVersion",
    "DeploymentUnavailable",
    "TooManySteps",
)
"""Every event reason, for the reference."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """The condition, status fields and events of one pass."""
    status = {"url": seen.url or None}
    if isinstance(seen.look, Version):
        status["version"] = seen.look.text
    if isinstance(outcome, Done):
        said = f"the running server at {seen.url} is used"
        return Report((conditions.true(READY, "Ready", said),), status, (Event("Normal", "ServerAttached", said),))
    told = Event("Warning", outcome.reason, outcome.message)
    return Report((conditions.false(READY, outcome.reason, outcome.message),), status, (told,))
