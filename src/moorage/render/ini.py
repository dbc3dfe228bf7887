"""INI text that the real oslo.config reads back byte for byte.

Enters: sections of keys and values. Leaves: text, sorted, one `key = value` a line. It must never write a value that
reads back as another one: what cannot be written is refused. Source: decisions Keystone 6 and 7, case B02.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

IniSection: TypeAlias = Mapping[str, str | Sequence[str]]
"""Keys of one section; a sequence is a multi-valued option, one line a value."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NAME: Final = re.compile(
    r"[^\s\[\]=:#;\x00-\x1f\x7f-\x9f](?:[^\[\]=:\x00-\x1f\x7f-\x9f]*[^\s\[\]=:\x00-\x1f\x7f-\x9f])?"
)
_QUOTES: Final = frozenset("\"'")


class UnsafeValue(ValueError):
    """A value, key or section name that cannot be written so that it reads back; it is named, never printed."""

    def __init__(self, section: str, key: str) -> None:
        self.section, self.key = section, key
        super().__init__(f"[{section}] {key}: control characters cannot be written to a configuration file")


def render_ini(sections: Mapping[str, IniSection]) -> str:
    """The file, sections and keys sorted; "" when there is nothing to say.

    Raises:
        UnsafeValue: a value holds a control character, or a name could be read as something else.
    """
    return "\n".join(_section(name, sections[name]) for name in sorted(sections))


def _section(name: str, keys: IniSection) -> str:
    if not _is_name(name):
        raise UnsafeValue(_shown(name), "")
    lines = [f"[{name}]"]
    for key in sorted(keys):
        if not _is_name(key):
            raise UnsafeValue(name, _shown(key))
        value = keys[key]
        for item in (value,) if isinstance(value, str) else value:
            lines.append(f"{key} = {encode(item, name, key)}".rstrip(" "))
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=1024)
def _is_name(name: str) -> bool:
    """Names of options are the same few for thousands of files; values, which may be secrets, are never kept."""
    return _NAME.fullmatch(name) is not None


def _shown(name: str) -> str:
    return name.encode("unicode_escape").decode()


def encode(value: str, section: str = "", key: str = "") -> str:
    """One value as it stands after `key = `.

    Raises:
        UnsafeValue: it holds a control character or a line separator.
    """
    if not value.isprintable() and _CONTROL.search(value):  # what is printable holds none of these, and is told at once
        raise UnsafeValue(section, key)
    escaped = value.replace("$", r"\$")
    return f'"{escaped}"' if _needs_quotes(value) else escaped


def _needs_quotes(value: str) -> bool:
    return value != value.strip() or (value[:1] in _QUOTES and value[:1] == value[-1:])
