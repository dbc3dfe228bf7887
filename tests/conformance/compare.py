"""Compares what two servers answered, and knows which differences are agreed.

Enters: two lists of records of one case, `accepted.yaml`. Leaves: `Difference`s. It must not talk to a server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from tests.conformance.play import Record
from tests.conformance.scenario import Case

ACCEPTED = Path(__file__).parent / "accepted.yaml"
RECORDED = Path(__file__).parent / "recorded"
ABSENT = "<absent>"


@dataclass(frozen=True)
class Difference:
    """One point at which the servers disagree; `accepted` holds the agreed reason or is empty, `entry` its place in accepted.yaml."""

    area: str
    case: str
    step: str
    facet: str
    real: str
    ours: str
    accepted: str = ""
    entry: int = -1


def _leaves(real: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}, key=str):
            yield from _leaves(real.get(key, ABSENT), ours.get(key, ABSENT), f"{path}.{key}" if path else str(key))
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        if path.endswith(
            "managedFields"
        ):  # ordered by time: two entries change places where a second ends between them
            real, ours = sorted(real, key=_writer), sorted(ours, key=_writer)
        for index, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from _leaves(one, other, f"{path}[{index}]")
    elif real != ours or type(real) is not type(ours):
        yield path, real, ours


def _writer(entry: Mapping[str, Any]) -> list[str]:
    return [str(entry.get(name, "")) for name in ("operation", "manager", "subresource", "apiVersion")]


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _told(record: Record) -> str:
    return _show({name: record.facets[name] for name in ("status", "message", "object") if name in record.facets})


def _step(case: Case, number: int, real: Record, ours: Record) -> Iterator[Difference]:
    skipped = set(case.steps[number].get("but", []))
    label = f"{number:02d} {real.step}"
    if real.facets.get("status") != ours.facets.get("status"):
        if "status" not in skipped:
            yield Difference(case.area, case.name, label, "status", _told(real), _told(ours))
        return
    if ("reason" in real.facets) != ("reason" in ours.facets) and "object" not in skipped:
        yield Difference(case.area, case.name, label, "form of the answer", _told(real), _told(ours))
        return
    for facet in sorted({*real.facets, *ours.facets} - skipped):
        for path, one, other in _leaves(real.facets.get(facet, ABSENT), ours.facets.get(facet, ABSENT), ""):
            name = f"{facet} {path}".strip()
            if not any(_like(name, pattern) for pattern in skipped):
                yield Difference(case.area, case.name, label, name, _show(one), _show(other))


def compare(case: Case, real: Sequence[Record], ours: Sequence[Record]) -> list[Difference]:
    """All differences of one case; a missing step is one, too."""
    if [record.step for record in ours] == ["before the first step"]:
        return [Difference(case.area, case.name, ours[0].step, "status", "played", str(ours[0].facets["message"]))]
    found = [d for number, pair in enumerate(zip(real, ours, strict=False)) for d in _step(case, number, *pair)]
    if len(real) != len(ours):
        found.append(Difference(case.area, case.name, "end", "steps", str(len(real)), str(len(ours))))
    return [_judged(difference) for difference in found]


def agreements() -> list[Mapping[str, str]]:
    """The entries of accepted.yaml: `where` (area/case/step), `facet`, optional `real` and `ours`, all globs, and `because`."""
    return list(yaml.safe_load(ACCEPTED.read_text()) or [])


def unused(found: Sequence[Difference]) -> list[str]:
    """The entries that none of these differences needs, by what they say."""
    needed = {difference.entry for difference in found}
    return [f"{e['where']} | {e['facet']} | {e['because']}" for at, e in enumerate(agreements()) if at not in needed]


_AGREED: list[Mapping[str, str]] = []


def _judged(difference: Difference) -> Difference:
    if not _AGREED:
        _AGREED.extend(agreements())
    where = f"{difference.area}/{difference.case}/{difference.step}"
    for place, entry in enumerate(_AGREED):
        seen = ((where, entry["where"]), (difference.facet, entry["facet"]))
        more = ((difference.real, entry.get("real", "*")), (difference.ours, entry.get("ours", "*")))
        if all(_like(text, pattern) for text, pattern in (*seen, *more)):
            return replace(difference, accepted=entry["because"], entry=place)
    return difference


def _like(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def recorded(case: Case) -> list[Record] | None:
    """What the real server answered when it was last asked; None when this case has never been recorded."""
    path = RECORDED / f"{case.area}.jsonl"
    if not path.exists():
        return None
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = [Record(line["step"], line["facets"]) for line in lines if line["case"] == case.name]
    return found or None


def record(area: str, cases: Mapping[str, Sequence[Record]]) -> None:
    """Write down what the real server answered to all cases of an area."""
    RECORDED.mkdir(exist_ok=True)
    lines = [
        json.dumps({"case": case, "step": entry.step, "facets": dict(entry.facets)}, sort_keys=True, ensure_ascii=False)
        for case, entries in cases.items()
        for entry in entries
    ]
    (RECORDED / f"{area}.jsonl").write_text("\n".join(lines) + "\n")


def table(differences: Sequence[Difference], *, width: int = 150) -> list[str]:
    """The differences as text: area, case and step once, then facet, real and ours, each cut to `width`."""
    lines: list[str] = []
    where = ""
    for difference in differences:
        here = f"{difference.area} / {difference.case} / {difference.step}"
        if here != where:
            lines.append(here)
            where = here
        lines.append(f"  {difference.facet}" + (f"   (agreed: {difference.accepted})" if difference.accepted else ""))
        lines += [f"    real {_cut(difference.real, width)}", f"    ours {_cut(difference.ours, width)}"]
    return lines


def _cut(text: str, width: int) -> str:
    text = text.replace("\n", "\\n")
    return text if len(text) <= width else text[: width - 1] + "…"
