"""Server-side apply and field owners: what must hold whatever is applied."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from moorage.apiserver.apply import ApplyConflict, ApplyInvalid, TypeMap, apply_object, track_update
from moorage.apiserver.apply.fieldset import FieldSet, path_text

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "number": {"type": "integer"},
                "plain": {"type": "array", "items": {"type": "string"}},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "pairs": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}},
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
TYPES = TypeMap.of(SCHEMA, {})
WORDS = st.sampled_from(["a", "b", "c"])
ITEM = st.fixed_dictionaries({"name": WORDS}, optional={"v": st.integers(0, 2)})
SPEC = st.fixed_dictionaries(
    {},
    optional={
        "text": WORDS,
        "number": st.integers(0, 2),
        "plain": st.lists(WORDS, max_size=2),
        "tags": st.lists(WORDS, min_size=1, max_size=3, unique=True),
        "pairs": st.dictionaries(WORDS, WORDS, max_size=2),
        "whole": st.dictionaries(WORDS, WORDS, max_size=2),
        "items": st.lists(ITEM, min_size=1, max_size=3, unique_by=lambda item: item["name"]),
    },
)


def config(spec: Any, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "t/v1", "kind": "T", "metadata": {"name": "x", **meta}, "spec": spec}


def applied(live: Any, spec: Any, manager: str, *, force: bool = True, now: str = "2020-01-01T00:00:00Z") -> Any:
    return apply_object(live, config(spec), manager=manager, force=force, types=TYPES, now=now)


def conflict(live: Any, spec: Any, manager: str) -> ApplyConflict | None:
    """The conflict of an apply without force, or None."""
    try:
        applied(live, spec, manager, force=False)
    except ApplyConflict as refused:
        return refused
    return None


def owners(obj: Any) -> dict[str, FieldSet]:
    entries = obj["metadata"].get("managedFields") or ()
    return {entry["manager"]: FieldSet.from_wire(entry["fieldsV1"]) for entry in entries}


@given(SPEC)
def test_the_same_apply_twice_leaves_the_object_as_it_was(spec: Any) -> None:
    once = applied(None, spec, "a")
    assume(owners(once))
    assert applied(once, spec, "a", now="2021-01-01T00:00:00Z") == once


@given(SPEC, SPEC)
def test_an_apply_changes_neither_the_live_object_nor_the_configuration(first: Any, second: Any) -> None:
    live, wanted = applied(None, first, "a"), config(second)
    before = copy.deepcopy((live, wanted))
    apply_object(live, wanted, manager="b", force=True, types=TYPES, now="2021-01-01T00:00:00Z")
    assert (live, wanted) == before


@given(SPEC, SPEC)
def test_what_a_lone_manager_gives_up_is_gone(first: Any, second: Any) -> None:
    """After two applies of one manager the object says what the second says, apart from order."""
    live = applied(None, first, "a")
    assume(owners(live))
    made = applied(live, second, "a")
    assert sorted_lists(made.get("spec") or {}) == sorted_lists(second)


def sorted_lists(spec: Any) -> Any:
    made = dict(spec)
    if "tags" in made:
        made["tags"] = sorted(made["tags"])
    if "items" in made:
        made["items"] = sorted(made["items"], key=lambda item: item["name"])
    return {name: value for name, value in made.items() if value not in ([], {})}


@given(SPEC, SPEC)
def test_giving_everything_up_brings_back_what_the_other_had(first: Any, second: Any) -> None:
    """B applies only fields that do not conflict, then gives them up: A's values stand."""
    live = applied(None, first, "a")
    assume(owners(live) and conflict(live, second, "b") is None)
    both = applied(live, second, "b", force=False)
    left = applied(both, {}, "b", force=False)
    assert sorted_lists(left.get("spec") or {}) == sorted_lists(live.get("spec") or {})
    assert owners(left)["a"] == owners(live)["a"]


@given(SPEC, SPEC)
def test_after_a_forced_apply_no_changed_field_has_two_owners_of_different_mind(first: Any, second: Any) -> None:
    made = applied(applied(None, first, "a"), second, "b")
    assume("b" in owners(made))
    again = applied(made, second, "b", force=False)
    assert again == made


@given(SPEC, SPEC)
def test_a_conflict_names_the_other_manager_and_changes_nothing(first: Any, second: Any) -> None:
    live = applied(None, first, "a")
    refused = conflict(live, second, "b")
    assume(owners(live) and refused)
    assert refused is not None
    assert all(message == 'conflict with "a"' for _, message in refused.causes)
    assert f"{len(refused.causes)} conflict" in refused.message


@given(SPEC, SPEC)
@settings(max_examples=200)
def test_an_update_owns_exactly_what_it_changed(first: Any, second: Any) -> None:
    """Nobody else owns a field that the update set anew; fields that went away are owned by nobody."""
    live = applied(None, first, "a")
    new = {**copy.deepcopy(live), "spec": second}
    made = track_update(live, new, manager="u", types=TYPES, now="2021-01-01T00:00:00Z")
    found = owners(made)
    if "u" in found and "a" in found:
        assert not found["u"].intersection(found["a"])
    again = track_update(made, copy.deepcopy(made), manager="v", types=TYPES, now="2022-01-01T00:00:00Z")
    assert again == made


