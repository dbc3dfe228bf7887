"""CEL behind one door: the only file that imports the engine (cel-expr-python, Google's cel-cpp).

Enters: an expression and the names of its variables, all dynamic. Leaves: a compiled Program that evaluates to plain Python values,
or CelError with a sentence worded as kube-apiserver's own engine words it. It knows no schema.
The engine is loaded on first use, so that programs without rules never pay for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cel_expr_python import cel as engine


_CONFIG: Final = """\
name: moorage
extensions:
  - name: lists
  - name: sets
  - name: two-var-comprehensions
  - name: optional
  - name: bindings
"""
_STATUS: Final = re.compile(r"^[A-Z_]+: ")
_KEY: Final = re.compile(r'Key not found in map : "?(.*?)"?$')
_INDEX: Final = re.compile(r"[Ii]ndex (?:out of bounds|error).*?(-?\d+)")
_CONVERSION: Final = re.compile(r"(?:cannot convert string to|String to) (\w+)")
_TARGETS: Final = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
_NO_OVERLOAD: Final = (
    "'no such overload': call arguments did not match a supported operator, function or macro signature"
)
_BUDGET: Final = "Iteration budget exceeded"


class CelError(Exception):
    """An expression that does not compile, or whose evaluation failed; the text is the engine's complaint."""


class CelBudgetError(CelError):
    """Evaluation was stopped because it took too many steps."""


class CelOverloadError(CelError):
    """Evaluation met values of types that the called function does not take."""


class Bindings:
    """Values of variables, made ready for the engine once and shared by all programs that read them."""

    __slots__ = ("_ready", "values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self._ready: dict[int, engine.Activation] = {}

    def ready(self, env: engine.Env) -> engine.Activation:
        """The values as the programs of one environment take them."""
        found = self._ready.get(id(env))
        if found is None:
            found = self._ready[id(env)] = env.Activation(self.values)
        return found


class Program:
    """One compiled expression; free to share."""

    def __init__(self, expression: str, variables: tuple[str, ...]) -> None:
        self.expression = expression
        self._env = _environment(variables)
        try:
            self._compiled = self._env.compile(expression)
        except RuntimeError as error:
            raise CelError(_compile_text(error)) from None

    @classmethod
    def compile(cls, expression: str, variables: tuple[str, ...]) -> Program:
        """The program of an expression, from a cache of the last few thousand.

        Raises:
            CelError: it does not parse, or its types do not fit.
        """
        return _cached(expression, variables)

    @property
    def result_type(self) -> str:
        """Type of the result as the checker knows it: `bool`, `string`, `dyn`, ..."""
        return str(self._compiled.return_type()).lower()

    @property
    def tree(self) -> bytes:
        """The checked expression, serialized; `celtree.py` reads it."""
        return bytes(self._compiled.serialize())

    def evaluate(self, bindings: Bindings) -> Any:
        """The value for these variables.

        Raises:
            CelBudgetError: it took too many steps.
            CelError: it failed, such as by a key that is not there.
        """
        try:
            result = self._compiled.eval(bindings.ready(self._env))
            value = result.plain_value()
        except RuntimeError as error:
            if _BUDGET in str(error):
                raise CelBudgetError("call cost exceeds limit") from None
            raise _runtime_error(str(error)) from None
        except TypeError:
            raise CelError("unsupported result type") from None
        if result.type().name() == "*error*" or repr(result.type()) == "ERROR":
            raise _runtime_error(str(value))
        return value


def _compile_text(error: Exception) -> str:
    text = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
    return text.rstrip("\n")


def _runtime_error(text: str) -> CelError:
    text = _STATUS.sub("", text)
    if "No matching overloads found" in text or "no such overload" in text.lower():
        return CelOverloadError(_NO_OVERLOAD)
    return CelError(_runtime_text(text))


def _runtime_text(text: str) -> str:
    if found := _KEY.search(text):
        return f"no such key: {found[1]}"
    if found := _CONVERSION.search(text):
        target = _TARGETS.get(found[1].lower(), found[1].lower())
        return f"type conversion error from 'string' to '{target}'"
    if "divide by zero" in text:
        return "division by zero"
    if "modulus by zero" in text:
        return "modulus by zero"
    if found := _INDEX.search(text):
        return f"index out of bounds: {found[1]}"
    return re.sub(r" \[[A-Z_]+\]$", "", text)


@lru_cache(maxsize=4096)
def _cached(expression: str, variables: tuple[str, ...]) -> Program:
    return Program(expression, variables)


@lru_cache(maxsize=256)
def _environment(names: tuple[str, ...]) -> engine.Env:
    from cel_expr_python import cel

    from .cellibrary import functions

    declared = dict.fromkeys(names, cel.Type.DYN)
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_CONFIG), variables=declared, functions=functions(cel))
