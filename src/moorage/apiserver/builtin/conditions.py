"""Match conditions of webhooks, checked when they are registered.

Enters: conditions as written. Leaves: complaints: what cannot be compiled, is no truth value, or asks for what this server does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.apiserver.builtin.fields import Errors, complaints
from moorage.core import names
from moorage.schema import duplicate, forbidden, invalid, required
from moorage.schema.cel import CelError, Program
from moorage.schema.celprogram import reads

VARIABLES = ("object", "oldObject", "request")
_MOST = 64


def check_conditions(path: str, conditions: Sequence[Mapping[str, Any]]) -> Errors:
    """Complaints about the match conditions of one webhook."""
    if len(conditions) > _MOST:
        yield forbidden(path, f"must have at most {_MOST} items")
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name") or ""
        expression = (condition.get("expression") or "").strip()
        if not expression:
            yield required(f"{here}.expression")
        else:
            yield from _expression(f"{here}.expression", expression)
        yield from (
            complaints(f"{here}.name", name, names.qualified_name(name)) if name else iter([required(f"{here}.name")])
        )
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)


def _expression(path: str, expression: str) -> Errors:
    if reads(expression, "authorizer"):
        yield invalid(
            path, expression, "authorizer cannot be used here: Moorage's own API server does not offer it to webhooks"
        )
        return
    try:
        result = Program.compile(expression, VARIABLES).result_type
    except CelError as error:
        yield invalid(path, expression, f"compilation failed: {error}")
        return
    if result not in ("bool", "dyn"):
        yield invalid(path, expression, f"must evaluate to bool but got {result}")
