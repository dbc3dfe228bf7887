"""docs/reference is complete, judged by the code that runs and not by the code that writes the pages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from moorage.cli import COMMANDS, build
from moorage.cli.systems import KINDS
from moorage.runtime.metrics import Metrics

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "moorage"
ANSWERS = {
    "Waiting": 0,
    "Stalled": 0,
    "Failed": 0,
    "true": 1,
    "false": 1,
    "Event": 1,
    "warn": 0,
    "tell": 0,
    "Condition": 2,
    "Pending": 0,
}
"""Calls that carry a reason which people see, and which positional argument it is. The code of a Fault is seen by nobody: its sentence is."""


def page(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text()


def everything() -> str:
    return "\n".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))


def _fields(node: dict[str, Any], path: str) -> Iterator[str]:
    for name, child in (node.get("properties") or {}).items():
        yield f"{path}.{name}"
        yield from _fields(child, f"{path}.{name}")
        yield from _fields(child.get("items") or {}, f"{path}.{name}[]")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_field_of_a_kind_is_described(kind: Any) -> None:
    """Each path stands in the page of its kind, and no field is without a sentence."""
    schema, text = kind.schema(), page(f"{kind.kind.lower()}.md")
    fields = [path for part in ("spec", "status") for path in _fields(schema["properties"][part], part)]
    assert len(fields) > 20
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert [path for path in fields if path not in rows] == []
    assert [path for path in fields if rows[path].split("|")[-2].strip() == ""] == []


def _reasons(folder: Path) -> Iterator[tuple[str, str]]:
    """Every reason that stands as a literal in a call of ANSWERS or in an event's tuple, with its place."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            yield from ((found, f"{path.name}:{node.lineno}") for value in _given(node) for found in _literals(value))


def _given(node: ast.AST) -> list[ast.expr]:
    """The expressions that stand for a reason."""
    if isinstance(node, ast.Tuple) and len(node.elts) == 3 and {*_literals(node.elts[0])} & {"Normal", "Warning"}:
        return [node.elts[1]]
    if not isinstance(node, ast.Call):
        return []
    called = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if called == "Left":  # carries the code of a Fault
        return []
    place = ANSWERS.get(called)
    given = [node.args[place]] if place is not None and len(node.args) > place else []
    return given + [keyword.value for keyword in node.keywords if keyword.arg == "reason"]


def _literals(value: ast.expr) -> Iterator[str]:
    """Names in CamelCase; parts of longer texts are none."""
    parts = {id(part) for text in ast.walk(value) if isinstance(text, ast.JoinedStr) for part in ast.walk(text)}
    for part in ast.walk(value):
        text = part.value if isinstance(part, ast.Constant) and id(part) not in parts else None
        if isinstance(text, str) and text[:1].isupper() and text.isalnum():
            yield text


@pytest.mark.parametrize("folder", ["keystone", "node"])
def test_every_reason_and_event_in_the_code_is_listed(folder: str) -> None:
    """Conditions, outcomes and events; found in the source, so that a new one cannot be forgotten."""
    text = everything()
    found = dict(_reasons(SOURCE / folder))
    assert len(found) > 8
    assert {reason: place for reason, place in found.items() if f"`{reason}`" not in text} == {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_declared_condition_has_all_its_reasons(kind: Any) -> None:
    """The report module's own tables."""
    report = pytest.importorskip(f"{kind.model.__module__.rpartition('.')[0]}.report", reason="a kind without a room")
    text = page(f"{kind.kind.lower()}.md")
    words = [*report.REASONS, *(reason for reasons in report.REASONS.values() for reason in reasons), *report.EVENTS]
    assert [word for word in words if word not in text] == []


def test_every_command_and_option_is_described() -> None:
    """Each command has its help in the page, options and examples included."""
    text = page("commands.md")
    missing = []
    for name, command in _commands(build()):
        options = [
            option
            for item in command.params
            for option in (*item.opts, *item.secondary_opts)
            if option.startswith("--")
        ]
        missing += [f"{name} {option}" for option in ("Example:", *options) if option not in _section(text, name)]
    assert missing == []


def _commands(tree: click.Group) -> Iterator[tuple[str, Any]]:
    """Every command with the words that call it; a group is its commands."""
    for name in COMMANDS:
        command = tree.get_command(click.Context(tree), name)
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {word}", item) for word, item in inner.items()) if inner else [(name, command)]


def _section(text: str, command: str) -> str:
    return text.partition(f"## moorage {command}\n")[2].partition("\n## moorage ")[0]


def test_every_metric_that_the_operator_shows_is_described() -> None:
    """By the exposition itself, not by the declarations."""
    text = page("metrics.md")
    shown = [line.split()[2] for line in Metrics().text().decode().splitlines() if line.startswith("# TYPE")]
    ours = [name for name in shown if not name.startswith(("python_", "process_")) and not name.endswith("_created")]
    assert len(ours) > 10
    assert [name for name in ours if f"`{name}`" not in text] == []
