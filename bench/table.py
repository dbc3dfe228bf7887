"""What a question is answered with, and how the answers are printed and written down.

Enters: samples. Leaves: text. It measures nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Spread:
    """Several measurements of one figure."""

    samples: tuple[float, ...]
    unit: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def __str__(self) -> str:
        return f"{short(self.median)}{self.unit and ' ' + self.unit}"

    def row(self) -> tuple[str, str, str, str]:
        """Minimum, median, maximum, number of samples."""
        low, high = short(min(self.samples)), short(max(self.samples))
        return low, short(self.median), high, str(len(self.samples))


@dataclass(frozen=True, slots=True)
class Row:
    """One answer. `met` is None where the figure is told and nothing is aimed at."""

    question: str
    ours: str
    peer: str
    result: str
    aim: str
    met: bool | None
    raw: Mapping[str, Spread] = field(default_factory=dict)

    def cells(self) -> tuple[str, ...]:
        met = {True: "yes", False: "no", None: "-"}[self.met]
        return (self.question, self.ours, self.peer, self.result, self.aim, met)


HEADER = ("question", "ours", "peer", "ratio or count", "aim", "met")


def short(value: float) -> str:
    """Three figures that matter."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def spread(samples: Sequence[float], unit: str = "") -> Spread:
    """The measurements of one figure."""
    return Spread(tuple(samples), unit)


def paired(ours: Sequence[float], peer: Sequence[float]) -> Spread:
    """Ratios ours/peer, repetition by repetition: what the machine's mood did to both cancels out."""
    return Spread(tuple(a / b for a, b in zip(ours, peer, strict=True)), "x")


def plain(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    cells = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(lines)


def markdown(rows: Sequence[Row]) -> str:
    """The table, and below it every raw figure."""
    table = [_line(HEADER), _line(["---"] * len(HEADER)), *(_line(row.cells()) for row in rows)]
    head = ("figure", "min", "median", "max", "runs")
    raw = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        for name, figure in row.raw.items():
            unit = f" ({figure.unit})" if figure.unit else ""
            raw.append(_line((f"{row.question}: {name}{unit}", *figure.row())))
    return "\n".join([*table, "", "## Raw figures", "", *raw])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
