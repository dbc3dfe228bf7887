"""OpenAPI documents hold together and say what kubectl looks for before it validates, explains or applies."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from moorage.apiserver.openapi import openapi_v2, openapi_v3, openapi_v3_index
from moorage.apiserver.openapi.components import references
from moorage.apiserver.served import ServedType
from moorage.core.meta import ResourceType

from .pipeline import builtin_schema, records

CRD: dict[str, Any] = {"spec": {"versions": [{"name": "v1"}]}}
WIDGET = ServedType(
    ResourceType("engine.test", "v1", "Widget", "widgets"),
    {
        "type": "object",
        "properties": {
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "default": 1, "description": "How big."},
                    "either": {"x-kubernetes-int-or-string": True},
                    "maybe": {"type": "string", "nullable": True},
                    "default": {"type": "string"},
                },
            },
        },
    },
    frozenset({"status", "scale"}),
    list_kind="WidgetList",
    crd=CRD,
)


@cache
def types() -> tuple[ServedType, ...]:
    made = [WIDGET]
    for group_version, rows in records("resources").items():
        group, _, version = group_version.rpartition("/")
        for row in rows:
            if "/" not in row["name"] and "list" in row["verbs"]:
                rt = ResourceType(group, version, row["kind"], row["name"], row["namespaced"])
                subs = {r["name"].split("/")[1] for r in rows if r["name"].startswith(f"{row['name']}/")}
                schema, definitions = builtin_schema(rt), records("schemas")
                made.append(
                    ServedType(
                        rt, schema, frozenset(subs), tuple(row["verbs"]), f"{row['kind']}List", definitions=definitions
                    )
                )
    return tuple(made)


PLACES = sorted(openapi_v3_index(types())["paths"])


def test_the_index_names_each_group_and_version_with_the_hash_of_its_document() -> None:
    index = openapi_v3_index(types())["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/batch/v1", "apis/engine.test/v1"} <= index.keys()
    assert index["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")
    fewer = openapi_v3_index(types()[1:])["paths"]
    assert fewer["apis/apps/v1"] == index["apis/apps/v1"], "another kind's document leaves the URL alone"


@pytest.mark.parametrize("place", PLACES)
def test_each_reference_of_a_document_leads_to_a_component_of_it(place: str) -> None:
    document = openapi_v3(types(), place)
    assert set(references(document)) <= document["components"]["schemas"].keys()


def test_a_group_that_is_not_served_has_no_document() -> None:
    with pytest.raises(KeyError):
        openapi_v3(types(), "apis/none.test/v1")


@pytest.mark.parametrize(
    "path",
    [
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
        "/apis/engine.test/v1/namespaces/{namespace}/widgets/{name}",
    ],
)
def test_a_patch_operation_says_that_it_validates_fields_and_names_its_kind(path: str) -> None:
    patch = openapi_v3(types(), "/".join(path.split("/")[1:4]))["paths"][path]["patch"]
    assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= {item["name"] for item in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"]["kind"] in ("Deployment", "Widget")
    media = patch["requestBody"]["content"]
    assert ("application/strategic-merge-patch+json" in media) == ("apps" in path)


def test_a_custom_kind_has_typed_metadata_and_its_own_fields() -> None:
    schemas = openapi_v3(types(), "engine.test/v1")["components"]["schemas"]
    widget = schemas["test.engine.v1.Widget"]
    assert widget["properties"]["metadata"]["allOf"][0]["$ref"].endswith("meta.v1.ObjectMeta")
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "engine.test", "version": "v1", "kind": "Widget"}]
    assert widget["properties"]["spec"]["properties"]["size"]["description"] == "How big."
    assert schemas["test.engine.v1.WidgetList"]["properties"]["items"]["items"]["$ref"].endswith("v1.Widget")


def test_subresources_have_paths_and_a_scale_speaks_of_scales() -> None:
    paths = openapi_v3(types(), "engine.test/v1")["paths"]
    base = "/apis/engine.test/v1/namespaces/{namespace}/widgets/{name}"
    assert {f"{base}/status", f"{base}/scale"} <= paths.keys()
    assert paths[f"{base}/scale"]["get"]["x-kubernetes-group-version-kind"]["kind"] == "Scale"


def test_the_second_version_uses_its_own_references_and_no_word_of_the_third() -> None:
    document = openapi_v2(types())
    refs = set(references(document))
    assert all(ref.startswith("#/definitions/") for ref in refs)
    assert {ref.removeprefix("#/definitions/") for ref in refs} <= document["definitions"].keys()
    spec = document["definitions"]["test.engine.v1.Widget"]["properties"]["spec"]["properties"]
    assert spec["size"] == {"type": "integer", "description": "How big."}
    assert spec["either"] == {"x-kubernetes-int-or-string": True}
    assert spec["default"] == {"type": "string"}, "a field that is called like a keyword stays"
    strategy = document["definitions"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
