"""`python -m tests.conformance SERVER [AREA...]`: play scenarios and print what came back, one line a step; for writing scenarios.

SERVER is `real` (also records), or `ours` (also compares with the record).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.compare import compare, record, recorded
from tests.conformance.play import transcript
from tests.conformance.scenario import areas
from tests.conformance.servers import ours, real

WIDTH = 120
BORING = {"managedFields", "creationTimestamp", "uid", "apiVersion", "kind", "name", "namespace"}


def line(facets: dict[str, Any]) -> str:
    """One answer in one line."""
    status, words = facets.get("status", facets.get("exit", "")), facets.get("warnings", "")
    for name in ("message", "events", "output", "errors", "object"):
        if facets.get(name) and (name != "object" or not str(status).startswith("2")):
            text = facets[name] if isinstance(facets[name], str) else json.dumps(_short(facets[name]), sort_keys=True)
            return f"{status} {facets.get('reason', '')} {words} {text[:WIDTH]}"
    return f"{status} {words}"


def _short(value: object) -> object:
    """An object without the parts that every object has."""
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items() if key not in BORING}
    return value


def main(server: str, wanted: list[str]) -> None:
    """Play the wanted areas, all by default."""
    with tempfile.TemporaryDirectory() as folder, (real if server == "real" else ours)(Path(folder)) as target:
        for area in areas():
            if wanted and area.name not in wanted:
                continue
            seen = {}
            for case in area.cases:
                print(f"== {case.id}")
                seen[case.name] = transcript(case, target)
                if server == "real":
                    for entry in seen[case.name]:
                        print(f"   {entry.step[:70]}: {line(dict(entry.facets))}")
                for d in compare(case, recorded(case) or [], seen[case.name]) if server == "ours" else []:
                    print(f"   {d.step} | {d.facet}\n      real {d.real[:300]}\n      ours {d.ours[:300]}")
            if server == "real":
                record(area.name, seen)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
