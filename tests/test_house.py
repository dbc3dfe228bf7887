"""The house keeps its shape: the same doors in every kind, names that say something, files of a size to read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "moorage"
DECLARED = tuple(SOURCE / "pocketid" / name for name in ("instance", "oidcclient", "usergroup", "user", "api"))
KINDS = (SOURCE / "keystone" / "service", SOURCE / "keystone" / "backend")
DOORS = ("types.py", "admission.py", "observe.py", "decide.py", "render.py", "apply.py", "report.py")
FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda path: path.name)
def test_every_kind_has_the_same_doors(kind: Path) -> None:
    """Learning one kind teaches all."""
    assert [name for name in DOORS if not (kind / name).exists()] == []


@pytest.mark.parametrize("kind", DECLARED, ids=lambda path: path.name)
def test_every_declared_kind_has_its_declaration_and_its_judge(kind: Path) -> None:
    """A kind whose room renders nothing has no render door; these two it always has."""
    assert [name for name in DOORS[:2] if not (kind / name).exists()] == []


def test_no_file_has_a_name_that_explains_nothing() -> None:
    """The field's words, not leftovers."""
    bad = re.compile(r"(^|_)(utils?|helpers?|common|misc|managers?)(_|\.py$)")
    assert [path.name for path in FILES if bad.search(path.name)] == []


def test_files_are_of_a_size_to_read() -> None:
    """About 350 lines is the aim; beyond 400 a file is two."""
    long = {str(path.relative_to(SOURCE)): path.read_text().count("\n") for path in FILES}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}


def test_nothing_is_left_to_do() -> None:
    """No promise in a comment takes the place of code."""
    left = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
    assert [str(path) for path in FILES if left.search(path.read_text())] == []


def test_functions_take_few_parameters() -> None:
    """Beyond six, make a noun; commands of the command line take what a person may say."""
    many = []
    for path in FILES:
        if path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(_parameters(node)) > 8:
                many.append(f"{path.relative_to(SOURCE)}:{node.name}")
    # schema.field mirrors the vocabulary of OpenAPI: one keyword for each bound
    assert many in ([], ["schema/model.py:field"])


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [item.arg for item in given if item.arg not in ("self", "cls")]


def test_every_module_says_what_it_is() -> None:
    """A docstring at the top of each file."""
    silent = [str(path.relative_to(SOURCE)) for path in FILES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []
