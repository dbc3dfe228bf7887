"""An export as text: YAML that every reader of YAML takes for the same, with notes above it.

Enters: an Export. Leaves: lines. Pure. Names come from a server: none of them ends a comment, turns a line around on a terminal, or is read as
anything but text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from moorage.cli.pocketid_export import WORDS, Export
from moorage.cli.printable import printable
from moorage.core.meta import JsonObject

_AMBIGUOUS: Final = re.compile(r"[yYnN]|[-+]?(\d[\d_]*(\.\d*)?([eE][-+]?\d+)?|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+)")
"""Texts that some reader of YAML takes for a number or a truth value: kubectl reads a member `n`, as RSA keys have one, as `false`."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - signature of the base class
        return True


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "'" if _AMBIGUOUS.fullmatch(text) else None)


_Dumper.add_representer(str, _represent)


def manifests_text(found: Export) -> str:
    """Notes as comments, then one document a manifest."""
    head = "".join(f"# {printable(note)}\n" for note in notes(found))
    return head + "---\n".join(_document(item) for item in found.items)


def _document(item: JsonObject) -> str:
    """Letters as they are, unless one of them would not be seen, or would move others."""
    text: str = yaml.dump(item, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    if all(printable(line) == line for line in text.splitlines()):
        return text
    return str(yaml.dump(item, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=120))


def notes(found: Export) -> Iterator[str]:
    """What a person should know before applying it."""
    yield f"exported: {_counted(found)}"
    for needed in found.needed:
        yield f"make first: {needed}"
    for item in found.left_out:
        yield f"left out: {item}"
    if found.skipped:
        yield f"skipped: {len(found.skipped)} that a resource or the directory declares already"


def _counted(found: Export) -> str:
    kinds = [item["kind"] for item in found.items]
    parts = ((kinds.count(kind), word) for kind, word in WORDS.items())
    return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in parts)
