"""Searches for regular expressions that end, whatever the expression is.

Enters: an expression and a value. Leaves: whether it matches, or TooSlow. The limit is a time of the processor, so that a busy machine changes
nothing. It holds in the main thread of a process, as every command has it: Python's search looks for signals while it goes on.
Source: spec/cli.md, `moorage mapping test`: it never hangs, although Keystone does.
"""

from __future__ import annotations

import re
import signal
import time
from types import FrameType
from typing import Final

from moorage.keystone.backend.mapping_match import TooSlow, found

ONE: Final = 1.0
"""Seconds of the processor that one search may take."""
ALL: Final = 4.0
"""Seconds that all searches of a command may take together."""
_SHOWN: Final = 80


class Patience:
    """What is left of the time for one command."""

    def __init__(self, one: float = ONE, together: float = ALL) -> None:
        self._one, self._left = one, together

    def search(self, pattern: re.Pattern[str], value: str) -> bool:
        """Whether it matches somewhere in the value.

        Raises:
            TooSlow: the time was over first.
        """
        limit = min(self._one, self._left)
        if limit <= 0:
            raise TooSlow(f"{pattern.pattern!r} was not tried: the expressions before it took too long")

        def give_up(_signal: int, _frame: FrameType | None) -> None:
            raise TooSlow(_sentence(pattern.pattern, value, limit))

        before = signal.signal(signal.SIGVTALRM, give_up)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        try:
            return found(pattern, value)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._left -= time.process_time() - started
            signal.signal(signal.SIGVTALRM, before)


def _sentence(pattern: str, value: str, limit: float) -> str:
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}... ({len(value)} characters)"
    return (
        f"{pattern!r} against {shown!r} takes more than {limit:g} s of the processor, and Keystone would search for as long as it takes:"
        " write it without repetitions inside of repetitions"
    )
