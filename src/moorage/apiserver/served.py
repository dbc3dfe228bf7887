"""What the server knows of one served kind: its schema, verbs, names and columns, as plain frozen data.

Enters: nothing. Leaves: `ServedType`, read by verbs, discovery, OpenAPI and tables. It must hold no state and do no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moorage.core.meta import JsonObject, ResourceType


@dataclass(frozen=True, eq=False)
class ServedType:
    """One kind that the server serves, built in or defined by a CustomResourceDefinition.

    Attributes:
        schema: OpenAPI v3 schema of the whole object; `$ref`s point into `definitions`.
        subresources: names such as `status`, `scale`.
        columns: built-ins: rows of records/kubernetes/tables.json; CRDs: their additionalPrinterColumns as given.
        definitions: component schemas by name, without the `#/components/schemas/` prefix.
    """

    resource: ResourceType
    schema: JsonObject
    subresources: frozenset[str] = frozenset()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    list_kind: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[JsonObject, ...] = ()
    definitions: Mapping[str, JsonObject] = field(default_factory=dict)
