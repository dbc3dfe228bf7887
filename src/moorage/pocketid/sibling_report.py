"""What groups, APIs and users report alike: the same in numbers.

Enters: a kind's report. Leaves: that report, counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.core.outcome import Outcome
from moorage.runtime.room import Report
from moorage.schema.kind import Kind

from . import metrics
from .sibling import Sibling


def counted(kind: Kind[Any], report: Callable[[Any, Outcome], Report]) -> Callable[[Any, Outcome], Report]:
    """The report, and the same in numbers."""

    def reported(seen: Sibling[Any, Any], outcome: Outcome) -> Report:
        made = report(seen, outcome)
        metrics.ready(kind.kind, seen.resource.key, all(item.is_true for item in made.conditions))
        return made

    return reported
