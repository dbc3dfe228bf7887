"""Ids of field reports, decisions and seed items that no test names.

`tests/cases/ids.txt` lists the ids that apply to what is built, one a line with its sentence; a test names an id by
`@pytest.mark.case("B09")` or a case folder by `case: B09` in its given.yaml. `--check` refuses a test that names an unknown id, and demands the lists
of spec/pocketid.md 7.1 and 7.2 whole: every id there is known, named by a test, and named by one that walks the runtime against real HTTP.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"mark\.case\(([^)]*)\)")
ID = re.compile(r"[A-Z]+[0-9]+(?:\.[0-9]+)*")
WHOLE = {
    "PIDS": 22,
    "PIDD": 10,
    "PIDR": 16,
    "PIDC": 12,
    "PIDG": 6,
    "PIDL": 12,
    "PIDP": 1,
    "PIDA": 9,
    "PIDF": 6,
    "PIDX": 20,
}
"""How far the spec counts, by letter; X are the cases of 7.2 in their order."""
WALKS = re.compile(r"^from \.scene import|^from tests\.e2e\.pocketid", re.MULTILINE)
"""A test of Pocket-ID that walks stands on a scene: an API server, a fake Pocket-ID, rooms under the runtime."""


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


def walked(tests: dict[str, set[str]]) -> set[str]:
    """Ids that are named by an asynchronous test in a file that stands on a scene; what a file does beside that does not count."""
    files = {ROOT / path for paths in tests.values() for path in paths if path.endswith(".py")}
    texts = [text for file in files if WALKS.search(text := file.read_text(encoding="utf-8"))]
    return {name for text in texts for name in _named_by_walks(text)}


def _named_by_walks(text: str) -> Iterator[str]:
    """What stands as decorator above an asynchronous test, or as mark of the whole file; two blank lines part what a file defines."""
    for part in text.split("\n\n\n"):
        above, walks, _ = f"\n{part}".partition("\nasync def ")
        if walks or "\npytestmark" in above:
            for call in NAMED.findall(above):
                yield from ID.findall(call)


def demanded(ids: dict[str, str], tests: dict[str, set[str]]) -> list[str]:
    """What is missing of the lists that must be whole, a line each."""
    found, walks = [], walked(tests)
    for name in (f"{letter}{number}" for letter, last in WHOLE.items() for number in range(1, last + 1)):
        if name not in ids:
            found.append(f"{name} of spec/pocketid.md is not in tests/cases/ids.txt")
        elif not tests.get(name):
            found.append(f"{name} has no test: {ids[name]}")
        elif name not in walks:
            found.append(f"{name} has no test that walks: {ids[name]}")
    return found


def main() -> int:
    """Print what lacks a test; with --check fail on ids that nobody knows, and on gaps in lists that must be whole."""
    ids, tests = known(), named()
    strange = sorted(set(tests) - set(ids))
    for name in strange:
        print(f"unknown id {name} in {', '.join(sorted(tests[name]))}")
    gaps = demanded(ids, tests)
    for gap in gaps:
        print(gap)
    if "--check" in sys.argv:
        return 1 if strange or gaps else 0
    missing = [name for name in ids if name not in tests]
    for name in missing:
        print(f"{name}  {ids[name]}")
    print(f"{len(ids) - len(missing)} of {len(ids)} ids have a test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
