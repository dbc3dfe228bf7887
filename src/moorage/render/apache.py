"""Apache httpd configuration text that the real server reads back byte for byte.

Enters: names and values. Leaves: lines. It must never write a value that reads back as another one, nor one that becomes a second
directive: what cannot be written is refused, and an empty value always is. It knows no directive by name.
Source: httpd `ap_getword_conf` and `ap_resolve_env`, proven by tests/render/test_apache.py on the real server; cases B18, C12.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

Lines: TypeAlias = tuple[str, ...]

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BARE: Final = re.compile(r"[A-Za-z0-9_./:,=%!-]+")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_EXPANDED: Final = "${"
_DOLLAR: Final = "MOORAGE_DOLLAR"
PREAMBLE: Final[Lines] = (f'Define {_DOLLAR} "$"',)
"""What must stand before the first `exact` value."""


class UnsafeText(ValueError):
    """A value that cannot be written so that it reads back; its directive is named, the value never."""

    def __init__(self, directive: str, why: str) -> None:
        self.directive, self.why = directive, why
        super().__init__(f"{directive}: a value {why}")


def directive(name: str, *values: str) -> str:
    """One line: the directive and its arguments, each one word whatever it holds.

    Raises:
        UnsafeText: a value is empty, holds a control character, or `${`, which httpd would expand.
    """
    return " ".join([_named(name), *(_word(name, value) for value in values)])


def exact(name: str, *values: str) -> str:
    """Like `directive`, for values that may hold `${`: it is written so that httpd puts a dollar sign there and looks no further.

    Only for directives that take words. One that takes the raw line (Require, RequestHeader, ProxyPass, a section) is expanded twice, and
    that would expand the variable after all. PREAMBLE must stand before.

    Raises:
        UnsafeText: a value is empty or holds a control character.
    """
    return " ".join(
        [_named(name), *(_quoted(_checked(name, value)).replace("${", f"${{{_DOLLAR}}}{{") for value in values)]
    )


def section(name: str, argument: str, lines: Iterable[str]) -> Lines:
    """`<Name "argument">`, the lines indented, `</Name>`.

    Raises:
        UnsafeText: the argument cannot be written.
    """
    return (f"<{_named(name)} {_word(name, argument)}>", *(f"    {line}" for line in lines), f"</{name}>")


def text(blocks: Sequence[Sequence[str]]) -> str:
    """The file: blocks of lines with a blank line between them; empty blocks leave nothing."""
    return "\n".join("\n".join(block) + "\n" for block in blocks if block)


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UnsafeText(name.encode("unicode_escape").decode(), "follows what is no directive name")
    return name


def _word(name: str, value: str) -> str:
    if _EXPANDED in _checked(name, value):
        raise UnsafeText(name, "holds ${, which httpd would expand")
    return value if _BARE.fullmatch(value) else _quoted(value)


def _checked(name: str, value: str) -> str:
    if not value:
        raise UnsafeText(name, "is empty")
    if _CONTROL.search(value):
        raise UnsafeText(name, "holds a control character")
    return value


def _quoted(value: str) -> str:
    r"""In double quotes; httpd undoes `\\` and `\"` there and nothing else."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
