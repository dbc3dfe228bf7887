"""Durations in Go syntax (`1h30m`, `250ms`), as Kubernetes and its users write them."""

from __future__ import annotations

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> float:
    """Seconds of a Go duration.

    Raises:
        ValueError: the text is not a Go duration.
    """
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, end = 0.0, 0
    for part in _PART.finditer(rest):
        if part.start() != end:
            break
        total += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    if not rest or end != len(rest):
        raise ValueError(f"invalid duration {text!r}: write it like 90s, 5m or 1h30m")
    return sign * total


_DAY = 24 * 3600
_AGES = (
    (120, 1, "s", 0, ""), (600, 60, "m", 1, "s"), (3 * 3600, 60, "m", 0, ""), (8 * 3600, 3600, "h", 60, "m"),
    (2 * _DAY, 3600, "h", 0, ""), (8 * _DAY, _DAY, "d", 3600, "h"), (730 * _DAY, _DAY, "d", 0, ""),
    (8 * 365 * _DAY, 365 * _DAY, "y", _DAY, "d"), (float("inf"), 365 * _DAY, "y", 0, ""),
)  # fmt: skip
"""Spans that are shorter than the first number, in this unit, and the rest in that one; 0: the rest is not told."""


def format_age(seconds: float) -> str:
    """A span as kubectl prints ages: 59s, 4m10s, 3h, 2d."""
    whole = max(0, int(seconds))
    _, size, unit, part, small = next(row for row in _AGES if whole < row[0])
    rest = whole % size // part if part else 0
    return f"{whole // size}{unit}" + (f"{rest}{small}" if rest else "")
