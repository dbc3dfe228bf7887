"""The policy of a client's settings and groups: an overlay on what the server has, and a restriction that fails closed.

Enters: a snapshot with the client as the server has it. Leaves: the next plan, or why it cannot be as declared. Pure. Groups are written
before a restriction is switched on, so that nobody who may stay is logged out; nothing is ever opened because a reference leads nowhere.
Source: spec/pocketid.md 3.5, 3.6; case B72; seed 004, Allowed User Groups.
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Waiting
from moorage.pocketid.rest_version import LACKED_FOR, Feature, Support

from .lookups import Found
from .plans import Part, SetGroups, UpdateClient
from .rule import Answer, Rule, told, worked
from .seen import Seen
from .seen_parts import Fault
from .wanted import differing, supports, unsent, update_body


def groups_are_set(seen: Seen) -> Answer:
    """The set itself, when it is known in full and the client is, or is to be, restricted."""
    client, groups = seen.found, seen.groups
    if client is None or not groups.restricted or client.group_ids is None:
        return None
    if client.group_ids == frozenset(groups.ids):
        return None
    plan = SetGroups(groups.ids)
    return _not_taken("the groups", Part.GROUPS, seen) if plan in seen.done else plan


def groups_are_resolved(seen: Seen) -> Answer:
    """A reference that leads nowhere changes nothing and is told."""
    if seen.groups.faults:
        return told(seen.groups.faults[0], seen)
    if seen.groups.pending and not seen.groups.ids:
        names = ", ".join(seen.groups.pending)
        message = f"PocketIDUserGroup {names} lists this client and is not in Pocket-ID yet; until then the restriction stays as it is"
        return Waiting("ReconcileError", message, after=seen.settings.resync)
    if seen.groups.vanished:
        message = (
            "every PocketIDUserGroup that listed this client is gone; the restriction stays as it is until one lists it again, or"
            " spec.allowedUserGroups says who may use it ([] for everybody)"
        )
        return Waiting("UserGroupNotFound", message, after=seen.settings.resync)
    return None


def settings_are_current(seen: Seen) -> Answer:
    """One write of everything that differs; a restriction waits for its groups."""
    client = seen.found
    if client is None:
        return None
    changes = differing(seen, client)
    if Part.GROUPS in seen.failures or _without_groups(seen):
        changes = tuple(name for name in changes if name != "isGroupRestricted")
    if not changes:
        return None
    body = update_body(seen, client)
    if "isGroupRestricted" not in changes:
        body["isGroupRestricted"] = client.is_group_restricted
    plan = UpdateClient(body, changes)
    if any(isinstance(item, UpdateClient) and item.changes == changes for item in seen.done):
        return _not_taken(", ".join(changes), Part.CONFIG, seen)
    return plan


def _without_groups(seen: Seen) -> bool:
    """Whether a restriction would be switched on before its groups are in place."""
    client, groups = seen.found, seen.groups
    return client is not None and bool(groups.restricted) and client.group_ids != frozenset(groups.ids)


def _not_taken(what: str, part: Part, seen: Seen) -> Answer:
    """Told once what was written and read back is still otherwise."""
    if isinstance(seen.look, Found) and seen.look.dirty:
        return None
    return Waiting(part.reason, f"Pocket-ID did not take over {what}", after=seen.settings.resync)


def keys_are_public(seen: Seen) -> Answer:
    """Identities stay as they are while their keys cannot be read."""
    return told(seen.identities, seen) if isinstance(seen.identities, Fault) else None


def server_has_the_features(seen: Seen) -> Answer:
    """What the server would drop silently is told, not sent."""
    if seen.client.spec.backchannel_logout_url and not supports(seen, Feature.BACKCHANNEL_LOGOUT):
        return _unsupported(seen, "backchannelLogoutUrl", Feature.BACKCHANNEL_LOGOUT)
    if unsent(seen):
        return _unsupported(seen, "federatedIdentities[].publicKeys", Feature.PUBLIC_KEYS)
    return None


def _unsupported(seen: Seen, field: str, feature: Feature) -> Waiting:
    """By what its version says, or by what it answered: then it is tried again, later where the version says that it can."""
    version = seen.instance.version if seen.instance else None
    needed = f"spec.{field} needs Pocket-ID {'.'.join(map(str, feature.since[:2]))}"
    match version.supports(feature) if version else Support.BY_READBACK:
        case Support.NO:
            message = f"{needed}; the server has {version.text if version else ''} and would ignore it"
        case Support.YES if (since := seen.lacks.get(feature)) is not None:
            times = f"at {since:%H:%M} UTC; it is sent again at {since + LACKED_FOR:%H:%M} UTC"
            message = f"{needed}; the server says that it has {version.text if version else ''}, and did not take it over {times}"
        case _:
            message = f"{needed}; the server does not tell its version, and did not take it over"
    return Waiting("UnsupportedVersion", message, after=seen.settings.resync)


CONFIG_RULES: Final[tuple[Rule, ...]] = (
    worked(Part.CONFIG),
    settings_are_current,
    keys_are_public,
    server_has_the_features,
)
GROUP_RULES: Final[tuple[Rule, ...]] = (worked(Part.GROUPS), groups_are_set, groups_are_resolved)
