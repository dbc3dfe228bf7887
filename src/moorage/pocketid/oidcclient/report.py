"""What a person reads about a client: Ready, status fields, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure. Messages say the same as long as nothing changes; none holds a secret,
nor a character of one. Source: spec/pocketid.md 1.10, 1.11; contracts of issue 5.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.meta import JsonObject
from moorage.core.outcome import Failed, Outcome, Stalled, Waiting
from moorage.pocketid.references import READY
from moorage.pocketid.rest_types import CIMD, Client
from moorage.runtime.room import Event, Report
from moorage.schema.model import Model

from .decide import first_fault
from .decide_deletion import BLOCKED, orphaned
from .decide_logos import resolved
from .decide_secret import facts_of
from .lookups import Absent, Found
from .moves import stop_of
from .plans import Side
from .powers import adopts, overreach
from .render import recorded
from .rotation import Deferred, happened, stamp
from .secret_facts import remembered
from .secret_snapshot import Mode, Secrets
from .secret_steps import summary
from .seen import Seen
from .sizes import excess
from .types_status import Elsewhere

REASONS: Final = {
    READY: (
        "Reconciled", "DeletionBlocked", "InstanceSelectionError", "InstanceNotReady", "APIClientNotReady", "APIClientError", "Conflict",
        "NotPermitted", "Creating", "MetadataRefreshError", "GetError", "UserGroupNotFound", "AwaitingFirstAuthorization", "PublicKeyError", "UnsupportedVersion",
        "ReconcileError", "SCIMReconcileError", "APIAccessReconcileError", "ClientSecretSyncError", "SecretReconcileError", "ForeignSecret",
        "TooManySteps", "Deleting",
    )
}  # fmt: skip
"""Every reason by condition type, for the reference."""

EVENTS: Final = (
    "ClientCreated", "ClientAdopted", "ClientUpdated", "ClientOpened", "ClientLost", "ClientMoved", "InstanceMoved", "ClientDeleted", "ClientRetained", "ClientOrphaned",
    "GroupsUpdated", "SecretCreated", "SecretRotated", "SecretPushed", "SecretRetired", "SecretDeleted", "RotationDeferred", "RequestIgnored",
    "MetadataRefreshed", "LogoRefused", "LogoDeleted", "ScimProviderCreated", "ScimProviderUpdated", "ScimProviderDeleted", "AccessGranted",
    "AccessRevoked", "Conflict", "NotPermitted", *(reason for reason in REASONS[READY] if reason.endswith("Error")), "UserGroupNotFound", "UnsupportedVersion",
    "ForeignSecret", "InstanceNotReady", "APIClientNotReady", "TooManySteps",
)  # fmt: skip
"""Every event reason, for the reference."""


_OF_ANOTHER: Final = (
    "clientID", "clientSecret", "clientSecretSourceVersion", "secrets", "name", "callbackUrls", "logoutCallbackUrls", "unproven",
)  # fmt: skip
"""What the status told of a client that is gone."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """The condition, status fields and events of one pass."""
    if seen.terminating:
        return _leaving(seen, outcome)
    ready = _ready(seen, outcome)
    return Report((ready,), _status(seen, lasting=ready.reason != "Creating"), _events(seen, ready))


def _ready(seen: Seen, outcome: Outcome) -> Condition:
    """The first part that is not as declared; the outcome itself when the walk gave up."""
    if isinstance(outcome, Failed) and outcome.reason == "TooManySteps":
        return conditions.false(READY, outcome.reason, outcome.message)
    fault = first_fault(seen)
    if isinstance(fault, Waiting | Stalled | Failed):
        return conditions.false(READY, fault.reason, fault.message)
    if isinstance(outcome, Waiting | Stalled | Failed):
        return conditions.false(READY, outcome.reason, outcome.message)
    claimed = f"; PocketIDOIDCClient {seen.rival} claims the same client and is held back" if seen.rival else ""
    return conditions.true(READY, "Reconciled", f"Pocket-ID has the client as declared{claimed}")


def _events(seen: Seen, ready: Condition) -> tuple[Event, ...]:
    events = list(seen.happened)
    found = seen.found
    if found is not None and seen.another and not seen.is_doubted:
        told = f"client {found.id} was deleted in Pocket-ID, and somebody made another one under its id"
        events.append(Event("Warning", "ClientLost", told))
    if found is not None and adopts(seen):
        events.append(Event("Normal", "ClientAdopted", f"adopted client {found.name!r} (id {found.id})"))
    if seen.rival and not seen.held_back:
        message = f"PocketIDOIDCClient {seen.rival} claims the same client and is held back"
        events.append(Event("Warning", "Conflict", message))
    events += _deferred(seen)
    events += orphaned(seen)
    events += _stayed(seen)
    if not ready.is_true and ready.reason in EVENTS:
        events.append(Event("Warning", ready.reason, ready.message))
    return tuple(events)


def _stayed(seen: Seen) -> list[Event]:
    """That a client was not deleted where it was left, once the status forgets that place."""
    if seen.held_back or seen.left_behind or overreach(seen):
        return []
    why = "that instance and the selected one stand for one server"
    return [
        Event("Normal", "ClientRetained", f"client {place.id} stays at PocketIDInstance {place.key}: {why}")
        for place in seen.stays
        if place.id
    ]


def _deferred(seen: Seen) -> list[Event]:
    """That a rotation is due and waits."""
    match seen.secrets:
        case Secrets(rotation=Deferred(reason, datetime(), message)):
            return [Event("Normal", "RotationDeferred", f"{message} ({reason})")]
    return []


def _leaving(seen: Seen, outcome: Outcome) -> Report:
    """The object is healthy while only its deletion waits for a group; otherwise Ready says what it waits for."""
    if isinstance(outcome, Waiting) and outcome.reason == BLOCKED:
        ready = conditions.true(READY, BLOCKED, outcome.message)
    elif isinstance(outcome, Waiting | Failed | Stalled):
        ready = conditions.false(READY, outcome.reason, outcome.message)
    else:
        ready = conditions.false(READY, "Deleting", "deletion is under way")
    return Report((ready,), {}, seen.happened)


# --- status


def _status(seen: Seen, *, lasting: bool) -> JsonObject:
    """What was observed; what was not looked at stays as it is, and so does the way to a client that is left behind.

    Args:
        lasting: the next pass does not follow at once.
    """
    doubts = _doubts(seen) if lasting else {}
    if seen.held_back:
        return doubts
    if seen.left_behind:
        return {**_marked(seen), **_pending(seen), **doubts, "moving": _moving(seen, unproven=lasting)}
    if overreach(seen):
        return {**(dict.fromkeys(_OF_ANOTHER) if seen.another else doubts), "initialSecretPending": None}
    match seen.look:
        case Found(client):
            return {**_bound(seen), **_client(client), **_secrets(seen, client), **_features(seen)}
        case Absent(lost):
            kept = ("clientID", "clientSecretSourceVersion", "clientSecret")
            forgotten = dict.fromkeys(kept) if lost or seen.moved else {}
            return {**_bound(seen), **forgotten, "initialSecretPending": None}
    return doubts


def _doubts(seen: Seen) -> JsonObject:
    """That nobody looked at what the status tells of, by the word of the resource, where a person chose the id."""
    spec, status = seen.client.spec, seen.client.status
    if spec.client_id is None or not (seen.instance_fault or seen.held_back or seen.moved or excess(spec)):
        return {}
    doubts: JsonObject = {"unproven": True} if status.client_id else {}
    if seen.instance_fault and status.moving:
        doubts["moving"] = [{**_wire(item), "unproven": True} for item in status.moving]
    return doubts


def _bound(seen: Seen) -> JsonObject:
    """The instance, once nothing of ours is left on the former one, and whether the groups are gone that its restriction came from."""
    instance = seen.instance
    if instance is None:
        return {}
    return {
        "instance": {"namespace": instance.key.namespace, "name": instance.key.name, "url": instance.url},
        "groupsVanished": True if seen.groups.vanished else None,
        "unproven": None,
        "moving": _moving(seen, unproven=True),
    }


def _moving(seen: Seen, *, unproven: bool) -> list[JsonObject] | None:
    """Where else there are clients: those that are still to go, and while the former home is one of them, the one that is made here."""
    doubted = True if unproven and seen.client.spec.client_id is not None else None
    others = [
        Elsewhere(instance=place.where, client_id=place.id or None, unproven=doubted)
        for place in seen.to_leave
        if not place.home
    ]
    here = stop_of(seen) if seen.left_behind else None
    return [_wire(item) for item in (*others, *((here,) if here else ()))] or None


def _client(client: Client) -> JsonObject:
    raw = client.raw
    return {
        "clientID": client.id,
        "name": client.name,
        "clientType": "cimd" if client.client_type == CIMD else "standard",
        "callbackUrls": raw.get("callbackURLs") or None,
        "logoutCallbackUrls": raw.get("logoutCallbackURLs") or None,
        "allowedUserGroupIDs": _groups(client),
        "pkceSupported": True if client.pkce_supported else None,
    }


def _groups(client: Client) -> list[str] | None:
    if client.group_ids is None and client.is_group_restricted:
        return None
    return sorted(client.group_ids or ()) or None


def _secrets(seen: Seen, client: Client) -> JsonObject:
    secrets = seen.secrets
    if secrets is None:
        return {}
    rotated = happened(seen.history.rotated_at, seen.now)
    listed = [_wire(item) for item in summary(secrets)]
    return {
        "secrets": listed or None,
        "lastRotatedAt": stamp(rotated) if rotated else None,
        **_pending(seen),
        "clientSecretSourceVersion": _source(seen),
        **_marked(seen),
        "credentials": _credentials(seen, client),
    }


def _pending(seen: Seen) -> JsonObject:
    """Whether the client is ours from its making on, and has no secret that is stored; what was not looked at stays as it is."""
    secrets = seen.secrets
    if secrets is None:
        return {}
    waits = secrets.pending and not secrets.stored and secrets.mode in (Mode.KEPT, Mode.OWN)
    return {"initialSecretPending": True if waits else None}


def _marked(seen: Seen) -> JsonObject:
    mark = remembered(seen)
    return {"clientSecret": None if mark is None else _wire(mark)}


def _source(seen: Seen) -> str | None:
    """The revision that was pushed last; it is recorded once the value is where it should be."""
    if seen.declared is None:
        return None
    secrets, pushed = seen.secrets, remembered(seen)
    settled = secrets is None or not secrets.stores or secrets.stored == secrets.declared
    before = seen.client.status.client_secret_source_version
    return pushed.source if pushed is not None and pushed.source and settled else before


def _credentials(seen: Seen, client: Client) -> Any:
    """The Secret as it stands; one that could not be written leaves the record of the former."""
    if not seen.client.spec.credentials.enabled:
        return None
    if seen.kept.live is None or seen.kept.former is not None:
        before = seen.client.status.credentials
        return _wire(before) if before else None
    return _wire(recorded(seen.client, facts_of(seen, client, seen.secrets, seen.history)))


def _wire(model: Model) -> JsonObject:
    return model.model_dump(by_alias=True, exclude_none=True)


def _features(seen: Seen) -> JsonObject:
    """Logos, SCIM, API access."""
    return {
        **_logo(seen, "light", ("logoUrl", "logoReachable")),
        **_logo(seen, "dark", ("darkLogoUrl", "darkLogoReachable")),
        **_scim(seen),
        **_apis(seen),
    }


def _logo(seen: Seen, side: Side, names: tuple[str, str]) -> JsonObject:
    url, applied = resolved(seen, side), seen.applied(side)
    return {names[0]: applied, names[1]: None if not url else applied == url}


def _scim(seen: Seen) -> JsonObject:
    """A look that failed leaves what was known."""
    if not seen.scim.asked:
        return {}
    return {"scimProviderID": seen.scim.provider.id if seen.scim.provider is not None else None}


def _apis(seen: Seen) -> JsonObject:
    """What we granted and is still granted; forgotten once the last of it is taken back."""
    grants = seen.apis.grants
    if not isinstance(grants, tuple):
        return {}
    given = {grant.api.resource for grant in grants if grant.cimd_granted}
    own = [grant for grant in grants if grant.access.grants_anything]
    if not seen.client.owns_access:
        own = []
    permissions = {id for item in own for id in item.access.user_delegated_permissions | item.access.client_permissions}
    return {
        "managedAPIs": sorted(item.api.id for item in own) or None,
        "managedAPIPermissionIDs": sorted(permissions) or None,
        "cimdGrantedAPIs": sorted(given) or None,
    }
