"""Pruning, defaulting and validation as properties and tables."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.schema import Structural, check
from moorage.schema.fielderror import ErrorType, FieldError, format_value, invalid, not_supported, too_long, too_many
from moorage.schema.formats import FORMATS
from moorage.schema.gopattern import compile_pattern, is_pattern
from moorage.schema.sameness import same

NAMES = st.sampled_from(["a", "b", "c", "d-e", "f.g"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-3, 3) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=4)


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    text = st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"default": st.text(max_size=3), "maxLength": st.integers(3, 5)}
    )
    whole = st.fixed_dictionaries(
        {"type": st.just("integer")}, optional={"default": st.integers(0, 3), "minimum": st.just(0)}
    )
    free = st.just({"x-kubernetes-preserve-unknown-fields": True})
    either = st.just({"x-kubernetes-int-or-string": True})
    return text | whole | free | either | st.just({"type": "boolean", "nullable": True})


def containers(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={"x-kubernetes-preserve-unknown-fields": st.just(True), "default": st.just({})},
    )
    maps = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    lists = st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    return fields | maps | lists


SCHEMAS = st.recursive(scalars(), containers, max_leaves=8)
ROOTS = st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(NAMES, SCHEMAS, max_size=4)})


@given(ROOTS, OBJECTS)
def test_pruning_twice_drops_nothing_more_and_names_what_unknown_named(schema: dict[str, Any], obj: Any) -> None:
    structural, named = Structural.compile(schema), None
    named = structural.unknown(obj)
    assert structural.prune(obj) == named
    assert structural.prune(obj) == []


@given(ROOTS, OBJECTS)
def test_defaulting_twice_changes_nothing_more(schema: dict[str, Any], obj: Any) -> None:
    structural = Structural.compile(schema)
    structural.default(obj)
    once = copy.deepcopy(obj)
    structural.default(obj)
    assert same(obj, once)


@given(ROOTS, OBJECTS)
def test_defaults_are_copied_so_that_objects_never_share_them(schema: dict[str, Any], obj: Any) -> None:
    structural, before = Structural.compile(schema), json.dumps(schema)
    structural.default(obj)
    for value in obj.values():
        if isinstance(value, dict):
            value["changed"] = 1
    assert json.dumps(schema) == before


@given(ROOTS, OBJECTS)
def test_a_valid_object_stays_valid_when_defaults_are_filled_in(schema: dict[str, Any], obj: Any) -> None:
    structural = Structural.compile(schema)
    structural.prune(obj)
    structural.default(obj)
    verdict = structural.validate(obj)
    again = copy.deepcopy(obj)
    structural.default(again)
    assert structural.validate(again) == verdict


@given(ROOTS, OBJECTS)
@settings(max_examples=60)
def test_an_unchanged_object_is_never_refused_on_update(schema: dict[str, Any], obj: Any) -> None:
    structural = Structural.compile(schema)
    verdict = structural.validate(obj, copy.deepcopy(obj))
    assert not verdict.errors
    assert set(verdict.kept) == set(structural.validate(obj).errors)


@given(JSON, JSON)
def test_sameness_is_equality_of_the_json_text_with_types(one: Any, other: Any) -> None:
    assert same(one, other) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@given(st.text(max_size=12))
def test_no_format_check_ever_fails_on_a_text(text: str) -> None:
    assert all(isinstance(holds(text), bool) for holds in FORMATS.values())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (invalid("a.b", "x", "no"), 'a.b: Invalid value: "x": no'),
        (invalid("", None, "no"), "<nil>: Invalid value: null: no"),
        (invalid("a", {"b": "<", "a": 1}, "no"), 'a: Invalid value: {"a":1,"b":"\\u003c"}: no'),
        (invalid("a", True, "no"), "a: Invalid value: true: no"),
        (invalid("a", 1.5, "no"), "a: Invalid value: 1.5: no"),
        (invalid("a", 2e21, "no"), "a: Invalid value: 2e+21: no"),
        (invalid("a", 123456789.5, "no"), "a: Invalid value: 1.234567895e+08: no"),
        (too_long("a", "xyz", 2), "a: Too long: may not be more than 2 bytes"),
        (too_long("a", "xyz", 1), "a: Too long: may not be more than 1 byte"),
        (too_many("a", 33, 32), "a: Too many: 33: must have at most 32 items"),
        (too_many("a", 2, 1), "a: Too many: 2: must have at most 1 item"),
        (not_supported("a", "X", ["b", "a"]), 'a: Unsupported value: "X": supported values: "b", "a"'),
        (FieldError("a", ErrorType.FORBIDDEN, "stop"), "a: Forbidden: stop"),
        (FieldError("a", ErrorType.REQUIRED), "a: Required value"),
        (FieldError("a", ErrorType.DUPLICATE, "", 1), "a: Duplicate value: 1"),
    ],
)
def test_an_error_reads_as_the_real_server_prints_it(error: FieldError, message: str) -> None:
    assert error.message == message


def test_text_is_quoted_as_go_quotes_it() -> None:
    assert format_value('a"\\\n\x01\u2028é') == '"a\\"\\\\\\n\\x01\\u2028é"'


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        ("^[[:alpha:]]+$", "abc", True),
        ("[$]", "a$", True),
        (r"^a\z", "a", True),
        (r"^\d$", "٣", False),
        ("[^]a]", "b", True),
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", True),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, text: str, matches: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is matches


def test_a_broken_pattern_is_no_pattern() -> None:
    assert not is_pattern("[")


def test_a_type_that_contains_itself_compiles_and_validates() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/x/Tree"}}},
    }
    structural = Structural.compile({"type": "object", "properties": {"root": {"$ref": "#/x/Tree"}}}, {"Tree": tree})
    obj = {"root": {"name": "a", "children": [{"name": 1, "odd": 2}]}}
    assert structural.unknown(obj) == ["root.children[0].odd"]
    assert [error.path for error in structural.validate(obj).errors] == ["root.children[0].name"]
    assert not structural.has_rules


def test_a_prefix_stands_before_every_path() -> None:
    structural = Structural.compile({"type": "object", "properties": {"a": {"type": "string"}}})
    assert [error.path for error in structural.validate({"a": 1}, path="spec.template").errors] == ["spec.template.a"]


def test_rules_wait_until_the_structure_is_right() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.a > 1"}],
    }
    messages = [error.message for error in check(Structural.compile(schema), {"a": "x"}).errors]
    assert len(messages) == 2
    assert messages[1].startswith("<nil>: Invalid value: null: some validation rules were not checked")


def test_a_schema_that_restricts_the_name_keeps_the_rest_of_the_metadata() -> None:
    name = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
    structural = Structural.compile({"type": "object", "properties": {"metadata": name}})
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "long", "labels": {"a": "b"}, "odd": 1}}
    assert structural.prune(obj) == ["metadata.odd"]
    assert obj["metadata"] == {"name": "long", "labels": {"a": "b"}}
    assert [error.path for error in structural.validate(obj).errors] == ["metadata.name"]


def test_nulls_in_metadata_are_dropped_as_clients_send_them() -> None:
    obj: dict[str, Any] = {"metadata": {"name": "a", "creationTimestamp": None, "labels": {"x": None, "y": "z"}}}
    Structural.compile({"type": "object"}).default(obj)
    assert obj["metadata"] == {"name": "a", "labels": {"y": "z"}}


BUILT_IN = {
    "Port": {"type": "object", "properties": {"port": {"type": "integer", "format": "int32", "default": 0}, "target": {"allOf": [{"$ref": "#/IntOrString"}]}}, "required": ["port"]},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "Spec": {
        "type": "object",
        "properties": {
            "ports": {"type": "array", "items": {"$ref": "#/Port"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"]},
            "limits": {"type": "object", "additionalProperties": {"$ref": "#/Quantity"}},
        },
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({"ports": [{"port": 1, "target": "http"}, {"port": 2, "target": 80}], "limits": {"cpu": 1, "memory": "1Gi"}}, []),
        ({"ports": [{"port": 1}, {"port": 1}]}, ['spec.ports[1]: Duplicate value: {"port":1}']),
        (
            {"ports": [{"port": 1, "target": 1.5}]},
            ['spec.ports[0].target: Invalid value: "number": spec.ports[0].target in body must be of type integer,string: "number"'],
        ),
        ({"limits": {"cpu": True}}, ['spec.limits.cpu: Invalid value: "boolean": spec.limits.cpu in body must be of type string,number: "boolean"']),
    ],
)  # fmt: skip
def test_built_in_types_go_through_the_same_engine(spec: dict[str, Any], messages: list[str]) -> None:
    root = {"type": "object", "properties": {"spec": {"allOf": [{"$ref": "#/Spec"}], "default": {}}}}
    structural = Structural.compile(root, BUILT_IN)
    obj: dict[str, Any] = {"spec": spec}
    structural.default(obj)
    assert [error.message for error in structural.validate(obj).errors] == messages
    empty: dict[str, Any] = {}
    structural.default(empty)
    assert empty == {"spec": {}}
