"""CEL rules over an object: which run, on what, and how their complaints read.

Enters: a Node, an object, its stored form. Leaves: a Verdict. Rules that name `oldSelf` run only where a stored value
can be found for the place; a rule that fails on a value that did not change only warns (ratcheting).
Source: apiextensions `schema/cel`, recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from moorage.core.meta import JsonObject

from .cel import Bindings, CelBudgetError, CelError, CelOverloadError
from .celprogram import CompiledRule, compiled_rules
from .celview import aligned, view
from .fielderror import NO_VALUE, ErrorType, FieldError, invalid
from .listtypes import key_of
from .node import MISSING, Node, has_rules
from .review import Verdict
from .sameness import same

_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_REASONS: Final = {item.value: item for item in ErrorType}
_LONGEST_MESSAGE: Final = 5 * 1024


@dataclass(slots=True)
class _Walk:
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    stopped: bool = False


class _Place(NamedTuple):
    """A value, what was stored there (or MISSING), and whether the place as a whole stayed as it was."""

    value: Any
    old: Any
    path: str
    frozen: bool
    resource: bool = False


def check_rules(node: Node, obj: JsonObject, old: JsonObject | None) -> Verdict:
    """Run all rules of the schema."""
    walk = _Walk()
    stored: Any = MISSING if old is None else old
    _visit(node, _Place(obj, stored, "", old is not None and same(obj, old), resource=True), walk)
    return Verdict(tuple(walk.errors), tuple(walk.warnings))


def _visit(node: Node, place: _Place, walk: _Walk) -> None:
    if place.value is None or walk.stopped or not has_rules(node):
        return
    if node.rules:
        _run_rules(node, place, walk)
    if type(place.value) is dict:
        _visit_object(node, place, walk)
    elif type(place.value) is list and node.items is not None:
        _visit_items(node, node.items, place, walk)


def _visit_object(node: Node, place: _Place, walk: _Walk) -> None:
    before = place.old if type(place.old) is dict else {}
    for key, item in place.value.items():
        child = node.properties.get(key)
        if child is not None:
            path = f"{place.path}.{key}" if place.path else key
        elif node.additional is not None:
            child, path = node.additional, f"{place.path}[{key}]"
        else:
            continue
        _visit(child, _below(place, item, before.get(key, MISSING), path), walk)


def _visit_items(node: Node, child: Node, place: _Place, walk: _Walk) -> None:
    before: dict[Any, Any] = {}
    if node.list_type == "map" and type(place.old) is list:
        before = {key_of(node, item): item for item in place.old}
    for at, item in enumerate(place.value):
        stored = before.get(key_of(node, item), MISSING) if before else MISSING
        _visit(child, _below(place, item, stored, f"{place.path}[{at}]"), walk)


def _below(place: _Place, value: Any, old: Any, path: str) -> _Place:
    return _Place(value, old, path, place.frozen or (old is not MISSING and same(value, old)))


def _run_rules(node: Node, place: _Place, walk: _Walk) -> None:
    seen = {"self": view(node, place.value, resource=place.resource)}
    if place.old is not MISSING and place.old is not None:
        old = aligned(node, place.old, place.value)
        seen["oldSelf"] = seen["old__"] = view(node, old, resource=place.resource)
    bound = Bindings(seen)
    for rule in compiled_rules(node, resource=place.resource):
        if rule.needs_old and "oldSelf" not in seen:
            continue
        error = _run(rule, node, place, bound, walk)
        if walk.stopped:
            return
        if error is None:
            continue
        if place.frozen and not rule.uses_old:
            walk.warnings.append(error.message)
        else:
            walk.errors.append(error)


def _run(rule: CompiledRule, node: Node, place: _Place, seen: Bindings, walk: _Walk) -> FieldError | None:
    try:
        answer = rule.holds(seen)
    except CelBudgetError:
        walk.stopped = True
        walk.errors.append(invalid(place.path, node.type, f"call cost exceeds limit for rule: {rule.text}"))
        walk.errors.append(invalid(place.path, NO_VALUE, _OUT_OF_BUDGET))
        return None
    except CelOverloadError as error:
        return invalid(place.path, node.type, f"{error} for rule: {rule.label}")
    except CelError as error:
        return invalid(place.path, node.type, f"{error} evaluating rule: {rule.label}")
    if answer is True:
        return None
    return _complaint(rule, place, seen)


def _complaint(rule: CompiledRule, place: _Place, seen: Bindings) -> FieldError:
    value = place.value if type(place.value) not in (dict, list) else NO_VALUE
    path = f"{place.path}{rule.field_path}".removeprefix(".")
    kind = _REASONS.get(rule.reason, ErrorType.INVALID)
    if rule.field_path:
        value = NO_VALUE
    detail = "" if kind is ErrorType.DUPLICATE else _message(rule, seen)
    return FieldError(path, kind, detail, value)


def _message(rule: CompiledRule, seen: Bindings) -> str:
    try:
        text = rule.message(seen)
    except CelError:
        text = ""
    text = text.strip()
    if text and "\n" not in text and len(text) <= _LONGEST_MESSAGE:
        return text
    return rule.fallback
