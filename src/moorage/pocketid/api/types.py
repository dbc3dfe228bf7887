"""Kind PocketIDAPI: fields, bounds and rules.

Enters: nothing. Leaves: the models from which the CRD, the reference and the checks are made. Source: spec/pocketid.md 2.3.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from moorage.pocketid.references import (
    AGE_COLUMN,
    CATEGORIES,
    GROUP,
    NAMESPACE,
    PERMISSION_KEY,
    READY_COLUMN,
    REASON_COLUMN,
    VERSION,
    BoundInstance,
    LabelSelector,
    bound_field,
    namespaces,
    observed_generation_field,
    policy_field,
    selector_field,
)
from moorage.schema.kind import Kind
from moorage.schema.model import Model, Resource, StoredCondition, conditions_field, field
from moorage.schema.rule import Column, Rule

FINALIZER: Final = f"{GROUP}/api-finalizer"
CLIENT_FINALIZER: Final = f"{GROUP}/oidc-client-api-finalizer"
"""Held while a PocketIDOIDCClient names the API."""
RESERVED: Final = ("openid", "profile", "email", "email_verified", "groups", "offline_access")
"""Scopes of OpenID Connect, which no permission may be called."""


class Permission(Model):
    """One permission, which tokens carry as a scope."""

    key: str = field(
        doc="Key, the scope itself: visible ASCII without quote and backslash.",
        min_length=1,
        max_length=255,
        pattern=PERMISSION_KEY,
        rules=(
            Rule(
                f"!(self.lowerAscii() in {list(RESERVED)})",
                f"is reserved by OpenID Connect: {', '.join(RESERVED)}",
            ),
        ),
    )
    name: str = field(doc="Name that people see.", min_length=1, max_length=255)
    description: str | None = field(None, doc="What the permission allows.", max_length=500)
    cimd_access: bool = field(False, doc="Whether clients with a metadata document have it, when cimdAccess is on.")


class Spec(Model):
    """One API."""

    resource: str = field(
        doc="Audience of the tokens, usually a URI. Immutable; Pocket-ID takes slashes at its end away.",
        min_length=1,
        max_length=255,
        example="https://api.example.com",
        rules=(Rule("self == oldSelf", "resource is immutable: delete and recreate the API instead"),),
    )
    name: str | None = field(
        None, doc="Name in Pocket-ID; default: the name of the resource.", min_length=2, max_length=255
    )
    permissions: tuple[Permission, ...] | None = field(
        None,
        doc="Permissions of the API, exactly these; one that is taken out is taken from every client.",
        max_items=100,
        list_type="map",
        list_map_keys=("key",),
    )
    cimd_access: bool | None = field(
        None, doc="Whether every client with a metadata document may use the API; absent leaves it as it is."
    )
    allowed_namespaces: tuple[Annotated[str, NAMESPACE], ...] | None = namespaces(
        "Namespaces whose clients may have permissions of the API, beside its own. Absent: all that the instance admits; []: its own only. While it is set, whatever other clients hold is taken back, grants by hand included."
    )
    instance_selector: LabelSelector | None = selector_field()
    deletion_policy: Literal["Delete", "Retain"] = policy_field("Delete")


class PermissionStatus(Model):
    """A permission in Pocket-ID."""

    id: str = field(doc="Id in Pocket-ID.")
    key: str = field(doc="Key, the scope itself.")
    name: str = field(doc="Name that people see.")
    cimd_access: bool = field(False, doc="Whether clients with a metadata document have it.", default_in_schema=False)


class Status(Model):
    """What the controller observed; it is its only writer."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int | None = observed_generation_field()
    instance: BoundInstance | None = bound_field()
    api_id: str | None = field(None, alias="apiID", doc="Id in Pocket-ID.")
    name: str | None = field(None, doc="Name in Pocket-ID.")
    resource: str | None = field(None, doc="Audience as Pocket-ID holds it.")
    created_at: str | None = field(None, doc="When it was created.", format="date-time")
    cimd_access: bool | None = field(None, doc="Whether every client with a metadata document may use it.")
    permissions: tuple[PermissionStatus, ...] | None = field(
        None, doc="Permissions in Pocket-ID.", list_type="map", list_map_keys=("key",)
    )


class PocketIDAPI(Resource):
    """One API in Pocket-ID."""

    spec: Spec = field(doc="What is wanted.")
    status: Status = field(Status(), doc="What was observed.", default_in_schema=False)


KIND: Final = Kind(
    group=GROUP,
    version=VERSION,
    kind="PocketIDAPI",
    plural="pocketidapis",
    model=PocketIDAPI,
    doc="PocketIDAPI is an API in Pocket-ID: an audience and the permissions that clients may be granted.",
    short_names=("pidapi",),
    categories=CATEGORIES,
    columns=(
        READY_COLUMN,
        Column("Resource", "string", ".spec.resource"),
        Column("API ID", "string", ".status.apiID", priority=1),
        REASON_COLUMN,
        AGE_COLUMN,
    ),
)
