"""Functions as commands: what people type, and what the function is given."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner

from moorage.cli.signature import Argument, Option, command_of, group_of


class Colour(enum.StrEnum):
    red = "red"
    blue = "blue"


given: list[Any] = []


def paint(
    files: Annotated[list[str], Argument(help="What is painted.")],
    colour: Annotated[Colour, Option("--colour", "-c", help="Which.")] = Colour.red,
    coats: Annotated[int, Option(min=1, max=3, help="How many.")] = 1,
    out: Annotated[Path | None, Option("--out", help="Where to.")] = None,
    only: Annotated[list[str] | None, Option("--only", help="Some of it.")] = None,
    dry: Annotated[bool, Option("--dry/--no-dry", help="Waits.")] = True,
    loud: Annotated[bool, Option("--loud", "-l", help="Says so.")] = False,
    by: Annotated[str, Option("--by", metavar="NAME", help="Who.")] = "",
) -> None:
    """Paint files.

    Example:  paint boat
    """
    given.append((files, colour, coats, out, only or None, dry, loud, by))


def typed(*words: str) -> Any:
    """What the function was given, or what was said instead."""
    given.clear()
    done = CliRunner().invoke(command_of(paint, "paint"), words)
    return given[0] if given else done.output


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("boat",), (["boat"], Colour.red, 1, None, None, True, False, "")),
        (("a", "b", "-c", "blue", "-l"), (["a", "b"], Colour.blue, 1, None, None, True, True, "")),
        (("a", "--coats", "3", "--out", "x/y", "--no-dry"), (["a"], Colour.red, 3, Path("x/y"), None, False, False, "")),
        (("a", "--only", "hull", "--only", "mast", "--by", "me"), (["a"], Colour.red, 1, None, ["hull", "mast"], True, False, "me")),
    ],
)  # fmt: skip
def test_a_call_reaches_the_function_with_typed_values(words: tuple[str, ...], wanted: tuple[Any, ...]) -> None:
    """Lists, numbers, paths, words of a set and flags."""
    assert typed(*words) == wanted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing argument 'FILES...'"),
        (("a", "--coats", "4"), "4 is not in the range 1<=x<=3"),
        (("a", "-c", "green"), "'green' is not one of 'red', 'blue'"),
    ],
)
def test_a_call_that_does_not_fit_is_told_why(words: tuple[str, ...], said: str) -> None:
    """In one sentence."""
    assert said in typed(*words)


def test_help_is_the_docstring_with_what_stands_beside_the_parameters() -> None:
    """Names, what is expected, what it means."""
    text = typed("--help")
    for part in (
        "Paint files.",
        "Example:  paint boat",
        "What is painted.",
        "--by NAME",
        "--dry / --no-dry",
        "-c, --colour [red|blue]",
    ):
        assert part in text


def test_a_group_holds_commands_by_their_words() -> None:
    """And has a help of its own."""
    group = group_of("Work on a boat.", {"paint": paint})
    given.clear()
    CliRunner().invoke(group, ["paint", "boat"])
    assert given[0][0] == ["boat"]
    assert "Work on a boat." in CliRunner().invoke(group, ["--help"]).output
