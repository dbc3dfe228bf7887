"""Objects as CEL rules see them: escaped names, numbers of the declared type, only the metadata that rules may read.

Enters: a Node and a value. Leaves: a JSON-like value for the engine; the value itself where nothing has to change.
Source: Kubernetes documentation, "Validation rules" (escaping, types).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from .listtypes import has_lists, key_of
from .node import Node

_RESERVED: Final = frozenset([
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
    "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
])  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARTS: Final = {".": "__dot__", "-": "__dash__", "/": "__slash__"}
_META: Final = ("name", "generateName")
RUNTIME: Final = {"date-time": "timestamp", "date": "timestamp", "duration": "duration", "byte": "__bytes"}
"""Formats of text that rules see as another type -> the conversion."""


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """The property name as a rule writes it; None when no rule can name it."""
    if name in _RESERVED:
        return f"__{name}__"
    text = name.replace("__", "__underscores__")
    text = "".join(_PARTS.get(char, char) for char in text)
    return text if _NAME.fullmatch(text) else None


def spellings(name: str) -> tuple[str, ...]:
    """All ways in which a rule may write a property name. Reserved words that CEL takes after a dot stand for themselves, too:
    kube-apiserver 1.36.3 knows `self.namespace` beside `self.__namespace__`.
    """
    escaped = escape(name)
    if escaped is None:
        return ()
    return (escaped, name) if name in _RESERVED else (escaped,)


def is_plain(node: Node, seen: frozenset[int] = frozenset()) -> bool:
    """Whether values of the node go to the engine as they are; remembered on the node."""
    if id(node) in seen:
        return True
    if "raw" not in node.cache:
        inner = seen | {id(node)}
        changed = node.type in ("number", "integer") or node.embedded or node.format == "date"
        changed = changed or any(escape(name) != name for name in node.properties)
        node.cache["raw"] = not changed and all(is_plain(child, inner) for child in node.children())
    return bool(node.cache["raw"])


def has_converted(node: Node, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a time, duration or bytes field stands anywhere below; remembered on the node."""
    if id(node) in seen:
        return False
    if "converted" not in node.cache:
        inner = seen | {id(node)}
        here = node.type == "string" and node.format in RUNTIME
        node.cache["converted"] = here or any(has_converted(child, inner) for child in node.children())
    return bool(node.cache["converted"])


def view(node: Node, value: Any, *, resource: bool = False) -> Any:
    """The value as a rule at this node sees it."""
    if not resource and is_plain(node):
        return value
    kind = type(value)
    if kind is dict:
        return _object_view(node, value, resource or node.embedded)
    if kind is list and node.items is not None:
        return [view(node.items, item) for item in value]
    if node.type == "number" and kind is int:
        return float(value)
    if node.type == "integer" and kind is float:
        return int(value)
    if node.format == "date" and kind is str:
        return f"{value}T00:00:00Z"
    return value


def _object_view(node: Node, value: dict[str, Any], resource: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in value.items():
        if resource and key == "metadata":
            made[key] = {name: item[name] for name in _META if name in item} if type(item) is dict else {}
            continue
        child = node.properties.get(key)
        if child is not None:
            made |= dict.fromkeys(spellings(key), view(child, item))
        elif node.additional is not None:
            made[key] = view(node.additional, item)
        elif resource and key in ("apiVersion", "kind"):
            made[key] = item
    return made


def aligned(node: Node, old: Any, new: Any) -> Any:
    """The stored value with sets and list maps in the order of the new one: order does not count when comparing them."""
    if not has_lists(node):
        return old
    if type(old) is dict and type(new) is dict:
        return {
            key: aligned(child, item, new[key]) if key in new and (child := node.child(key)) is not None else item
            for key, item in old.items()
        }
    if type(old) is not list or type(new) is not list or node.items is None:
        return old
    if node.list_type not in ("set", "map"):
        return old
    return _aligned_list(node, old, new)


def _aligned_list(node: Node, old: list[Any], new: list[Any]) -> list[Any]:
    place = {key_of(node, item): at for at, item in reversed(list(enumerate(new)))}
    ordered = sorted(old, key=lambda item: place.get(key_of(node, item), len(new)))
    assert node.items is not None
    return [
        aligned(node.items, item, new[place[key]]) if (key := key_of(node, item)) in place else item for item in ordered
    ]
