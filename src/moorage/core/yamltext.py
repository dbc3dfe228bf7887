"""YAML as Kubernetes reads it, from people and strangers alike.

Enters: text. Leaves: plain values. Plain words are what kubectl makes of them (`y` is true, `1e3` a number, `1:30` text), times stay text, keys become
text, merge keys work, tags of other types are refused. It must not be made to work for hours by a few hundred
bytes: aliases that multiply, aliases to themselves and endless numbers are refused before anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from moorage.core.jsonpairs import mended

NODES: Final = 1_000_000
"""Values that one document may hold once its aliases are written out."""
_DIGITS: Final = 400
_DEPTH: Final = 200
_MAP, _MERGE, _NULL = (f"tag:yaml.org,2002:{name}" for name in ("map", "merge", "null"))
_BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))
_KNOWN = {_NULL, "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", None}
_TRUE, _FALSE = ("y", "yes", "true", "on"), ("n", "no", "false", "off")
_WORDS = [form for word in (*_TRUE, *_FALSE) for form in dict.fromkeys((word, word.title(), word.upper()))]
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable(ValueError):
    """Text that is no YAML, or YAML that is refused; line and column count from 1, 0 when they are not known."""

    def __init__(self, why: str, line: int = 0, column: int = 0) -> None:
        super().__init__(why)
        self.why, self.line, self.column = why, line, column


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader; notes the keys that a mapping repeats."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self.repeated: list[str] = []
        self.first_repeat: Unreadable | None = None

    def construct_noted(self, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
        made: dict[str, Any] = {}
        yield made
        own = sum(key.tag != _MERGE for key, _ in node.value)
        self.flatten_mapping(node)  # puts what is merged in front of what is written
        inherited, written = len(node.value) - own, set()
        for position, (key_node, value_node) in enumerate(node.value):
            name = _as_text(self.construct_object(key_node, deep=True))
            if name in written:
                self._note(name, key_node)
            if position >= inherited:
                written.add(name)
            made[name] = self.construct_object(value_node, deep=True)

    def construct_truth(self, node: yaml.ScalarNode) -> bool:
        if node.value not in _WORDS:
            raise _at(node, f"{node.value!r} is neither true nor false")
        return node.value.lower() in _TRUE

    def construct_number(self, node: yaml.ScalarNode) -> float:
        """A float without a fraction is written as an integer in JSON."""
        try:
            found: float = (self.construct_yaml_int if node.tag == _INT else self.construct_yaml_float)(node)
        except ValueError:
            raise _at(node, f"{node.value!r} is no number") from None
        return int(found) if found == found // 1 and abs(found) < 2**63 else found

    def _note(self, name: str, node: yaml.Node) -> None:
        self.repeated.append(f'line {node.start_mark.line + 1}: key "{name}" already set in map')
        if self.first_repeat is None:
            self.first_repeat = _at(node, f"key {name!r} is given twice")


_Loader.yaml_constructors = {
    **{tag: made for tag, made in _Base.yaml_constructors.items() if tag in _KNOWN},
    _MAP: _Loader.construct_noted,
    _BOOL: _Loader.construct_truth,
    _INT: _Loader.construct_number,
    _FLOAT: _Loader.construct_number,
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag in (_NULL, _MERGE)]
    for first, forms in _Base.yaml_implicit_resolvers.items()
}
_NUMERIC = [*"-+.0123456789"]
for _tag, _form, _firsts in (
    (_BOOL, "|".join(_WORDS), [*"yYnNtTfFoO"]),
    (_INT, "[-+]?(0b[01_]+|0[oO]?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", _NUMERIC),
    (
        _FLOAT,
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        _NUMERIC,
    ),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"^(?:{_form})$"), _firsts)


def load_all(text: str) -> Iterator[Any]:
    """The documents of a stream, one after the other; a key that is given twice is refused. JSON may escape characters in pairs.

    Raises:
        Unreadable: with the place where it is known.
    """
    readable = mended(text)
    try:
        yield from _all(readable.text)
    except Unreadable as error:
        raise Unreadable(error.why, error.line, readable.column(error.line, error.column)) from error


def _all(text: str) -> Iterator[Any]:
    loader = _Loader(text)
    try:
        while (node := _next(loader)) is not None:
            value = _construct(loader, node)
            if loader.first_repeat is not None:
                raise loader.first_repeat
            yield value
    finally:
        loader.dispose()


def load(text: str | bytes, repeated: list[str]) -> Any:
    """The one document of a body; `repeated` gets a sentence for each key that a mapping repeats, of which the last one counts.

    Raises:
        Unreadable: no YAML, or more than one document.
    """
    loader = _Loader(text)
    try:
        node = _next(loader)
        value = None if node is None else _construct(loader, node)
        if _next(loader) is not None:
            raise Unreadable("more than one document")
    finally:
        loader.dispose()
    repeated += loader.repeated
    return value


def _next(loader: _Loader) -> yaml.Node | None:
    try:
        return loader.get_node() if loader.check_node() else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Unreadable(error.problem or "no YAML", *((mark.line + 1, mark.column + 1) if mark else ())) from error
    except yaml.reader.ReaderError as error:
        raise Unreadable(f"character #x{_code(error.character):04x} is not allowed") from error
    except RecursionError:
        raise Unreadable("nested too deeply") from None


def _code(character: Any) -> int:
    return character if isinstance(character, int) else ord(character)


def _construct(loader: _Loader, node: yaml.Node) -> Any:
    _measure(node, {}, 0)
    try:
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Unreadable(error.problem or "no YAML", *((mark.line + 1, mark.column + 1) if mark else ())) from error
    except Unreadable:
        raise
    except ValueError as error:
        raise _at(node, str(error)) from error


def _measure(node: yaml.Node, known: dict[int, int], depth: int) -> int:
    """Values below a node once aliases are written out.

    Raises:
        Unreadable: an alias to itself, too many values, too deep, or a number without end.
    """
    if id(node) in known:
        if known[id(node)] < 0:
            raise _at(node, "an alias refers to itself")
        return known[id(node)]
    if depth > _DEPTH:
        raise _at(node, f"nested more than {_DEPTH} deep")
    known[id(node)] = -1
    total = 1
    for child in _children(node):
        total += _measure(child, known, depth + 1)
        if total > NODES:
            raise _at(node, f"excessive aliasing: more than {NODES} values once aliases are written out")
    if node.tag == _INT and len(node.value) > _DIGITS:
        raise _at(node, f"a number of {len(node.value)} digits")
    known[id(node)] = total
    return total


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _at(node: yaml.Node, why: str) -> Unreadable:
    return Unreadable(why, node.start_mark.line + 1, node.start_mark.column + 1)


def _as_text(key: Any) -> str:
    """Keys of JSON are text: what YAML reads as a number or a truth value is written as JSON would."""
    if isinstance(key, bool):
        return str(key).lower()
    return key if isinstance(key, str) else str(key)
