"""Case folders: `given.yaml` says what goes in, `want/` holds what comes out, one file a thing.

Enters: a door's folder and a function from `given` to file texts. Leaves: a comparison, or with `--update-cases` the
`want/` folder written anew, to be reviewed as a diff.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2] / "cases" / "keystone-backend"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def text(value: Any) -> str:
    """YAML with keys in the order given, so that a diff shows what changed."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=150)


def cases(door: str) -> list[Any]:
    """One parameter for each folder of a door, with the marks that its `case:` names."""
    return [
        pytest.param(folder, id=folder.name, marks=[pytest.mark.case(item) for item in ids(folder)])
        for folder in sorted((ROOT / door).iterdir())
    ]


def ids(folder: Path) -> list[str]:
    """What a case proves."""
    return str(given(folder).get("case", "")).replace(",", " ").split()


def given(folder: Path) -> dict[str, Any]:
    """The input of a case."""
    found: dict[str, Any] = yaml.safe_load((folder / "given.yaml").read_text())
    return found


def compare(folder: Path, got: Mapping[str, str], *, update: bool) -> None:
    """Compare what came out with `want/`, file by file."""
    want = folder / "want"
    if update:
        want.mkdir(exist_ok=True)
        for stale in [item for item in want.iterdir() if item.name not in got]:
            stale.unlink()
        for name, content in got.items():
            (want / name).write_text(content)
    assert {item.name: item.read_text() for item in sorted(want.iterdir())} == dict(sorted(got.items()))
