"""Kind PocketIDUser: fields, bounds and rules.

Enters: nothing. Leaves: the models from which the CRD, the reference and the checks are made. Source: spec/pocketid.md 2.4.
A login link stands in a Secret; status names the Secret and holds no token.
"""

from __future__ import annotations

from typing import Any, Final, Literal

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
    SecretKey,
    SecretName,
    SecretSource,
    bound_field,
    observed_generation_field,
    policy_field,
    selector_field,
)
from moorage.schema.kind import Kind
from moorage.schema.model import Model, Resource, StoredCondition, conditions_field, field
from moorage.schema.rule import Column, Rule

FINALIZER: Final = f"{GROUP}/user-finalizer"
DELETE: Final = f"{GROUP}/delete-from-pocket-id"
"""Annotation; "true" deletes the user with the resource, whatever deletionPolicy says."""
DATA_SUFFIX: Final = "-user-data"
UUID: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


class Value(Model):
    """A value, inline or in a Secret; exactly one of the two."""

    rules = (Rule("has(self.value) != has(self.valueFrom)", "exactly one of value and valueFrom must be set"),)

    value: str | None = field(None, doc="The value itself.", min_length=1, max_length=1024)
    value_from: SecretSource | None = field(None, doc="Where the value is kept.")


def _value(doc: str) -> Any:
    return field(None, doc=doc)


class ApiKey(Model):
    """A key with which the user calls Pocket-ID; its token is put into a Secret."""

    name: str = field(doc="Name of the key.", min_length=3, max_length=50)
    description: str | None = field(None, doc="What the key is for.", max_length=255)
    expires_at: str | None = field(None, doc="When the key ends.", format="date-time")
    secret_ref: SecretKey | None = field(
        None,
        doc="Secret and key that hold the token; default: `<name of the resource>-<name of the key>-key`, key `token`.",
    )


class Spec(Model):
    """One user."""

    rules = (
        Rule(
            "has(self.userID) == has(oldSelf.userID) && (!has(self.userID) || self.userID == oldSelf.userID)",
            "userID is immutable: it cannot be added, removed or changed; delete and recreate the resource instead",
            field_path=".userID",
        ),
    )

    user_id: str | None = field(
        None,
        alias="userID",
        doc="Id of the user in Pocket-ID, a UUID in lower case; one is made when it is absent. Immutable.",
        max_length=36,
        pattern=UUID,
    )
    username: Value | None = _value("Name that the user logs in with; default: the name of the resource.")
    first_name: Value | None = _value("First name.")
    last_name: Value | None = _value("Last name.")
    email: Value | None = _value("Mail address; `<username>@placeholder.local` when there is none.")
    display_name: Value | None = _value("Name that people see; default: first and last name.")
    user_info_secret_ref: SecretName | None = field(
        None,
        doc="Secret whose keys username, firstName, lastName, email and displayName stand for the fields that are not given here.",
    )
    admin: bool = field(False, doc="Whether the user administers Pocket-ID.")
    disabled: bool = field(False, doc="Whether the user may not log in.")
    locale: str | None = field(None, doc="Language, such as en or de.", min_length=2, max_length=35)
    custom_claims: tuple[Claim, ...] | None = field(
        None, doc="Claims of the user's tokens, exactly these.", max_items=128, list_type="map", list_map_keys=("key",)
    )
    api_keys: tuple[ApiKey, ...] | None = field(
        None,
        doc="Keys with which the user calls Pocket-ID.",
        max_items=32,
        list_type="map",
        list_map_keys=("name",),
    )
    instance_selector: LabelSelector | None = selector_field()
    deletion_policy: Literal["Delete", "Retain"] = policy_field("Retain")


class ApiKeyStatus(Model):
    """A key that was made."""

    name: str = field(doc="Name of the key.")
    id: str | None = field(None, doc="Id in Pocket-ID.")
    created_at: str | None = field(None, doc="When it was created.", format="date-time")
    expires_at: str | None = field(None, doc="When it ends.", format="date-time")
    last_used_at: str | None = field(None, doc="When it was last used.", format="date-time")
    secret_name: str | None = field(None, doc="Secret that holds its token.")
    secret_key: str | None = field(None, doc="Key in the data of that Secret.")


class Status(Model):
    """What the controller observed; it is its only writer."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int | None = observed_generation_field()
    instance: BoundInstance | None = bound_field()
    user_id: str | None = field(None, alias="userID", doc="Id in Pocket-ID.")
    username: str | None = field(None, doc="Name that the user logs in with.")
    is_admin: bool | None = field(None, doc="Whether the user administers Pocket-ID.")
    disabled: bool | None = field(None, doc="Whether the user may not log in.")
    locale: str | None = field(None, doc="Language.")
    email_verified: bool | None = field(None, doc="Whether the mail address was verified.")
    ldap_id: str | None = field(None, alias="ldapID", doc="Id in the directory; such a user is read only.")
    custom_claims: tuple[Claim, ...] | None = field(
        None, doc="Claims in Pocket-ID.", list_type="map", list_map_keys=("key",)
    )
    user_info_secret_name: str | None = field(None, doc="Secret with what the user is and, once, the login link.")
    one_time_login_expires_at: str | None = field(
        None, doc="When the login link in that Secret ends.", format="date-time"
    )
    api_keys: tuple[ApiKeyStatus, ...] | None = field(
        None, doc="Keys that were made.", list_type="map", list_map_keys=("name",)
    )


class PocketIDUser(Resource):
    """One user in Pocket-ID."""

    spec: Spec = field(Spec(), doc="What is wanted.")
    status: Status = field(Status(), doc="What was observed.", default_in_schema=False)


KIND: Final = Kind(
    group=GROUP,
    version=VERSION,
    kind="PocketIDUser",
    plural="pocketidusers",
    model=PocketIDUser,
    doc="PocketIDUser is a user in Pocket-ID, with a link for the first login and keys for the API.",
    short_names=("piduser",),
    categories=CATEGORIES,
    columns=(READY_COLUMN, Column("User ID", "string", ".status.userID"), REASON_COLUMN, AGE_COLUMN),
)
