"""Structural schemas at work: one compiled schema prunes, defaults and validates objects of one kind.

Enters: an OpenAPI v3 schema (a CRD's or a built-in type's) and plain objects. Leaves: verdicts; `prune` and `default`
change the object they are given. It knows no server. CEL is loaded only when a rule has to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.core.meta import JsonObject

from .defaulting import apply_defaults
from .embedded import check_embedded, has_embedded
from .fielderror import ErrorType, FieldError, invalid
from .listtypes import check_lists, has_lists
from .node import MISSING, Compiler, Node, has_rules
from .prune import unknown_fields
from .review import Verdict
from .validate import Findings, validate

_NO_DEFINITIONS: Final[Mapping[str, JsonObject]] = {}


class Structural:
    """A compiled schema; immutable and free to share between tasks and threads."""

    def __init__(self, root: Node) -> None:
        self.root = root

    @classmethod
    def compile(cls, schema: JsonObject, definitions: Mapping[str, JsonObject] = _NO_DEFINITIONS) -> Structural:
        """Compile one schema. `$ref` names are looked up in `definitions` by their last path segment.

        Raises:
            KeyError: a `$ref` names no definition.
        """
        return cls.by(Compiler(definitions), schema)

    @classmethod
    def by(cls, compiler: Compiler, schema: JsonObject) -> Structural:
        """Compile one schema of several that share definitions. Raises KeyError, as `compile`."""
        return cls(compiler.compile(schema))

    def prune(self, obj: JsonObject) -> list[str]:
        """Drop fields that the schema does not know, in place; their paths, such as `spec.foo`."""
        return unknown_fields(self.root, obj, drop=True)

    def unknown(self, obj: JsonObject) -> list[str]:
        """Paths of fields that the schema does not know; the object stays as it is."""
        return unknown_fields(self.root, obj, drop=False)

    def default(self, obj: JsonObject) -> None:
        """Fill in defaults and drop nulls of fields that are not nullable, in place."""
        apply_defaults(self.root, obj, resource=True)

    def validate(self, obj: JsonObject, old: JsonObject | None = None, *, path: str = "") -> Verdict:
        """Types, bounds, formats, enums, list types. What was stored before and is unchanged is kept.

        Args:
            obj: the new object, pruned and defaulted.
            old: the stored object on an update.
            path: prefix of the paths in the verdict, when `obj` is a part of something.
        """
        found = Findings()
        start = (None, path) if path else None
        validate(self.root, obj, MISSING if old is None else old, start, found)
        if has_embedded(self.root):
            check_embedded(self.root, obj, start, found.errors)
        found.errors += self._list_errors(obj, old, start)
        return Verdict(tuple(found.errors), kept=tuple(found.ratcheted))

    def _list_errors(self, obj: JsonObject, old: JsonObject | None, start: Any) -> list[FieldError]:
        if not has_lists(self.root):
            return []
        out: list[FieldError] = []
        check_lists(self.root, obj, start, out)
        if out and old is not None:
            stored: list[FieldError] = []
            check_lists(self.root, old, start, stored)
            return [] if stored else out
        return out

    @property
    def has_rules(self) -> bool:
        """Whether the schema has CEL rules anywhere."""
        return has_rules(self.root)

    def validate_rules(self, obj: JsonObject, old: JsonObject | None = None) -> Verdict:
        """Run the CEL rules of the schema; those that name `oldSelf` need `old`."""
        if not self.has_rules:
            return Verdict()
        from .rules import check_rules

        return check_rules(self.root, obj, old)


_BLOCKING: Final = frozenset(
    {ErrorType.REQUIRED, ErrorType.NOT_SUPPORTED, ErrorType.TOO_LONG, ErrorType.TOO_MANY, ErrorType.TYPE_INVALID}
)
_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def check(structural: Structural, obj: JsonObject, old: JsonObject | None = None) -> Verdict:
    """Structure, then rules, as kube-apiserver joins them: rules run only when the structure lets them.

    Args:
        obj: the new object, pruned and defaulted.
        old: the stored object on an update.
    """
    found = structural.validate(obj, old)
    if not structural.has_rules:
        return found
    if any(error.type in _BLOCKING for error in found.errors):
        return Verdict((*found.errors, invalid("", None, _UNCHECKED)), found.warnings, found.kept)
    return found + structural.validate_rules(obj, old)
