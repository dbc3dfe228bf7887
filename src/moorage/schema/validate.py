"""Structural validation: types, bounds, formats, required fields, and what stays as it was.

Enters: a Node, a value, its stored form. Leaves: complaints, apart from them those about values that were stored
already and did not change (ratcheting; spec/embedded.md, Points 4). It changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from .bounds import checks_of
from .fielderror import FieldError, invalid, required, type_invalid
from .fieldpath import Path, path_text
from .formats import CHECKED_FORMATS, QUANTITY
from .listtypes import key_of
from .node import MISSING, Node
from .sameness import same

_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}

_GO_NAMES: Final = {int: "int64", float: "float64"}
_NAMED_FORMATS: Final = (CHECKED_FORMATS - {QUANTITY}) | {"double", "password"}


@dataclass(slots=True)
class Findings:
    """What a walk found: errors, and errors that ratcheting forgives."""

    errors: list[FieldError] = field(default_factory=list)
    ratcheted: list[FieldError] = field(default_factory=list)


def validate(node: Node, value: Any, old: Any, path: Path, found: Findings) -> None:
    """Check `value` and all below it. `old` is the stored value at the same place, or MISSING."""
    kind = type(value)
    if node.plain and kind in node.kinds:
        return
    before = len(found.errors)
    if value is None:
        _check_null(node, path, found)
    else:
        _check(node, value, old, path, found)
    if len(found.errors) > before and old is not MISSING and same(value, old):
        found.ratcheted += found.errors[before:]
        del found.errors[before:]


def _check_null(node: Node, path: Path, found: Findings) -> None:
    if not node.nullable and node.type:
        where = path_text(path)
        found.errors.append(type_invalid(where, "null", f'{where} in body must be of type {node.type}: "null"'))
    if "enum" in node.bounds:
        checks_of(node)[-1](None, path, found.errors)


def _check(node: Node, value: Any, old: Any, path: Path, found: Findings) -> None:
    kind = type(value)
    if kind not in node.kinds:
        _check_type(node, value, path, found)
    if kind is dict:
        _check_object(node, value, old, path, found)
    elif kind is list and node.items is not None:
        _check_items(node, value, old, path, found)
    for check in checks_of(node):
        check(value, path, found.errors)
    if node.all_of or node.any_of or node.one_of or node.negated:
        _check_junctors(node, value, path, found)


def _check_type(node: Node, value: Any, path: Path, found: Findings) -> None:
    """A value of another type: the format is named where there is one, and then kinds of numbers are told apart."""
    kind = type(value)
    if kind is float and node.type == "integer" and value.is_integer() and (not node.format or abs(value) < 2**63):
        return
    wanted, got = node.type, _NAMES[kind]
    if node.format in _NAMED_FORMATS and kind not in (str, list) and not node.int_or_string:
        wanted, got = node.format, _GO_NAMES.get(kind, "")
    where = path_text(path)
    found.errors.append(type_invalid(where, got, f'{where} in body must be of type {wanted}: "{got}"'))
    if kind is float and node.type == "integer" and not node.format:
        text = f"Checked value must be of type integer (default format) in {where}"
        found.errors.append(invalid("", "", text))


def _check_object(node: Node, value: dict[str, Any], old: Any, path: Path, found: Findings) -> None:
    before = old if type(old) is dict else {}
    properties, additional = node.properties, node.additional
    for key, item in value.items():
        child = properties.get(key, additional)
        if child is None or (child.plain and type(item) in child.kinds):
            continue
        validate(child, item, before.get(key, MISSING), (path, key), found)
    for key in node.required:
        if key not in value:
            found.errors.append(required(path_text((path, key))))


def _check_items(node: Node, value: list[Any], old: Any, path: Path, found: Findings) -> None:
    child = node.items
    assert child is not None
    before: dict[Any, Any] = {}
    if node.list_type == "map" and type(old) is list:
        before = {key_of(node, item): item for item in old}
    for at, item in enumerate(value):
        if child.plain and type(item) in child.kinds:
            continue
        stored = before.get(key_of(node, item), MISSING) if before else MISSING
        validate(child, item, stored, (path, at), found)


def _errors_of(node: Node, value: Any, path: Path) -> list[FieldError]:
    found = Findings()
    validate(node, value, MISSING, path, found)
    return found.errors


def _closest(nodes: tuple[Node, ...], results: list[list[FieldError]], value: Any) -> list[FieldError]:
    """The complaints of the alternative that fits best: most of its fields are there; the first of equals."""
    scores = [_score(node, value) for node in nodes]
    return results[scores.index(max(scores))]


def _score(node: Node, value: Any) -> int:
    if type(value) is not dict:
        return 0
    return sum(key in value for key in node.required) + sum(key in value for key in node.properties)


def _check_junctors(node: Node, value: Any, path: Path, found: Findings) -> None:
    where = path_text(path)
    for group, part in (("all", node.all_of), ("any", node.any_of), ("one", node.one_of)):
        if part:
            results = [_errors_of(item, value, path) for item in part]
            _check_group((group, where, _closest(part, results, value)), results, found)
    if node.negated is not None and not _errors_of(node.negated, value, path):
        found.errors.append(invalid("", "", f'"{where}" must not validate the schema (not)'))


def _check_group(about: tuple[str, str, list[FieldError]], results: list[list[FieldError]], found: Findings) -> None:
    group, where, closest = about
    valid = sum(1 for errors in results if not errors)
    if group == "any" and not valid:
        found.errors.append(invalid("", "", f'"{where}" must validate at least one schema (anyOf)'))
        _add_new(closest, found)
    elif group == "one" and valid != 1:
        counted = f"Found {valid} valid alternatives" if valid else "Found none valid"
        text = f'"{where}" must validate one and only one schema (oneOf). {counted}'
        found.errors.append(invalid("", "", text))
        _add_new([] if valid else closest, found)
    elif group == "all" and valid != len(results):
        _add_new([error for errors in results for error in errors], found)
        text = f'"{where}" must validate all the schemas (allOf){"" if valid else ". None validated"}'
        found.errors.append(invalid("", "", text))


def _add_new(errors: list[FieldError], found: Findings) -> None:
    """Complaints that the schema itself made already are not made again for an alternative."""
    for error in errors:
        if error not in found.errors:
            found.errors.append(error)
