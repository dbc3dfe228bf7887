"""Kind PocketIDUserGroup: fields, bounds and rules.

Enters: nothing. Leaves: the models from which the CRD, the reference and the checks are made. Source: spec/pocketid.md 2.2.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from moorage.pocketid.references import (
    AGE_COLUMN,
    CATEGORIES,
    GROUP,
    READY_COLUMN,
    REASON_COLUMN,
    VERSION,
    BoundInstance,
    Claim,
    LabelSelector,
    ObjectName,
    bound_field,
    observed_generation_field,
    policy_field,
    selector_field,
)
from moorage.schema.kind import Kind
from moorage.schema.model import Model, Resource, StoredCondition, conditions_field, field
from moorage.schema.rule import Column

FINALIZER: Final = f"{GROUP}/user-group-finalizer"
CLIENT_FINALIZER: Final = f"{GROUP}/oidc-client-finalizer"
"""Held while a PocketIDOIDCClient names the group."""
_WORD: Final[Any] = field(doc="A name or an id.", min_length=1, max_length=255)


class Members(Model):
    """Users of the group; members that came otherwise stay."""

    user_refs: tuple[ObjectName, ...] | None = field(None, doc="PocketIDUsers.", max_items=1024, list_type="atomic")
    usernames: tuple[Annotated[str, _WORD], ...] | None = field(
        None, doc="Exact user names in Pocket-ID.", max_items=1024, list_type="atomic"
    )
    user_ids: tuple[Annotated[str, _WORD], ...] | None = field(
        None, alias="userIDs", doc="Ids of users in Pocket-ID.", max_items=1024, list_type="atomic"
    )


class Spec(Model):
    """One group."""

    name: str | None = field(
        None, doc="Name in Pocket-ID; default: the name of the resource.", min_length=2, max_length=255
    )
    friendly_name: str | None = field(None, doc="Name that people see; default: name.", min_length=2, max_length=50)
    custom_claims: tuple[Claim, ...] | None = field(
        None,
        doc="Claims of the members' tokens, exactly these.",
        max_items=128,
        list_type="map",
        list_map_keys=("key",),
    )
    users: Members | None = field(
        None, doc="Members of the group, besides those that a directory or Pocket-ID's own pages put in."
    )
    allowed_oidc_clients: tuple[ObjectName, ...] | None = field(
        None,
        alias="allowedOIDCClients",
        doc="PocketIDOIDCClients that the group may use, beside those that name the group themselves.",
        max_items=256,
        list_type="atomic",
    )
    instance_selector: LabelSelector | None = selector_field()
    deletion_policy: Literal["Delete", "Retain"] = policy_field("Delete")


class Status(Model):
    """What the controller observed; it is its only writer."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int | None = observed_generation_field()
    instance: BoundInstance | None = bound_field()
    group_id: str | None = field(None, alias="groupID", doc="Id in Pocket-ID.")
    name: str | None = field(None, doc="Name in Pocket-ID.")
    friendly_name: str | None = field(None, doc="Name that people see.")
    created_at: str | None = field(None, doc="When it was created.", format="date-time")
    ldap_id: str | None = field(None, alias="ldapID", doc="Id in the directory; such a group is read only.")
    total_user_count: int | None = field(None, doc="Members, however they came.", format="int64")
    managed_user_ids: tuple[str, ...] | None = field(
        None, alias="managedUserIDs", doc="Ids of the members that this resource added.", list_type="atomic"
    )
    custom_claims: tuple[Claim, ...] | None = field(
        None, doc="Claims in Pocket-ID.", list_type="map", list_map_keys=("key",)
    )
    allowed_oidc_client_ids: tuple[str, ...] | None = field(
        None, alias="allowedOIDCClientIDs", doc="Client IDs that the group may use.", list_type="atomic"
    )


class PocketIDUserGroup(Resource):
    """One group in Pocket-ID."""

    spec: Spec = field(Spec(), doc="What is wanted.")
    status: Status = field(Status(), doc="What was observed.", default_in_schema=False)


KIND: Final = Kind(
    group=GROUP,
    version=VERSION,
    kind="PocketIDUserGroup",
    plural="pocketidusergroups",
    model=PocketIDUserGroup,
    doc="PocketIDUserGroup is a group of users in Pocket-ID, with its claims.",
    short_names=("usergroup",),
    categories=CATEGORIES,
    columns=(
        READY_COLUMN,
        Column("Group ID", "string", ".status.groupID"),
        Column("Users", "integer", ".status.totalUserCount"),
        REASON_COLUMN,
        AGE_COLUMN,
    ),
)
