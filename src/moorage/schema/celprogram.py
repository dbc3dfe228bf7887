"""Rules of one node, compiled once and kept on the node.

Enters: a Node with `x-kubernetes-validations`. Leaves: CompiledRules that answer for given `self` and `oldSelf`.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from moorage.core.meta import JsonObject

from .cel import Bindings, CelError, Program
from .celformat import with_formats
from .celview import has_converted
from .node import Node

FIELD_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_$-]*)|\['((?:[^'\\]|\\.)*)'\]")
"""One step of a `fieldPath`: `.name` or `['name']`."""
_TEXT: Final = re.compile(r"""[rR]?(\"\"\"|'''|"|')(?:\\.|(?!\1).)*\1""", re.DOTALL)


def names_old(expression: str) -> bool:
    """Whether an expression reads `oldSelf`."""
    return reads(expression, "oldSelf")


def reads(expression: str, name: str) -> bool:
    """Whether an expression names a variable, texts left aside."""
    return re.search(rf"\b{name}\b", _TEXT.sub("''", expression)) is not None


class CompiledRule(NamedTuple):
    """One rule, ready to run.

    Attributes:
        label: the message, or else the expression: how an evaluation error names the rule.
        fallback: the sentence when no message expression gives one.
        problem: why the rule cannot run; each evaluation then fails with it.
    """

    text: str
    label: str
    fallback: str
    reason: str
    field_path: str
    uses_old: bool
    optional_old: bool
    with_old: Program | None
    without_old: Program | None
    sentence: Program | None
    sentence_of_new: Program | None
    problem: str = ""

    @property
    def needs_old(self) -> bool:
        """Whether the rule is skipped where nothing was stored."""
        return self.uses_old and not self.optional_old

    def holds(self, seen: Bindings) -> Any:
        """What the rule answers.

        Raises:
            CelError: it does not compile, or evaluation failed.
        """
        program = self.with_old if self.uses_old and "oldSelf" in seen.values else self.without_old
        if program is None:
            raise CelError(self.problem)
        return program.evaluate(seen)

    def message(self, seen: Bindings) -> str:
        """The sentence of the message expression; "" when the rule has none.

        Raises:
            CelError: evaluation failed.
        """
        program = self.sentence if "oldSelf" in seen.values else self.sentence_of_new
        return str(program.evaluate(seen)) if program is not None else ""


def compiled_rules(node: Node, *, resource: bool = False) -> tuple[CompiledRule, ...]:
    """The rules of a node."""
    if "compiled" not in node.cache:
        node.cache["compiled"] = tuple(_compile(node, rule, resource) for rule in node.rules)
    found: tuple[CompiledRule, ...] = node.cache["compiled"]
    return found


def _compile(node: Node, rule: JsonObject, resource: bool) -> CompiledRule:
    text = str(rule.get("rule", "")).strip()
    message = str(rule.get("message") or "").strip()
    uses_old, optional = names_old(text), bool(rule.get("optionalOldSelf"))
    with_old = without_old = sentence = sentence_of_new = None
    problem = ""
    try:
        source = _typed_source(node, text, resource=resource)
        if uses_old:
            with_old = _program(source, old=True, optional=optional)
        if not uses_old or optional:
            without_old = _program(source, old=False, optional=optional)
        if sentence_source := str(rule.get("messageExpression") or "").strip():
            typed = _typed_source(node, sentence_source, resource=resource)
            sentence = _program(typed, old=uses_old, optional=optional)
            if not names_old(sentence_source):
                sentence_of_new = _program(typed, old=False, optional=optional)
    except CelError as error:
        problem = f"compilation failed: {error}"
    return CompiledRule(
        text=text,
        label=message or text,
        fallback=message or f"failed rule: {text}",
        reason=str(rule.get("reason") or ""),
        field_path=_target(node, str(rule.get("fieldPath") or "")),
        uses_old=uses_old,
        optional_old=optional,
        with_old=with_old,
        without_old=without_old,
        sentence=sentence,
        sentence_of_new=sentence_of_new,
        problem=problem,
    )


def _typed_source(node: Node, source: str, *, resource: bool) -> str:
    """The source as the engine takes it; types are looked at only where a value is converted."""
    source = with_formats(source)
    if not has_converted(node):
        return source
    from .celtypes import converted_source

    return converted_source(node, source, resource=resource)


def _program(source: str, *, old: bool, optional: bool) -> Program:
    variables: tuple[str, ...] = ("self",)
    if optional:
        source = f"cel.bind(oldSelf, {'optional.of(old__)' if old else 'optional.none()'}, {source})"
        variables = (*variables, "old__") if old else variables
    elif old:
        variables = (*variables, "oldSelf")
    return Program.compile(source, variables)


def _target(node: Node | None, field_path: str) -> str:
    """The place that a rule's `fieldPath` names, as complaints show it: `.name`, `.labels[key]`."""
    made = ""
    for found in FIELD_STEP.finditer(field_path):
        name = found[1] if found[1] is not None else found[2]
        in_map = node is not None and name not in node.properties and node.additional is not None
        made += f"[{name}]" if in_map else f".{name}"
        node = node.child(name) if node is not None else None
    return made
