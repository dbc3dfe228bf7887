"""Commands from functions: what stands beside the types of a function's parameters says how people give them.

Enters: a function with `Annotated` parameters. Leaves: a click command with the same parameters; its help is the docstring.
"""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import click


class Argument(NamedTuple):
    """A parameter that is given by its place."""

    help: str
    metavar: str | None = None


class Option:
    """A parameter that is given by name: `names` as people type them, `--on/--off` for both; without any, the parameter's own."""

    def __init__(
        self, *names: str, help: str, metavar: str | None = None, min: int | None = None, max: int | None = None
    ) -> None:
        self.names, self.help, self.metavar = names, help, metavar
        self.bounds = {"min": min, "max": max}


def command_of(function: Callable[..., None], name: str) -> click.Command:
    """The command that calls this function."""
    hints = get_type_hints(function, include_extras=True)
    declared = inspect.signature(function).parameters.values()
    params = [_parameter(one.name, hints[one.name], one.default) for one in declared]
    return click.Command(name, params=params, callback=function, help=inspect.getdoc(function))


def group_of(says: str, functions: dict[str, Callable[..., None]]) -> click.Group:
    """Commands under one word, by their own words."""
    commands = {name: command_of(function, name) for name, function in functions.items()}
    return click.Group(commands=commands, help=inspect.cleandoc(says), no_args_is_help=True)


def _parameter(name: str, hint: Any, default: Any) -> click.Parameter:
    assert get_origin(hint) is Annotated, f"{name} says not how it is given"
    type_, mark = get_args(hint)
    plain = _without_none(type_)
    is_list = get_origin(plain) is list
    wanted: dict[str, Any] = {"help": mark.help, "metavar": mark.metavar}
    if is_list:
        plain = get_args(plain)[0]
        wanted["callback"] = lambda _context, _parameter, value: list(value)
    if default is not inspect.Parameter.empty:
        wanted |= {"default": default, "show_default": default != ""}
    if isinstance(mark, Argument):
        return click.Argument([name], type=_click_type(plain), nargs=-1 if is_list else 1, required=True, **wanted)
    if plain is bool:
        wanted["is_flag"] = True
    else:
        wanted |= {"type": _click_type(plain, **mark.bounds), "multiple": is_list, "required": "default" not in wanted}
    return click.Option([*(mark.names or [f"--{name.replace('_', '-')}"]), name], **wanted)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    return next(member for member in get_args(hint) if member is not type(None))


def _click_type(type_: type, min: int | None = None, max: int | None = None) -> click.ParamType[Any]:
    if issubclass(type_, enum.Enum):
        return click.Choice(type_)
    if issubclass(type_, Path):
        return click.Path(path_type=Path)
    if issubclass(type_, int):
        return click.IntRange(min, max)
    return click.STRING
