"""What the controller writes down about a client: what is there, what it is known by, what is still to be done.

Enters: nothing. Leaves: models that `types.py` puts into the kind. Source: spec/pocketid.md 1.10; ADR 0019, 0020.
"""

from __future__ import annotations

from typing import Literal

from moorage.pocketid.references import BoundInstance, bound_field, observed_generation_field
from moorage.schema.model import Model, StoredCondition, conditions_field, field


class Elsewhere(Model):
    """A client that was made, or is about to be, at an instance where the resource is not at home."""

    instance: BoundInstance = field(doc="Where.")
    client_id: str | None = field(
        None,
        alias="clientID",
        doc="Client ID there; absent from before it is made until that was seen, where the id is declared.",
    )
    unproven: bool | None = field(None, doc="As `unproven` of the status, of this client.")


class SecretStatus(Model):
    """One client secret on the server. Nothing here tells a character of it."""

    created: str = field(doc="When it was created.", format="date-time")
    retires: str | None = field(
        None, doc="When it is deleted at the earliest; absent for the current one.", format="date-time"
    )
    active: bool = field(doc="Whether it authenticates today.")
    current: bool = field(False, doc="Whether it is the one in the credentials Secret.", default_in_schema=False)


class ClientSecretMark(Model):
    """The client secret that was made or pushed last: by what it is told from others that begin alike. No character of it is here."""

    id: str = field(doc="Its id in Pocket-ID.")
    source: str | None = field(
        None,
        doc="The declared secret that was pushed under it: `<name>/<key>@<resourceVersion>`; absent when none was.",
    )
    digest: str | None = field(
        None, doc="A digest of a secret that Pocket-ID drew: the stored one is replaced when it has another."
    )
    first: str | None = field(
        None,
        doc="Id of the first secret with the same declared value, where that was pushed again: the overlap of what it replaced began then.",
    )


class Credentials(Model):
    """The credentials Secret as it was last written: what a change of names moves or removes."""

    secret_name: str = field(doc="Name of the Secret.")
    client_secret_key: str | None = field(None, doc="Key that holds the client secret; absent when it holds none.")
    labels: tuple[str, ...] = field((), doc="Labels that were put on it.", list_type="atomic", default_in_schema=False)


class Status(Model):
    """What the controller observed; it is its only writer."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int | None = observed_generation_field()
    instance: BoundInstance | None = bound_field()
    client_id: str | None = field(None, alias="clientID", doc="Client ID in Pocket-ID.")
    unproven: bool | None = field(
        None,
        doc="True since the resource selects no instance, another one, or is held back: whoever has a client with this declared id by now, nobody looks."
        " Where the instance does not trust the namespace, only a secret that this status tells of proves that it is still ours.",
    )
    moving: tuple[Elsewhere, ...] | None = field(
        None,
        doc="Clients of this resource at other instances than `instance`, as long as it moves: each is deleted there once the client is at its new home.",
        list_type="atomic",
    )
    name: str | None = field(None, doc="Name in Pocket-ID.")
    client_type: Literal["standard", "cimd"] | None = field(
        None, doc="Whether Pocket-ID holds it as provisioned (standard) or from a metadata document (cimd)."
    )
    created_at: str | None = field(None, doc="When it was created, as far as it is known.", format="date-time")
    callback_urls: tuple[str, ...] | None = field(None, doc="Redirect URIs in Pocket-ID.", list_type="atomic")
    logout_callback_urls: tuple[str, ...] | None = field(
        None, doc="Redirect URIs after a logout in Pocket-ID.", list_type="atomic"
    )
    allowed_user_group_ids: tuple[str, ...] | None = field(
        None, alias="allowedUserGroupIDs", doc="Ids of the groups that may use it.", list_type="atomic"
    )
    groups_vanished: bool | None = field(
        None,
        doc="True while every PocketIDUserGroup that listed the client is gone: it stays restricted until one lists it again, or"
        " spec.allowedUserGroups says who may use it.",
    )
    managed_apis: tuple[str, ...] | None = field(
        None, alias="managedAPIs", doc="Ids of the APIs that this resource granted.", list_type="atomic"
    )
    managed_api_permission_ids: tuple[str, ...] | None = field(
        None,
        alias="managedAPIPermissionIDs",
        doc="Ids of the permissions that this resource granted.",
        list_type="atomic",
    )
    cimd_granted_apis: tuple[str, ...] | None = field(
        None,
        alias="cimdGrantedAPIs",
        doc="Audiences that Pocket-ID grants to every client with a metadata document.",
        list_type="atomic",
    )
    pkce_supported: bool | None = field(
        None, doc="True when the client was seen to use PKCE, so that it could be required."
    )
    logo_url: str | None = field(None, doc="URL of the light logo that was applied last.")
    dark_logo_url: str | None = field(None, doc="URL of the dark logo that was applied last.")
    logo_reachable: bool | None = field(
        None, doc="Whether Pocket-ID could fetch the light logo; absent when there is none."
    )
    dark_logo_reachable: bool | None = field(
        None, doc="Whether Pocket-ID could fetch the dark logo; absent when there is none."
    )
    scim_provider_id: str | None = field(None, alias="scimProviderID", doc="Id of the SCIM provider.")
    last_rotated_at: str | None = field(None, doc="When the client secret was last made.", format="date-time")
    client_secret_source_version: str | None = field(
        None, doc="The declared secret that was pushed last: `<name>/<key>@<resourceVersion>`."
    )
    client_secret: ClientSecretMark | None = field(None, doc="The client secret that was made or pushed last.")
    initial_secret_pending: bool | None = field(
        None,
        doc="True from when the client was created until its first secret is stored, so that a restart still stores one.",
    )
    credentials: Credentials | None = field(None, doc="The credentials Secret as it was last written.")
    secrets: tuple[SecretStatus, ...] | None = field(
        None, doc="The client secrets on the server, oldest first.", list_type="atomic"
    )