@given(SPEC)
def test_a_field_set_survives_its_wire_form(spec: Any) -> None:
    for found in owners(applied(None, spec, "a")).values():
        assert FieldSet.from_wire(found.to_wire()) == found


def test_an_eleventh_updater_joins_the_oldest_into_ancient_changes() -> None:
    live: Any = {"apiVersion": "t/v1", "kind": "T", "metadata": {"name": "x"}, "spec": {"pairs": {"k": "0"}}}
    live = track_update(None, live, manager="m0", types=TYPES, now="2020-01-01T00:00:00Z")
    for number in range(1, 13):
        new = copy.deepcopy(live)
        new["spec"]["pairs"][f"k{number}"] = "v"
        live = track_update(live, new, manager=f"m{number}", types=TYPES, now=f"2020-01-{number + 1:02}T00:00:00Z")
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(names) == 10
    assert "ancient-changes" in names
    assert "m0" not in names


def test_the_first_apply_to_an_untracked_object_names_its_past() -> None:
    live: Any = {**config({"text": "a"}), "metadata": {"name": "x"}}
    with pytest.raises(ApplyConflict, match=r'conflict with "before-first-apply" using t/v1: \.spec\.text'):
        applied(live, {"text": "b"}, "a", force=False)


def test_updates_of_an_untracked_object_stay_untracked() -> None:
    live: Any = {**config({"text": "a"}), "metadata": {"name": "x"}}
    made = track_update(live, config({"text": "b"}), manager="m", types=TYPES, now="2020-01-01T00:00:00Z")
    assert "managedFields" not in made["metadata"]


def test_fields_that_name_or_identify_an_object_have_no_owner() -> None:
    made = apply_object(
        None,
        config({}, namespace="n", labels={"a": "b"}),
        manager="a",
        force=True,
        types=TYPES,
        now="2020-01-01T00:00:00Z",
    )
    fields = made["metadata"]["managedFields"][0]["fieldsV1"]
    assert fields == {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {}}


def test_status_has_its_own_owners() -> None:
    live = applied(None, {"text": "a"}, "a")
    wanted = {**config({"text": "no"}), "status": {"phase": "Up"}}
    made = apply_object(
        live, wanted, manager="a", force=False, types=TYPES, now="2020-01-01T00:00:00Z", subresource="status"
    )
    assert made["spec"] == {"text": "a"}
    assert [entry.get("subresource") for entry in made["metadata"]["managedFields"]] == [None, "status"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"items": [{"name": "a"}, {"name": "a"}]}, '.spec.items: duplicate entries for key [name="a"]'),
        (
            {"items": [{"v": 1}]},
            ".spec.items: element 0: associative list with keys has an element that omits key field",
        ),
        ({"nope": 1}, ".spec.nope: field not declared in schema"),
        ({"number": "x"}, ".spec.number: expected numeric"),
        ({"pairs": []}, ".spec.pairs: expected map"),
        ({"plain": {}}, ".spec.plain: expected list"),
    ],
)
def test_a_configuration_that_cannot_be_merged_is_refused_with_its_field(spec: Any, why: str) -> None:
    with pytest.raises(ApplyInvalid) as refused:
        applied(None, spec, "a")
    assert why in str(refused.value)


def test_a_path_reads_as_in_conflicts() -> None:
    path = ("f:spec", 'k:{"port":80,"protocol":"TCP"}', "f:x", 'v:"a"', "i:3")
    assert path_text(path) == '.spec[port=80,protocol="TCP"].x[="a"][3]'


def test_kubectls_annotation_follows_its_server_side_apply() -> None:
    name = "kubectl.kubernetes.io/last-applied-configuration"
    live = track_update(
        None,
        config({"text": "a"}, annotations={name: "{}"}),
        manager="kubectl-client-side-apply",
        types=TYPES,
        now="2020-01-01T00:00:00Z",
    )
    made = applied(live, {"text": "b"}, "kubectl")
    assert '"text":"b"' in made["metadata"]["annotations"][name]


def test_who_owned_a_part_of_what_became_atomic_owns_the_whole() -> None:
    live = applied(None, {"pairs": {"a": "b"}}, "a")
    schema = copy.deepcopy(SCHEMA)
    schema["properties"]["spec"]["properties"]["pairs"]["x-kubernetes-map-type"] = "atomic"
    types = TypeMap.of(schema, {})
    with pytest.raises(ApplyConflict) as refused:
        apply_object(
            live, config({"pairs": {"c": "d"}}), manager="b", force=False, types=types, now="2021-01-01T00:00:00Z"
        )
    assert refused.value.causes == ((".spec.pairs", 'conflict with "a"'),)
