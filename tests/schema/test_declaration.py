"""One declaration gives the CRD, the parser and the engine."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

import pytest

from moorage.schema import (
    Admission,
    Column,
    Kind,
    Model,
    Resource,
    Rule,
    StoredCondition,
    Verdict,
    check,
    conditions_field,
    field,
    validate_crd,
)


class SecretRef(Model):
    """A key of a Secret."""

    name: str = field(doc="Name of the Secret.", min_length=1)
    key: str | None = field(None, doc="Key in the Secret.")


class Pool(Model):
    """Connections that are kept open."""

    enabled: bool = field(True, doc="Whether connections are kept.")
    size: int | None = field(None, doc="How many.", format="int32", minimum=1)


class Spec(Model):
    """What a berth is."""

    type: Literal["LDAP", "OIDC"] = field(doc="Kind of berth.", rules=(Rule("self == oldSelf", "type is immutable"),))
    tree_dn: str | None = field(None, doc="Where people stand.", alias="treeDN", max_length=8)
    secret_ref: SecretRef | None = field(None, doc="Where the password is.")
    pool: Pool = field(Pool(), doc="Connections.")
    scopes: tuple[str, ...] = field(("a", "b"), doc="Scopes.", list_type="set", max_items=4)
    options: dict[str, str] = field({}, doc="Options.", max_properties=2, default_in_schema=False)
    port: int | str | None = field(None, doc="A port or its name.")
    extra: dict[str, Any] | None = field(None, doc="Anything.")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("(self.type == 'LDAP') == has(self.treeDN)", "treeDN belongs to LDAP, and to it alone"),
    )


class Status(Model):
    """What was found."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int = field(0, doc="Generation looked at.", default_in_schema=False)


class Berth(Resource):
    """A place to moor."""

    spec: Spec = field(doc="What is wanted.")
    status: Status = field(doc="What is.")


KIND: Kind[Berth] = Kind(
    "moor.test", "v1alpha1", "Berth", "berths", Berth, "A place to moor.",
    (Column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),), ("be",),
)  # fmt: skip


def berth(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "moor.test/v1alpha1",
        "kind": "Berth",
        "metadata": {"name": "b", "namespace": "n"},
        "spec": {"type": "LDAP", "treeDN": "dc=x", **spec},
    }


def test_the_crd_is_one_that_the_checker_admits() -> None:
    assert validate_crd(KIND.crd()) == []


def test_the_crd_is_the_same_text_on_each_run() -> None:
    assert json.dumps(KIND.crd()) == json.dumps(KIND.crd())


def test_the_schema_says_what_the_declaration_says() -> None:
    spec = KIND.schema()["properties"]["spec"]
    assert spec["required"] == ["type"]
    assert spec["properties"]["type"]["enum"] == ["LDAP", "OIDC"]
    assert spec["properties"]["treeDN"] == {"type": "string", "description": "Where people stand.", "maxLength": 8}
    assert spec["properties"]["scopes"]["default"] == ["a", "b"]
    assert spec["properties"]["pool"]["default"] == {}
    assert "default" not in spec["properties"]["options"]
    assert spec["properties"]["port"]["x-kubernetes-int-or-string"] is True
    assert spec["properties"]["extra"]["x-kubernetes-preserve-unknown-fields"] is True
    assert spec["x-kubernetes-validations"][0]["message"] == "treeDN belongs to LDAP, and to it alone"
    conditions = KIND.schema()["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_defaults_reach_into_structures_and_the_typed_form_reads_back_the_same_wire_form() -> None:
    obj = berth()
    KIND.structural.default(obj)
    assert obj["spec"]["pool"] == {"enabled": True}
    typed = KIND.parse(obj)
    assert typed.spec.pool.enabled
    assert typed.status.conditions == ()
    assert KIND.to_wire(typed) == obj


def test_metadata_that_we_do_not_name_survives_a_round_trip() -> None:
    obj = berth()
    obj["metadata"] |= {"managedFields": [{"manager": "x"}], "generateName": "b-"}
    assert KIND.to_wire(KIND.parse(obj))["metadata"] == obj["metadata"]


def test_an_object_is_frozen() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        KIND.parse(berth()).spec.tree_dn = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({"type": "X"}, ['spec.type: Unsupported value: "X": supported values: "LDAP", "OIDC"']),
        ({"type": "OIDC"}, ["spec: Invalid value: treeDN belongs to LDAP, and to it alone"]),
        ({"treeDN": "123456789"}, ["spec.treeDN: Too long: may not be more than 8 bytes"]),
        ({"scopes": ["a", "a"]}, ['spec.scopes[1]: Duplicate value: "a"']),
        ({"secretRef": {}}, ["spec.secretRef.name: Required value"]),
        ({"options": {"a": "1", "b": "2", "c": "3"}}, ["spec.options: Too many: 3: must have at most 2 items"]),
        (
            {"port": []},
            ['spec.port: Invalid value: "array": spec.port in body must be of type integer,string: "array"'],
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_rule(spec: dict[str, Any], messages: list[str]) -> None:
    found = [error.message for error in check(KIND.structural, berth(**spec)).errors]
    assert [item for item in found if not item.startswith("<nil>")] == messages


def test_a_type_cannot_change_between_two_writes() -> None:
    old, new = berth(), berth(type="OIDC")
    del new["spec"]["treeDN"]
    messages = [error.message for error in check(KIND.structural, new, old).errors]
    assert messages == ['spec.type: Invalid value: "OIDC": type is immutable']


def test_a_second_version_is_refused_with_what_to_do() -> None:
    crd = KIND.crd()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v1"})
    assert [error.message for error in validate_crd(crd)] == [
        "spec.versions: Forbidden: Moorage serves one version of each custom resource: "
        "several versions need conversion; declare one"
    ]


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({"group": "x"}, ["metadata.name", "spec.group"]),
        ({"scope": "World"}, ["spec.scope"]),
        ({"versions": []}, ["spec.versions", "status.storedVersions"]),
        (
            {"names": {"kind": "A_b", "plural": "berths"}},
            [f"spec.names.{name}" for name in ("singular", "kind", "listKind")],
        ),
        ({"preserveUnknownFields": True}, ["spec.preserveUnknownFields"]),
    ],
)
def test_a_crd_with_wrong_names_is_refused_at_the_field(change: dict[str, Any], paths: list[str]) -> None:
    crd = KIND.crd()
    crd["spec"] |= change
    assert [error.path for error in validate_crd(crd)] == paths


def test_webhook_paths_come_from_the_kind() -> None:
    admission = Admission(KIND, lambda obj: obj, lambda review: Verdict())
    assert admission.mutate_path == "/mutate-moor-test-v1alpha1-berth"
    assert admission.validate_path == "/validate-moor-test-v1alpha1-berth"
    assert KIND.resource.group_resource == "berths.moor.test"
