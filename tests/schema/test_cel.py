"""CEL: programs, budgets, the laziness of the engine, names of fields."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.schema import Structural
from moorage.schema.cel import Bindings, CelBudgetError, CelError, CelOverloadError, Program
from moorage.schema.celprogram import names_old
from moorage.schema.celtypes import check_source
from moorage.schema.celview import escape


def test_the_engine_is_loaded_by_the_first_rule_and_not_before() -> None:
    code = (
        "import sys, moorage.schema as s\n"
        "x = s.Structural.compile({'type': 'object'})\n"
        "x.validate({}); x.validate_rules({})\n"
        "assert not [m for m in sys.modules if m.startswith('cel_expr_python')]\n"
        "y = s.Structural.compile({'type': 'object', 'x-kubernetes-validations': [{'rule': 'true'}]})\n"
        "y.validate_rules({})\n"
        "assert [m for m in sys.modules if m.startswith('cel_expr_python')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_program_is_compiled_once() -> None:
    assert Program.compile("self > 1", ("self",)) is Program.compile("self > 1", ("self",))


def test_a_rule_that_never_ends_is_stopped_by_the_iteration_budget() -> None:
    program = Program.compile("self.all(x, self.all(y, y >= 0))", ("self",))
    with pytest.raises(CelBudgetError):
        program.evaluate(Bindings({"self": list(range(3000))}))


def test_an_object_whose_rule_runs_out_of_budget_is_refused_and_no_more_rules_run() -> None:
    schema = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.l.all(x, self.l.all(y, y >= 0))"}, {"rule": "false"}],
    }
    errors = Structural.compile(schema).validate_rules({"l": list(range(3000))}).errors
    assert [error.detail.split(",")[0] for error in errors] == [
        "call cost exceeds limit for rule: self.l.all(x",
        "validation failed due to running out of cost budget",
    ]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("self.b == 1", "no such key: b"),
        ("1 / self.a == 1", "division by zero"),
        ("self.l[9] == 1", "index out of bounds: 9"),
        ("int(self.s) == 1", "type conversion error from 'string' to 'int'"),
    ],
)
def test_evaluation_errors_read_as_in_kubernetes(expression: str, text: str) -> None:
    with pytest.raises(CelError, match=text):
        Program.compile(expression, ("self",)).evaluate(Bindings({"self": {"a": 0, "l": [1], "s": "x"}}))


def test_values_of_the_wrong_type_are_an_overload_error() -> None:
    with pytest.raises(CelOverloadError):
        Program.compile("self + 1 == 2", ("self",)).evaluate(Bindings({"self": "x"}))


@pytest.mark.parametrize(
    ("expression", "uses"),
    [
        ("self == oldSelf", True),
        ("self == 'oldSelf'", False),
        ("self.oldSelfish", False),
        ('"""oldSelf"""==self', False),
    ],
)
def test_a_rule_is_a_transition_rule_when_it_reads_old_self(expression: str, uses: bool) -> None:
    assert names_old(expression) is uses


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("a", "a"), ("a-b", "a__dash__b"), ("a.b", "a__dot__b"), ("a/b", "a__slash__b"), ("in", "__in__"),
        ("a__b", "a__underscores__b"), ("$x", None), ("1a", None), ("namespace", "__namespace__"), ("int", "int"),
    ],
)  # fmt: skip
def test_a_property_name_is_written_in_a_rule_as_kubernetes_documents_it(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped


TYPED = Structural.compile(
    {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "t": {"type": "string", "format": "date-time"},
            "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }
).root


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("self.zz", "1:5: undefined field 'zz'"),
        ("self.l.all(x, x.q == 'a')", "1:16: undefined field 'q'"),
        ("self.n == 'a'", "1:8: found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.m.all(k, self.m[k] == 'a')", "1:25: found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.l[0].k == 1", "1:13: found no matching overload for '_==_' applied to '(string, int)'"),
        ("self.n.startsWith('a')", "1:18: found no matching overload for 'startsWith' applied to 'int.(string)'"),
        ("self.s.matches('[')", "1:16: invalid matches argument"),
        ("self.t > 1", "1:8: found no matching overload for '_>_' applied to '(timestamp, int)'"),
        ("self.n.foo", "1:7: type 'int' does not support field selection"),
        ("has(self.`n`)", "1:10: unsupported syntax: '`'"),
        ("self.?`n`.hasValue()", "1:7: unsupported syntax: '`'"),
        ("self.l.all(namespace, true)", "1:12: argument must be a simple name"),
        ("unknown(1)", "1:8: undeclared reference to 'unknown' (in container '')"),
    ],
)
def test_a_wrong_rule_is_found_when_its_crd_is_created(expression: str, complaint: str) -> None:
    with pytest.raises(CelError) as caught:
        check_source(TYPED, expression)
    assert f"ERROR: <input>:{complaint}" in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "self.n > 1.5", "self.?s.orValue('') == ''", "has(self.t) && self.t > timestamp('2020-01-01T00:00:00Z')",
        "self.l.exists(x, x.k == 'a')", "self.l.all(i, x, i >= 0 && x.k != '')", "oldSelf.n <= self.n",
        "self.m.exists(k, k.startsWith('a'))", "dyn(self.n) == 'a'",
    ],
)  # fmt: skip
def test_a_right_rule_passes_the_check(expression: str) -> None:
    assert check_source(TYPED, expression) == "bool"


@pytest.mark.parametrize("rule", ["has(self.namespace)", "self.__namespace__ == 'x'", "self.?namespace.hasValue()"])
def test_a_field_with_a_reserved_name_has_two_spellings(rule: str) -> None:
    """As in kube-apiserver 1.36.3, whose own validation was asked; names with other escapes have one."""
    fields = {"namespace": {"type": "string"}, "a__b": {"type": "integer"}}
    schema = {"type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": rule}]}
    compiled = Structural.compile(schema)
    assert check_source(compiled.root, rule) == "bool"
    assert compiled.validate_rules({"namespace": "x"}).errors == ()
    assert compiled.validate_rules({}).errors != ()
    with pytest.raises(CelError, match="undefined field 'a__b'"):
        check_source(compiled.root, "self.a__b > 0")


@given(st.text(max_size=30))
def test_an_expression_either_passes_or_gets_a_complaint_and_nothing_else_happens(expression: str) -> None:
    with contextlib.suppress(CelError):
        assert check_source(TYPED, expression)
