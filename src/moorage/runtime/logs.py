"""How the process logs: lines for people or JSON for machines, without secrets and without the variables of a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, MutableMapping
from functools import lru_cache
from typing import Any

import structlog

from moorage.calling import wire
from moorage.core.errors import InputError

_SECRET_NAME = re.compile(r"authorization|password|passwd|secret_value|token|private_key", re.IGNORECASE)
_SECRET_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide values under secret names, and Authorization values in any text."""
    for name, value in event.items():
        if _is_secret(name):
            event[name] = "***"
        elif isinstance(value, str) and _may_hold_one(value):
            event[name] = _SECRET_TEXT.sub(r"\1 ***", value)
    return event


@lru_cache(maxsize=256)
def _is_secret(name: str) -> bool:
    """Names are the same few for all lines."""
    return _SECRET_NAME.search(name) is not None


def _may_hold_one(text: str) -> bool:
    """A quick look, so that the search, which tries every letter, runs over few texts."""
    lower = text.lower()
    return "bearer" in lower or "basic" in lower


def _line(event: MutableMapping[str, Any], default: Callable[[Any], Any]) -> str:
    """A line for machines; values that are no JSON read as `default` says."""
    return wire.dumps(event, default).decode()


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, json: bool | None = None, level: str = "info") -> None:
    """Set up logging to standard error; `json` None means: JSON unless a person is looking.

    Raises:
        InputError: no such level.
    """
    if level not in _LEVELS:
        raise InputError("--log-level", f"{level} is no level", f"Use one of {', '.join(_LEVELS)}")
    machine = not sys.stderr.isatty() if json is None else json
    renderer: Any = (
        structlog.processors.JSONRenderer(_line)
        if machine
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([structlog.processors.format_exc_info] if machine else []),
            redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
