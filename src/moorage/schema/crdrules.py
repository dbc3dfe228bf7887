"""CEL rules and defaults of a CRD's schema, checked when the CRD is created.

Enters: a schema that is structural. Leaves: complaints about rules that cannot run and defaults that break their own
schema, worded as kube-apiserver's. Kubernetes' static cost estimate is not made (spec/embedded.md, Points 5).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from moorage.core.meta import JsonObject

from .cel import CelError
from .celprogram import FIELD_STEP, names_old
from .celtypes import check_source
from .fielderror import FieldError, Verbatim, go_json, internal, invalid, not_supported, required
from .node import MISSING, Compiler, Node
from .prune import unknown_fields
from .validate import Findings, validate

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NO_TYPE: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: "
    "unable to convert structural schema to CEL declarations"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk stands. `uncorrelated` is the path of the list below which `oldSelf` has no meaning."""

    path: str
    uncorrelated: str = ""
    resource: bool = False


def rule_errors(schema: JsonObject, base: str) -> list[FieldError]:
    """Complaints about the rules and defaults of a structural schema."""
    node = Compiler({}).compile(schema)
    return [*_walk(node, _Place(base, resource=True))]


def _walk(node: Node, place: _Place) -> Iterator[FieldError]:
    if node.rules and not node.type:
        yield internal(f"{place.path}.x-kubernetes-validations", _NO_TYPE)
        return
    for at, rule in enumerate(node.rules):
        yield from _rule(node, rule, replace(place, path=f"{place.path}.x-kubernetes-validations[{at}]"))
    if node.default is not MISSING and node.default is not None and not place.resource:
        yield from _default(node, f"{place.path}.default")
    inner = replace(place, resource=False)
    for name, child in node.properties.items():
        yield from _walk(child, replace(inner, path=f"{place.path}.properties[{name}]"))
    if node.additional is not None:
        yield from _walk(node.additional, replace(inner, path=f"{place.path}.additionalProperties"))
    if node.items is not None:
        lost = place.uncorrelated or ("" if node.list_type == "map" else place.path)
        yield from _walk(node.items, replace(inner, path=f"{place.path}.items", uncorrelated=lost))


def _default(node: Node, path: str) -> Iterator[FieldError]:
    value = copy.deepcopy(node.default)
    if unknown_fields(node, value, drop=True):
        yield invalid(path, node.default, "must not have unknown fields")
        return
    found = Findings()
    validate(node, value, MISSING, None, found)
    for error in found.errors:
        where = f"{path}.{error.path}" if error.path else path
        yield error._replace(path=where)


def _shown(rule: JsonObject) -> Verbatim:
    """The rule as kube-apiserver prints it in its messages."""
    fields = {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    return Verbatim(go_json(fields))


def _rule(node: Node, rule: JsonObject, place: _Place) -> Iterator[FieldError]:
    text = str(rule.get("rule") or "")
    if not text.strip():
        yield required(f"{place.path}.rule", "rule is not specified")
        return
    yield from _message_errors(rule, text, place.path)
    if (reason := rule.get("reason")) and reason not in _REASONS:
        yield not_supported(f"{place.path}.reason", reason, _REASONS)
    if (target := rule.get("fieldPath")) and not _leads_somewhere(node, str(target)):
        yield invalid(f"{place.path}.fieldPath", target, "must be a valid path")
    broken = [*_expression_errors(node, rule, text, place)]
    compiles = not any(error.path == f"{place.path}.rule" for error in broken)
    yield from _old_errors(rule, text, place, uses_old=compiles and names_old(text))
    yield from broken


def _message_errors(rule: JsonObject, text: str, path: str) -> Iterator[FieldError]:
    message, expression = rule.get("message") or "", rule.get("messageExpression") or ""
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif "\n" in text.strip() and not message:
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")


def _old_errors(rule: JsonObject, text: str, place: _Place, *, uses_old: bool) -> Iterator[FieldError]:
    if rule.get("optionalOldSelf") is not None and not uses_old:
        reason = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{place.path}.optionalOldSelf", rule["optionalOldSelf"], reason)
    elif uses_old and place.uncorrelated:
        reason = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}"
        yield invalid(f"{place.path}.rule", text, reason)


def _expression_errors(node: Node, rule: JsonObject, text: str, place: _Place) -> Iterator[FieldError]:
    optional = bool(rule.get("optionalOldSelf"))
    try:
        result = check_source(node, text, resource=place.resource, optional_old=optional)
    except CelError as error:
        yield invalid(f"{place.path}.rule", _shown(rule), f"compilation failed: {error}")
    else:
        if result not in ("bool", "dyn"):
            yield invalid(f"{place.path}.rule", _shown(rule), "cel expression must evaluate to a bool")
    expression = str(rule.get("messageExpression") or "").strip()
    if not expression:
        return
    at = f"{place.path}.messageExpression"
    try:
        result = check_source(node, expression, resource=place.resource, optional_old=optional)
    except CelError as error:
        yield invalid(at, _shown(rule), f"messageExpression compilation failed: {error}")
    else:
        if result not in ("string", "dyn"):
            yield invalid(at, _shown(rule), "messageExpression must evaluate to a string")


def _leads_somewhere(node: Node | None, target: str) -> bool:
    at = 0
    while at < len(target):
        found = FIELD_STEP.match(target, at)
        if found is None or node is None or node.type != "object":
            return False
        name: Any = found[1] if found[1] is not None else found[2]
        node = node.child(name)
        at = found.end()
    return node is not None
