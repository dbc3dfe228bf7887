"""Case folders: `given.yaml` says what goes in, `want/` holds what comes out, one file a thing.

Enters: the folders of a door and file texts. Leaves: parameters, or a comparison; with `--update-cases` the `want/` folder is
written anew, to be reviewed as a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

CASES = Path(__file__).parents[1] / "cases"
"""Each worker reads all of them, some twice: by libyaml, which takes a tenth of the time."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def text(value: Any) -> str:
    """YAML with keys in the order given, so that a diff shows what changed."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=150)


def plain(path: Path) -> dict[str, Any]:
    """The input of a case that stands whole in its file."""
    found: dict[str, Any] = yaml.load(path.read_text(), yaml.CSafeLoader)
    return found


def cases(doors: Path, load: Callable[[Path], Mapping[str, Any]] = plain) -> list[Any]:
    """One parameter for each folder of a door, with the marks that its `case:` names."""
    found = []
    for folder in sorted(doors.iterdir()):
        ids = str(load(folder / "given.yaml").get("case", "")).replace(",", " ").split()
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
