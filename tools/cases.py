"""Ids of field reports, decisions and seed items that no test names.

`tests/cases/ids.txt` lists the ids that apply to what is built, one a line with its sentence; a test names an id by
`@pytest.mark.case("B09")` or a case folder by `case: B09` in its given.yaml. `--check` also refuses a test that names an unknown id.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"mark\.case\(([^)]*)\)")
ID = re.compile(r"[A-Z]+[0-9]+(?:\.[0-9]+)*")


def known() -> dict[str, str]:
    """Id -> its sentence."""
    lines = (ROOT / "tests/cases/ids.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(None, 1) for line in lines if line.strip() and not line.startswith("#"))
    return dict(pairs)


def named() -> dict[str, set[str]]:
    """Id -> files that name it."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        for call in NAMED.findall(path.read_text(encoding="utf-8")):
            for name in ID.findall(call):
                found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    for path in (ROOT / "tests/cases").rglob("given.yaml"):
        for line in re.findall(r"(?m)^#?\s*case: (.*)$", path.read_text(encoding="utf-8")):
            for name in ID.findall(line):
                found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


def main() -> int:
    """Print what lacks a test; with --check fail on ids that nobody knows."""
    ids, tests = known(), named()
    strange = sorted(set(tests) - set(ids))
    for name in strange:
        print(f"unknown id {name} in {', '.join(sorted(tests[name]))}")
    if "--check" in sys.argv:
        return 1 if strange else 0
    missing = [name for name in ids if name not in tests]
    for name in missing:
        print(f"{name}  {ids[name]}")
    print(f"{len(ids) - len(missing)} of {len(ids)} ids have a test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
