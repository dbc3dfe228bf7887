"""Case folders of the kind Keystone: `given.yaml` goes in, `want/` comes out, one file a thing.

`--update-cases` writes `want/` anew, to be reviewed as a diff.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.keystone.service import given

ROOT = Path(__file__).parents[2] / "cases" / "keystone-service"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def text(value: Any) -> str:
    """YAML in the order given."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=150)


def cases(door: str) -> list[Any]:
    """One parameter for each folder of a door; `case:` in given.yaml names what it proves."""
    found = []
    for folder in sorted((ROOT / door).iterdir()):
        ids = str(given.load(folder / "given.yaml").get("case", "")).replace(",", " ").split()
        found.append(pytest.param(folder, id=folder.name, marks=[pytest.mark.case(item) for item in ids]))
    return found


def compare(folder: Path, got: Mapping[str, str], *, update: bool) -> None:
    """`want/` holds exactly these files."""
    want = folder / "want"
    if update:
        want.mkdir(exist_ok=True)
        for stale in [item for item in want.iterdir() if item.name not in got]:
            stale.unlink()
        for name, content in got.items():
            (want / name).write_text(content)
    assert {item.name: item.read_text() for item in sorted(want.iterdir())} == dict(sorted(got.items()))
