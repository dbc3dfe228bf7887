"""Typed declarations: the one place where a field of our own kinds is written down.

Enters: class bodies of a room's `types.py`. Leaves: frozen structures that read the wire form, and the marks from
which `crd.py` makes the CRD. It validates only what parsing needs; bounds and rules are the schema engine's work.
"""

from typing import Any, ClassVar, Final, Literal, NamedTuple

from moorage.core.meta import JsonObject, Key, Ref

from .declared import NOTHING, Structure, declare
from .rule import Rule

ListType = Literal["atomic", "map", "set"]


class Marks(NamedTuple):
    """What `field` noted about one field, for the CRD; names as in the CRD."""

    bounds: tuple[tuple[str, Any], ...] = ()
    rules: tuple[Rule, ...] = ()
    default_in_schema: bool = True
    example: Any = None


_BOUND_NAMES: Final = {
    "minimum": "minimum", "maximum": "maximum", "min_length": "minLength", "max_length": "maxLength",
    "pattern": "pattern", "min_items": "minItems", "max_items": "maxItems",
    "min_properties": "minProperties", "max_properties": "maxProperties", "format": "format",
    "list_type": "x-kubernetes-list-type", "list_map_keys": "x-kubernetes-list-map-keys",
}  # fmt: skip


def field(
    default: Any = NOTHING,
    *,
    doc: str,
    alias: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
    min_items: int | None = None,
    max_items: int | None = None,
    min_properties: int | None = None,
    max_properties: int | None = None,
    list_type: ListType | None = None,
    list_map_keys: tuple[str, ...] = (),
    format: str | None = None,
    rules: tuple[Rule, ...] = (),
    default_in_schema: bool = True,
    example: Any = None,
) -> Any:
    """Declare one field of a Model.

    Args:
        default: none given: the field is required; None: optional; else the default, which the server materialises
            unless `default_in_schema` is False.
        doc: the description in the CRD, `explain` and the reference; one or two sentences.
        alias: the wire name where camelCase of the attribute is not it (`treeDN`).
        format: `int32`, `int64`, `date-time`, ... as in OpenAPI.
        rules: CEL rules at this field.
        example: a valid value; it stands in the CRD, and `explain` shows it.
    The other arguments are the CRD's bounds of the same name.
    """
    given = {
        "minimum": minimum, "maximum": maximum, "min_length": min_length, "max_length": max_length,
        "pattern": pattern, "min_items": min_items, "max_items": max_items,
        "min_properties": min_properties, "max_properties": max_properties, "format": format,
        "list_type": list_type, "list_map_keys": list(list_map_keys) or None,
    }  # fmt: skip
    bounds = tuple((_BOUND_NAMES[name], value) for name, value in given.items() if value is not None)
    marks = Marks(bounds, tuple(rules), default_in_schema, example)
    return declare(default, alias=alias or "", description=doc, extra=marks)


class Model(Structure):
    """Base of what kinds declare: camelCase on the wire, unknown wire fields are ignored. `rules` are CEL rules of the whole object."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    @staticmethod
    def wire_name(attribute: str) -> str:
        """camelCase of the attribute's name."""
        first, *others = attribute.split("_")
        return first + "".join(word.capitalize() for word in others)

    def to_wire(self) -> JsonObject:
        """The wire form of what was set; unset and absent fields are left out."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


class OwnerReference(Model):
    """metav1.OwnerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Model):
    """metav1.ObjectMeta; fields that we do not name are kept as they are. Times are RFC 3339 text."""

    unknown = "allow"

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = declare(factory=dict)  # a plain {} would be copied deeply for each object
    annotations: dict[str, str] = declare(factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class Resource(Model):
    """Base of a declared kind: `class Thing(Resource): spec: ThingSpec; status: ThingStatus`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def ref(self) -> Ref:
        """A reference to this object."""
        return Ref(self.api_version, self.kind, self.key, self.metadata.uid)


class StoredCondition(Model):
    """metav1.Condition as a status holds it: `conditions: tuple[StoredCondition, ...]`, a list map by type."""

    type: str = field(
        doc="Type of condition in CamelCase.",
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    )
    status: Literal["True", "False", "Unknown"] = field(doc="Status of the condition: True, False or Unknown.")
    observed_generation: int | None = field(
        None, doc="The metadata.generation that the condition was set for.", minimum=0, format="int64"
    )
    last_transition_time: str = field(doc="When the status last changed.", format="date-time")
    reason: str = field(
        doc="The cause of the last transition, one CamelCase word.",
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message: str = field(doc="The details of the transition, for people; may be empty.", max_length=32768)


def conditions_field() -> Any:
    """The `conditions` field of a status."""
    return field(
        (),
        doc="What is known about the resource; Ready sums it up.",
        list_type="map",
        list_map_keys=("type",),
        default_in_schema=False,
    )
