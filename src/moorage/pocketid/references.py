"""What the five kinds of Pocket-ID refer to each other and to Secrets with, and the names that all of them share.

Enters: nothing. Leaves: models that each kind's `types.py` puts into its spec and status, and the constants of the group. It selects and
reads nothing. Source: seed 004; spec/pocketid.md 0, 1.9, 2.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from moorage.schema.model import Model, field
from moorage.schema.rule import Column, Rule

GROUP: Final = "pocketid.internal"
VERSION: Final = "v1alpha1"
LEAVE: Final = f"{GROUP}/leave-objects"
"""Annotation of the instance: with `true` its deletion waits for nothing, and what is at the server stays there."""
READY: Final = "Ready"
MANAGED_BY: Final = "managed-by"
"""Label of what we make; its value is `OPERATOR`."""
OPERATOR: Final = "pocket-id-operator"
CATEGORIES: Final = ("moorage",)
READY_COLUMN: Final = Column(READY, "string", ".status.conditions[?(@.type=='Ready')].status")
REASON_COLUMN: Final = Column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", priority=1)
AGE_COLUMN: Final = Column("Age", "date", ".metadata.creationTimestamp")
SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
PERMISSION_KEY: Final = r"^[!#-\[\]-~]+$"
"""Visible ASCII without quote and backslash, as scopes are written: RFC 6749, 3.3."""
DATA_KEY: Final = r"^[-._a-zA-Z0-9]+$"
DURATION: Final = (
    r"^[-+]?(0|([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|ms|s|m|h))(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|ms|s|m|h))*$"
)
"""Go's syntax of a duration; CEL's `duration()` reads the same. `1d` is none."""


def object_name(doc: str, **more: Any) -> Any:
    """A field with the name of an object; required unless `default` is given."""
    return field(*more.pop("default", ()), doc=doc, min_length=1, max_length=253, pattern=SUBDOMAIN, **more)


NAMESPACE: Final[Any] = field(doc="Name of a namespace.", min_length=1, max_length=63, pattern=LABEL)


def namespace_name(doc: str) -> Any:
    """An optional field with the name of a namespace."""
    return field(None, doc=doc, min_length=1, max_length=63, pattern=LABEL)


def namespaces(doc: str) -> Any:
    """An optional set of names of namespaces."""
    return field(None, doc=doc, max_items=512, list_type="set")


def reads(*fields: str) -> str:
    """The CEL condition that these durations can be read, so that a rule between them adds nothing to the complaint about their syntax."""
    return " && ".join(f"{field}.matches('{DURATION}')" for field in fields)


def within(low: str, high: str) -> tuple[Rule, ...]:
    """The rule of a duration that may lie from `low` to `high`; an empty `high` is no limit."""
    upper = f" && duration(self) <= duration('{high}')" if high else ""
    span = f"from {low} to {high}" if high else f"of at least {low}"
    message = f"must be a duration in Go syntax, such as 90m or 24h, {span}"
    return (Rule(f"self.matches('{DURATION}') && duration(self) >= duration('{low}'){upper}", message),)


class SecretKey(Model):
    """One key of a Secret in the namespace of the resource."""

    name: str = object_name("Name of the Secret.")
    key: str = field(doc="Key in its data.", min_length=1, max_length=253, pattern=DATA_KEY)
    optional: bool | None = field(None, doc="Whether the Secret or the key may be missing, where the field allows it.")


class ConfigMapKey(Model):
    """One key of a ConfigMap in the namespace of the resource."""

    name: str = object_name("Name of the ConfigMap.")
    key: str = field(doc="Key in its data.", min_length=1, max_length=253, pattern=DATA_KEY)
    optional: bool | None = field(None, doc="Whether the ConfigMap or the key may be missing.")


class SecretSource(Model):
    """A value that a Secret holds."""

    secret_key_ref: SecretKey = field(doc="The key of a Secret in the same namespace.")


class SecretName(Model):
    """A Secret in the namespace of the resource."""

    name: str = object_name("Name of the Secret.")


class ObjectName(Model):
    """An object of another kind, in the namespace of the resource unless another is named."""

    name: str = object_name("Name of the object.")
    namespace: str | None = namespace_name("Namespace of the object; default: that of the resource.")


class Claim(Model):
    """A claim that tokens carry."""

    key: str = field(doc="Name of the claim.", min_length=1, max_length=255)
    value: str = field(doc="Value of the claim.", min_length=1, max_length=4096)


class Requirement(Model):
    """One condition on a label."""

    key: str = field(doc="The label.", min_length=1, max_length=317)
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = field(doc="How the label relates to the values.")
    values: tuple[str, ...] | None = field(None, doc="Values, for In and NotIn.", list_type="atomic", max_items=64)


class LabelSelector(Model):
    """Labels of an object; all conditions must hold, and an empty selector matches everything."""

    match_labels: dict[str, str] | None = field(None, doc="Labels with exactly these values.", max_properties=64)
    match_expressions: tuple[Requirement, ...] | None = field(
        None, doc="Further conditions.", list_type="atomic", max_items=64
    )


class BoundInstance(Model):
    """The PocketIDInstance that an object belongs to. Groups, APIs and users are bound before anything is created there; a client with the status of
    the pass that created it, which finds the client again by its id or name when that status is lost."""

    namespace: str = field(doc="Namespace of the instance.")
    name: str = field(doc="Name of the instance.")
    url: str = field("", doc="Address of the server when the object was last reconciled.", default_in_schema=False)


def selector_field() -> Any:
    """The `instanceSelector` of every kind but the instance itself."""
    return field(
        None,
        doc="Labels of the PocketIDInstance that the object belongs to, in any namespace; exactly one must match. Without it every"
        " instance matches.",
    )


def policy_field(default: Literal["Delete", "Retain"]) -> Any:
    """The `deletionPolicy` of every kind that has a counterpart on the server."""
    return field(
        default,
        doc="What becomes of the object in Pocket-ID when this resource is deleted: Delete deletes it, Retain leaves it there.",
    )


def observed_generation_field() -> Any:
    """The `observedGeneration` of a status."""
    return field(None, doc="The generation last reconciled.", format="int64")


def bound_field() -> Any:
    """The `instance` of a status."""
    return field(
        None, doc="The instance that this object is bound to: its counterpart is on that server and nowhere else."
    )
