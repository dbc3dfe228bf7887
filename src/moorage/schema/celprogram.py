"""Rules of one node, compiled once and kept on the node.

Enters: a Node with `x-kubernetes-validations`. Leaves: CompiledRules that answer for given `self` and `oldSelf`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from moorage.core.meta import JsonObject

from .cel import Bindings, CelError, Program
from .celtypes import typed_source
from .node import Node

_OLD: Final = re.compile(r"\boldSelf\b")
_TEXT: Final = re.compile(r"""[rR]?(\"\"\"|'''|"|')(?:\\.|(?!\1).)*\1""", re.DOTALL)


def names_old(expression: str) -> bool:
    """Whether an expression reads `oldSelf`."""
    return _OLD.search(_TEXT.sub("''", expression)) is not None


@dataclass(frozen=True, slots=True)
class CompiledRule:
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
        return str(self.sentence.evaluate(seen)) if self.sentence is not None else ""


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
    with_old = without_old = sentence = None
    problem = ""
    try:
        source = typed_source(node, text, resource=resource)
        if uses_old:
            with_old = _program(source, old=True, optional=optional)
        if not uses_old or optional:
            without_old = _program(source, old=False, optional=optional)
        sentence = _sentence(node, rule, uses_old, resource)
    except CelError as error:
        problem = f"compilation failed: {error}"
    return CompiledRule(
        text=text,
        label=message or text,
        fallback=message or f"failed rule: {text}",
        reason=str(rule.get("reason") or ""),
        field_path=str(rule.get("fieldPath") or ""),
        uses_old=uses_old,
        optional_old=optional,
        with_old=with_old,
        without_old=without_old,
        sentence=sentence,
        problem=problem,
    )


def _program(source: str, *, old: bool, optional: bool) -> Program:
    variables: tuple[str, ...] = ("self",)
    if optional:
        source = f"cel.bind(oldSelf, {'optional.of(old__)' if old else 'optional.none()'}, {source})"
        variables = (*variables, "old__") if old else variables
    elif old:
        variables = (*variables, "oldSelf")
    return Program.compile(source, variables)


def _sentence(node: Node, rule: JsonObject, uses_old: bool, resource: bool) -> Program | None:
    """The message expression. It may read `oldSelf` only where the rule does."""
    text = str(rule.get("messageExpression") or "").strip()
    if not text:
        return None
    optional = bool(rule.get("optionalOldSelf"))
    if optional and names_old(text):
        return None
    return _program(typed_source(node, text, resource=resource), old=uses_old and not optional, optional=False)
