"""Patches: RFC 7396's examples, RFC 6902's operations, and what both must never do."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.apiserver.patch import PatchError, json_patch, merge_patch, strategic_merge

from .pipeline import Kinds, builtin_schema, records

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("obj", "patch", "want"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_does_the_examples_of_its_rfc(obj: Any, patch: Any, want: Any) -> None:
    assert merge_patch(obj, patch) == want


@given(JSON, JSON)
def test_merge_patch_changes_neither_input_and_twice_is_once(obj: Any, patch: Any) -> None:
    before, given_patch = copy.deepcopy(obj), copy.deepcopy(patch)
    once = merge_patch(obj, patch)
    assert (obj, patch) == (before, given_patch)
    assert merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("obj", "ops", "want"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": [2]}], {"a": 1, "b": [2]}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": {"x": 1}}], {"a": {"x": 1}}),
        ({"a": {"b": 1}, "c": {}}, [{"op": "move", "from": "/a/b", "path": "/c/d"}], {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        (
            {"a/b": 1, "m~n": 2},
            [{"op": "remove", "path": "/a~1b"}, {"op": "replace", "path": "/m~0n", "value": 3}],
            {"m~n": 3},
        ),
        ({"~1": 1}, [{"op": "test", "path": "/~01", "value": 1}], {"~1": 1}),
        ({"a": [1, {"b": None}]}, [{"op": "test", "path": "/a/1/b", "value": None}], {"a": [1, {"b": None}]}),
        ({"": 1}, [{"op": "test", "path": "/", "value": 1}], {"": 1}),
    ],
)
def test_json_patch_does_its_operations(obj: Any, ops: Any, want: Any) -> None:
    assert json_patch(obj, ops) == want


@pytest.mark.parametrize(
    "op",
    [
        {"op": "remove", "path": "/nope"},
        {"op": "add", "path": "/nope/deeper", "value": 1},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "remove", "path": "/list/7"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "", "value": 5},
        {"op": "replace", "path": "nopath", "value": {}},
        {"op": "add", "path": "/text/x", "value": 1},
        {"op": "test", "path": "/one", "value": 2},
        {"op": "test", "path": "/one", "value": True},
        {"op": "move", "from": "/nope", "path": "/x"},
        {"op": "move", "from": "/map", "path": "/map/x"},
        {"op": "copy", "path": "/x"},
        {"op": "spam", "path": "/x"},
        {"path": "/x"},
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused_whole(op: Any) -> None:
    obj = {"one": 1, "list": [1], "map": {}, "text": "t"}
    before = copy.deepcopy(obj)
    with pytest.raises(PatchError) as refused:
        json_patch(obj, [{"op": "add", "path": "/first", "value": 1}, op])
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert obj == before


@pytest.mark.parametrize("ops", [{}, "x", [5], ["x"], None])
def test_a_json_patch_of_another_form_is_a_bad_request(ops: Any) -> None:
    with pytest.raises(PatchError) as refused:
        json_patch({}, ops)
    assert refused.value.code == 400


def test_a_strategic_patch_changes_neither_input() -> None:
    kind = Kinds().find("/apis/apps/v1/namespaces/x/deployments/d")[0]
    obj = {"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}}}}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "Y"}]}, {"name": "b"}]}}}}
    before = copy.deepcopy((obj, patch))
    made = strategic_merge(obj, patch, builtin_schema(kind), records("schemas"))
    assert (obj, patch) == before
    containers = made["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in containers] == ["a", "b"]
    assert [item["name"] for item in containers[0]["env"]] == ["Y", "X"]
