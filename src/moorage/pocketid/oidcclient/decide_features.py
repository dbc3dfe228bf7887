"""The policy of what hangs on a client: the SCIM provider and grants on APIs. Each ends by itself and holds up nothing else.

Enters: a snapshot. Leaves: the next plan, or why it cannot be as declared. Pure. The resource is the sole owner of what it manages: a grant
that it does not declare is taken back, a token that is declared no more is cleared. Source: spec/pocketid.md 3.9, 3.10; seed 004.
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Failed, Waiting
from moorage.pocketid.rest_types import Access, Grant

from .lookups import Unknown
from .plans import CreateScim, DeleteScim, Part, RemoveGrant, SetGrant, UpdateScim
from .rule import Answer, Rule, told, worked
from .seen import Seen

# --- SCIM


def scim_is_known(seen: Seen) -> Answer:
    """A token that cannot be read changes nothing, nor does a look that failed: that one is tried again soon."""
    if seen.scim.fault:
        return Waiting(Part.SCIM.reason, seen.scim.fault, after=seen.settings.resync)
    return _not_known(Part.SCIM, seen.scim.look)


def _not_known(part: Part, look: object) -> Answer:
    match look:
        case Unknown(message, None):
            return Failed(part.reason, message)
        case Unknown(message, after):
            return Waiting(part.reason, message, after=after)
    return None


def scim_is_as_declared(seen: Seen) -> Answer:
    """One provider with this endpoint and token, or none. What an earlier pass left untracked goes, too."""
    scim, wanted = seen.scim, seen.client.spec.scim
    if seen.found is None or not scim.asked:
        return None
    if wanted is None:
        return DeleteScim(scim.provider.id) if scim.provider is not None else None
    if scim.provider is None:
        return CreateScim(wanted.endpoint, scim.token)
    if (scim.provider.endpoint, scim.provider.token) == (wanted.endpoint, scim.token):
        return None
    plan = UpdateScim(scim.provider.id, wanted.endpoint, scim.token)
    if plan not in seen.done:
        return plan
    return Waiting(Part.SCIM.reason, "Pocket-ID did not take over endpoint and token", after=seen.settings.resync)


SCIM_RULES: Final[tuple[Rule, ...]] = (worked(Part.SCIM), scim_is_known, scim_is_as_declared)


# --- API access


def grants_are_known(seen: Seen) -> Answer:
    """A look that failed is not a fact."""
    return _not_known(Part.ACCESS, seen.apis.grants)


def grants_are_as_declared(seen: Seen) -> Answer:
    """Every declared grant; a grant beyond them goes, unless a reference leads nowhere now: then it may be the one that is meant.

    One on an API that does not admit the client any more goes in any case.
    """
    if not isinstance(seen.apis.grants, tuple):
        return None
    held = {grant.api.id: grant.access for grant in seen.apis.grants if grant.access.grants_anything}
    wanted = wanted_access(seen)
    for id, access in wanted.items():
        plan = SetGrant(id, access)
        had = held.get(id, Access())
        if had != access and plan not in seen.done and seen.apis.narrowed.get(id) != (access, had):
            return plan
    beyond = [id for id in held if id not in wanted and (id in seen.apis.barred or not seen.apis.faults)]
    undeclared = (id for id in beyond if RemoveGrant(id) not in seen.done)
    return next((RemoveGrant(id) for id in undeclared if seen.client.owns_access), None)


def wanted_access(seen: Seen) -> dict[str, Access]:
    """What is declared, by API; several entries of one API are one grant."""
    found: dict[str, Access] = {}
    for need in seen.apis.needs:
        before = found.get(need.api_id, Access())
        found[need.api_id] = Access(
            before.user_delegated or need.access.user_delegated,
            before.client or need.access.client,
            before.user_delegated_permissions | need.access.user_delegated_permissions,
            before.client_permissions | need.access.client_permissions,
        )
    return found


def apis_are_resolved(seen: Seen) -> Answer:
    """A reference that leads nowhere is told; the other entries are granted all the same."""
    return told(seen.apis.faults[0], seen) if seen.apis.faults else None


def nothing_is_narrowed(seen: Seen) -> Answer:
    """The server takes less than it is sent without a word, such as client access of a client that is public."""
    if not isinstance(seen.apis.grants, tuple):
        return None
    held: dict[str, Grant] = {grant.api.id: grant for grant in seen.apis.grants}
    for need in seen.apis.needs:
        grant = held.get(need.api_id)
        if grant is None or grant.access != wanted_access(seen)[need.api_id]:
            message = f"Pocket-ID granted less of PocketIDAPI {need.name} than is declared"
            return Waiting(Part.ACCESS.reason, message, after=seen.settings.resync)
    return None


ACCESS_RULES: Final[tuple[Rule, ...]] = (
    worked(Part.ACCESS), grants_are_known, grants_are_as_declared, apis_are_resolved, nothing_is_narrowed,
)  # fmt: skip
