"""One declared kind: its names, its model, its CRD.

Enters: a room's declaration. Leaves: the ResourceType, the CRD, typed objects from the wire and back. It reads no
object's meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from moorage.core.meta import JsonObject, ResourceType

from .crd import resource_schema
from .model import Resource
from .rule import Column

if TYPE_CHECKING:
    from .structural import Structural

R = TypeVar("R", bound=Resource)


@dataclass(frozen=True)
class Kind(Generic[R]):
    """A namespaced kind that we define. `doc` is one sentence; `columns` are what `kubectl get` prints."""

    group: str
    version: str
    kind: str
    plural: str
    model: type[R]
    doc: str
    columns: Sequence[Column] = ()
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()

    @cached_property
    def resource(self) -> ResourceType:
        """How the kind is addressed on a server."""
        return ResourceType(self.group, self.version, self.kind, self.plural)

    def schema(self) -> JsonObject:
        """The structural OpenAPI v3 schema; the caller may change it."""
        return {**resource_schema(self.model), "description": self.doc}

    @cached_property
    def structural(self) -> Structural:
        """The compiled schema, shared by all who check objects of this kind."""
        from .structural import Structural

        return Structural.compile(self.schema())

    def crd(self) -> JsonObject:
        """The CustomResourceDefinition as it is applied to a server."""
        version: JsonObject = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": self.schema()},
        }
        if "status" in self.model.model_fields:
            version["subresources"] = {"status": {}}
        if self.columns:
            version["additionalPrinterColumns"] = [column.to_wire() for column in self.columns]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.resource.group_resource},
            "spec": {
                "group": self.group,
                "names": self._names(),
                "scope": "Namespaced",
                "versions": [version],
            },
        }

    def _names(self) -> JsonObject:
        names: JsonObject = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": self.plural,
            "singular": self.kind.lower(),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        if self.categories:
            names["categories"] = list(self.categories)
        return names

    def parse(self, obj: JsonObject) -> R:
        """The typed form of an object that the server admitted; an absent status reads as an empty one.

        Raises:
            pydantic_core.ValidationError: the object does not fit its own schema, which is a bug of whoever admitted it.
        """
        if obj.get("status") is None and "status" in self.model.model_fields:
            obj = {**obj, "status": {}}
        return self.model.model_validate(obj)

    def to_wire(self, resource: R) -> JsonObject:
        """The wire form with apiVersion and kind; unset optionals and an empty status are left out."""
        wire: JsonObject = {"apiVersion": self.resource.api_version, "kind": self.kind}
        wire.update(resource.to_wire())
        wire |= {"apiVersion": self.resource.api_version, "kind": self.kind}
        if not wire.get("status"):
            wire.pop("status", None)
        return wire
