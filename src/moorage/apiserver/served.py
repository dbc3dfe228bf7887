"""What the server knows of one served kind: its schema, verbs, names and columns, as plain frozen data.

Enters: nothing. Leaves: `ServedType`, read by verbs, discovery, OpenAPI and tables. It must hold no state and do no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import Compiler, Structural


@dataclass(frozen=True, eq=False)
class ServedType:
    """One kind that the server serves, built in or defined by a CustomResourceDefinition.

    Attributes:
        schema: OpenAPI v3 schema of the whole object; `$ref`s point into `definitions`.
        subresources: names such as `status`, `scale`.
        columns: built-ins: rows of records/kubernetes/tables.json; CRDs: their additionalPrinterColumns as given.
        definitions: component schemas by name, without the `#/components/schemas/` prefix.
        compiler: compiles the schemas of all kinds that share the definitions.
        storage: the name under which objects are stored; two views of one object (Events) share it.
        since: objects stored up to this revision may lack what the schema says now, so reads prune and default them.
        crd: the stored CustomResourceDefinition (`spec.versions[0]` is the served one), None for built-ins.
    """

    resource: ResourceType
    schema: JsonObject
    subresources: frozenset[str] = frozenset()
    verbs: tuple[str, ...] = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
    list_kind: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[JsonObject, ...] = ()
    definitions: Mapping[str, JsonObject] = field(default_factory=dict)
    storage: str = ""
    compiler: Compiler | None = None
    crd: JsonObject | None = None
    since: int = 0

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition defines this kind."""
        return self.crd is not None

    @property
    def version(self) -> JsonObject:
        """The served entry of `spec.versions`; empty for built-ins."""
        versions: list[JsonObject] = self.crd["spec"]["versions"] if self.crd else [{}]
        return versions[0]

    @cached_property
    def structural(self) -> Structural:
        """The compiled schema, made at first use; one that is already there serves again."""
        return _of_crd(json.dumps(self.schema)) if self.compiler is None else Structural.by(self.compiler, self.schema)

    @cached_property
    def selectable_fields(self) -> frozenset[str]:
        """Field paths (without the leading dot) that field selectors may name, besides metadata.name and namespace."""
        fields = self.version.get("selectableFields") or ()
        return frozenset(item["jsonPath"].removeprefix(".") for item in fields)


@lru_cache(maxsize=64)
def _of_crd(schema: str) -> Structural:
    """A definition is served anew whenever anything of it changes, its schema rarely does."""
    return Structural.compile(json.loads(schema))
