"""From annotations to the schemas of pydantic's validator.

Enters: the type of a declared field. Leaves: what `pydantic_core` builds a validator of. It knows the types that have a form in a CRD, and
no others: no structure holds itself.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

Schema = dict[str, Any]
"""A core schema, as `pydantic_core.core_schema` describes it."""

_PLAIN: Final[Mapping[Any, str]] = {
    Any: "any", str: "str", bool: "bool", int: "int", float: "float", bytes: "bytes", type(None): "none",
}  # fmt: skip


def core_schema(annotation: Any) -> Schema:
    """The schema of one type; marks beside it restrict nothing here, since bounds are the schema engine's work.

    Raises:
        TypeError: the type has no form in a CRD.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if origin is Annotated:
        return core_schema(arguments[0])
    if origin is Literal:
        return {"type": "literal", "expected": list(arguments)}
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "tuple", "items_schema": [core_schema(arguments[0])], "variadic_item_index": 0}
    if origin is tuple:
        return {"type": "tuple", "items_schema": [core_schema(item) for item in arguments]}
    if origin is list:
        return {"type": "list", "items_schema": core_schema(arguments[0])}
    if origin is dict:
        return {"type": "dict", "keys_schema": core_schema(arguments[0]), "values_schema": core_schema(arguments[1])}
    own: Schema | None = getattr(annotation, "core_schema", None)
    if own is None:
        raise TypeError(f"{annotation!r} cannot be the type of a declared field")
    return own


def _union(members: tuple[Any, ...]) -> Schema:
    choices = [core_schema(member) for member in members if member is not type(None)]
    chosen = choices[0] if len(choices) == 1 else {"type": "union", "choices": choices}
    return {"type": "nullable", "schema": chosen} if type(None) in members else chosen
