"""Tables print what kube-apiserver printed for the same objects (cases/tables.json)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from moorage.apiserver.served import ServedType
from moorage.apiserver.table import to_table
from moorage.apiserver.table.jsonpath import find

from .pipeline import Kinds, records
from .test_cases import CASES

NOW = datetime(2020, 1, 1, tzinfo=UTC)
AGE = re.compile(r"\d+(s|m|h|d|y)(\d+[smhd])?|<invalid>")


def recorded() -> list[Any]:
    steps = json.loads((CASES / "tables.json").read_text())
    kinds = Kinds()
    for step in steps:
        if step["answer"].get("kind") == "CustomResourceDefinition":
            kinds.crds[step["answer"]["spec"]["group"], step["answer"]["spec"]["names"]["plural"]] = step["answer"]
    return [
        pytest.param(kinds, step, id=step["do"].split("/", 2)[2]) for step in steps if step["do"].startswith("TABLE")
    ]


def served_type(kinds: Kinds, path: str) -> ServedType:
    rt, schema, definitions, _ = kinds.find(path)
    crd = kinds.crds.get((rt.group, rt.plural))
    if crd is not None:
        columns = crd["spec"]["versions"][0].get("additionalPrinterColumns") or ()
        return ServedType(rt, schema, columns=tuple(columns), crd=crd)
    columns = records("tables")[f"{rt.group}/{rt.version}/{rt.plural}" if rt.group else f"{rt.version}/{rt.plural}"]
    return ServedType(rt, schema, columns=tuple(columns), definitions=definitions)


def without_ages(cells: list[Any]) -> list[Any]:
    return [AGE.sub("AGE", cell) if isinstance(cell, str) else cell for cell in cells]


@pytest.mark.parametrize(("kinds", "step"), recorded())
def test_a_table_has_the_columns_and_cells_that_kubernetes_printed(kinds: Kinds, step: Any) -> None:
    served = served_type(kinds, step["do"].split(" ")[1])
    found = step["objects"]
    items = found.get("items", [found])
    meta = {"metadata": {"creationTimestamp": None}}
    objects = [
        {"apiVersion": served.resource.api_version, "kind": served.resource.kind, **meta, **item} for item in items
    ]
    made = to_table(served, objects, now=NOW, list_meta={}, include="Metadata")
    want = step["answer"]
    names = ("name", "type", "format", "priority")
    assert [[c[n] for n in names] for c in made["columnDefinitions"]] == [
        [c[n] for n in names] for c in want["columnDefinitions"]
    ]
    for row, wanted in zip(made["rows"], want["rows"], strict=True):
        assert without_ages(row["cells"]) == without_ages(wanted["cells"])
        assert row.get("conditions") == wanted.get("conditions")
        assert row["object"]["metadata"]["name"] == wanted["object"]["metadata"]["name"]


@pytest.mark.parametrize(
    ("path", "want"),
    [
        (".a.b", [1]),
        ("{.a.b}", [1]),
        (".list[0].n", ["x"]),
        (".list[-1].n", ["y"]),
        (".list[*].n", ["x", "y"]),
        ('.list[?(@.n=="y")].v', [2]),
        (".list[?(@.v>1)].n", ["y"]),
        ('.list[?(@.n!="y")].n', ["x"]),
        (".dotted\\.name", [5]),
        ("['dotted.name']", [5]),
        (".none.deeper", []),
        (".list[7]", []),
    ],
)
def test_a_json_path_finds_values(path: str, want: list[Any]) -> None:
    obj = {"a": {"b": 1}, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "dotted.name": 5}
    assert find(path, obj) == want


def test_a_json_path_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="unrecognized"):
        find(".a[", {})
