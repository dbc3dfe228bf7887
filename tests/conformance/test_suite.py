"""The suite itself: names stay the same where things are the same, and no difference slips through."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.compare import Difference, agreements, compare, recorded, unused
from tests.conformance.normal import Normaliser
from tests.conformance.play import Record, definition, failure
from tests.conformance.scenario import Case, Step, areas, fill

UID = "6f1f4c1e-0000-4000-8000-00000000000{}"


def thing(name: str, uid: int, version: str) -> dict[str, Any]:
    return {"kind": "Thing", "metadata": {"name": name, "uid": UID.format(uid), "resourceVersion": version}}


def case(**said: Any) -> Case:
    return Case("area", "case", (Step("step", said),))


def facets(real: dict[str, Any], ours: dict[str, Any], **said: Any) -> list[str]:
    return [found.facet for found in compare(case(**said), [Record("step", real)], [Record("step", ours)])]


def test_an_unchanged_version_keeps_its_name_and_a_new_one_gets_another() -> None:
    """So that a write that changes nothing is told from one that does."""
    normal = Normaliser({})
    first, same, later = (normal.tree(thing("a", 1, version)) for version in ("7", "7", "9"))
    assert first == same
    assert later["metadata"]["resourceVersion"] == "<version 2>"
    assert normal.tree(thing("b", 2, "8"))["metadata"]["resourceVersion"] == "<version 1>"


def test_a_uid_is_called_by_its_object_wherever_it_stands() -> None:
    """Owner references and messages show whom they mean; a second object of the same name is another."""
    normal = Normaliser({})
    normal.tree(thing("a", 1, "7"))
    assert normal.text(f"owned by {UID.format(1)}") == "owned by <uid of Thing a>"
    assert normal.tree(thing("a", 2, "8"))["metadata"]["uid"] == "<uid of Thing a, number 2>"


def test_times_of_the_run_are_not_compared_and_times_of_a_scenario_are() -> None:
    """Scenarios use years up to 2024."""
    normal = Normaliser({})
    assert normal.text("2026-11-30T01:02:03Z") == "<time>"
    assert normal.text("2020-01-01T00:00:00.000000Z") == "2020-01-01T00:00:00.000000Z"


def test_a_chosen_name_is_random_in_objects_and_messages() -> None:
    """After a request with generateName."""
    normal = Normaliser({})
    normal.expect({"metadata": {"generateName": "web-"}})
    assert normal.text('configmaps "web-x7k2p" not found') == 'configmaps "web-<random>" not found'


def test_the_order_of_causes_is_free_but_each_is_compared() -> None:
    """Go's maps have no order; the message lists the same causes."""
    one, two = ({"reason": "R", "message": text, "field": field} for text, field in (("m1", "a"), ("m2", "b")))
    shown = [
        failure({"message": text, "details": {"causes": causes}})
        for text, causes in (("x is invalid: [a: m1, b: m2]", [one, two]), ("x is invalid: [b: m2, a: m1]", [two, one]))
    ]
    assert shown[0] == shown[1]
    assert shown[0]["causes"] == [["a", "R"], ["b", "R"]]


def test_every_part_of_an_answer_is_compared_unless_the_step_says_otherwise() -> None:
    """A facet that only one server has is a difference, too."""
    real, ours = {"status": 200, "object": {"a": 1}, "warnings": ["w"]}, {"status": 200, "object": {"a": 2}}
    assert facets(real, ours) == ["object a", "warnings"]
    assert facets(real, ours, but=["object*"]) == ["warnings"]
    rows = ({"object": {"cells": [1, age]}} for age in ("6y335d", "6y336d"))
    assert facets(*rows, but=["object cells[1]"]) == []
    assert facets(real | {"status": 404}, ours) == ["status"]
    assert facets({"status": 1, "object": True}, {"status": 1, "object": 1}) == ["object"]


def test_a_missing_step_is_a_difference() -> None:
    """A server on which a case breaks off does not pass."""
    assert [found.facet for found in compare(case(), [Record("step", {})], [])] == ["steps"]


def test_a_500_that_we_answer_with_4xx_is_agreed_and_the_reverse_is_not() -> None:
    """embedded.md, Points 3."""
    bad, good = {"status": 500, "message": "m"}, {"status": 400, "message": "n"}
    assert [found.accepted != "" for found in compare(case(), [Record("step", bad)], [Record("step", good)])] == [True]
    assert [found.accepted != "" for found in compare(case(), [Record("step", good)], [Record("step", bad)])] == [False]


def test_every_agreed_difference_says_why() -> None:
    """With the place in the spec or a whole sentence."""
    assert all(len(entry["because"]) > 30 for entry in agreements())


def test_variables_are_filled_in_and_other_dollars_stay() -> None:
    """Strategic merge patches have keys that begin with a dollar."""
    assert fill({"$patch": "${x.y}", "${ns}": "a ${x.y} b"}, {"x": {"y": 5}, "ns": "n"}) == {"$patch": 5, "n": "a 5 b"}


def test_a_short_definition_becomes_a_whole_one() -> None:
    """Names follow from the kind."""
    made = definition("g.test", {"kind": "Sea", "scope": "Cluster", "status": {}})
    assert made["metadata"]["name"] == "seas.g.test"
    assert made["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_cases_do_not_share_namespaces() -> None:
    """Each case has a namespace and an API group of its own."""
    cases = [case for area in areas() for case in area.cases]
    assert len({case.namespace for case in cases}) == len(cases)


@pytest.mark.parametrize("area", areas(), ids=lambda area: area.name)
def test_every_case_is_recorded_step_for_step(area: Any) -> None:
    """A scenario that was changed is recorded anew (`make conformance`) in the same commit."""
    for case in area.cases:
        assert [record.step for record in recorded(case) or []] == [step.name for step in case.steps], case.id


def test_an_agreement_that_no_difference_needs_is_named() -> None:
    """So that accepted.yaml says what is, not what was."""
    entries = agreements()
    needed = [Difference("a", "c", "s", "f", "1", "2", entry["because"], at) for at, entry in enumerate(entries)]
    assert unused(needed) == []
    (left,) = unused(needed[1:])
    assert left.endswith(entries[0]["because"])


def test_the_order_in_which_fields_were_taken_over_within_a_second_is_free() -> None:
    one, two = ({"manager": "m", "operation": "Update", "subresource": name} for name in ("", "status"))
    real, ours = ({"object": {"metadata": {"managedFields": list(order)}}} for order in ((one, two), (two, one)))
    assert facets(real, ours) == []
    assert facets(real, {"object": {"metadata": {"managedFields": [one, one]}}}) != []
