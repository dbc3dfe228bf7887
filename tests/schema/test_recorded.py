"""The schema engine gives the answers that a real kube-apiserver 1.36.3 gave to the same objects and CRDs."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from moorage.schema import Structural, check, validate_crd_schema

RECORDED = Path(__file__).parent / "recorded"
OBJECTS = json.loads((RECORDED / "objects.json").read_text())
CRDS = json.loads((RECORDED / "crds.json").read_text())
COMPILED = [Structural.compile(schema) for schema in OBJECTS["schemas"]]


def whole(part: dict[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "x.test/v1", "kind": "T", "metadata": {"name": "o1", "namespace": "default"}}
    return {**head, **copy.deepcopy(part)}


def causes(errors: Any) -> list[list[str]]:
    shown = [error.cause() for error in errors]
    return sorted([item["reason"], item["field"], item["message"]] for item in shown)


@pytest.mark.parametrize(
    "case", OBJECTS["cases"], ids=[f"{item['name']}-{at}" for at, item in enumerate(OBJECTS["cases"])]
)
def test_an_object_gets_the_causes_warnings_and_stored_form_that_the_real_server_gave(case: dict[str, Any]) -> None:
    structural, obj = COMPILED[case["schema"]], whole(case["object"])
    old = whole(case["old"]) if "old" in case else None
    unknown = structural.prune(obj)
    structural.default(obj)
    if old is not None:
        structural.prune(old)
        structural.default(old)
    verdict = check(structural, obj, old)
    assert causes(verdict.errors) == sorted(case["causes"])
    assert sorted([f'unknown field "{path}"' for path in unknown] + list(verdict.warnings)) == case["warnings"]
    if case["ok"]:
        assert obj.get("spec") == case["stored"]


@pytest.mark.parametrize("case", CRDS, ids=[f"crd-{at}" for at in range(len(CRDS))])
def test_a_schema_is_judged_as_the_real_server_judged_it(case: dict[str, Any]) -> None:
    assert causes(validate_crd_schema(case["schema"])) == sorted(case["causes"])
