"""The policy of an API, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

Enters: a snapshot. Leaves: the next plan, or what the pass came to. Pure. Permissions have one owner, the resource; which client holds
which of them is written by the client's room. Source: spec/pocketid.md 2.3, 4.8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from moorage.core.outcome import Outcome, Stalled
from moorage.pocketid.powers import first_name
from moorage.pocketid.rest_types import Permission
from moorage.pocketid.sibling import (
    BEFORE,
    Answer,
    Rule,
    bound_first,
    first_answer,
    instance_is_ready,
    instance_leaves_it,
    marked,
    no_client_refers,
    nothing_is_left_there,
    retained,
    server_can_be_asked,
    what_was_begun_is_known,
    within_limits,
)
from moorage.runtime.room import Released

from .admission import limits
from .powers import id_is_written_down, overreach
from .seen import Create, Delete, Plan, Rename, Revoke, Seen, SetCimdAccess, SetPermissions
from .types import CLIENT_FINALIZER


def decide(seen: Seen) -> Plan | Outcome | Released:
    """The next plan, or what the pass came to."""
    rules = DELETION if seen.resource.metadata.deletion_timestamp else RULES
    answer: Plan | Outcome | Released = first_answer(rules, seen)
    return answer


def it_may_be_had(seen: Seen) -> Answer:
    """An API that exists is not for every namespace that the instance admits."""
    why = overreach(seen)
    return Stalled("NotPermitted", why) if why else None


def the_barred_hold_nothing(seen: Seen) -> Answer:
    """Taken back here, since the pass of a client that is barred may never come: whoever has it can delete it, or select no instance."""
    if seen.found is None:
        return None
    plans = [Revoke(seen.found.id, item.id) for item in seen.barred]
    refused = {plan for plan, trouble in seen.failed if not trouble.stops}
    return next((plan for plan in plans if plan not in refused), plans[0] if plans else None)


def api_exists(seen: Seen) -> Answer:
    """Created when no API has its audience; the one that has it is adopted."""
    return Create(first_name(seen, seen.name), seen.audience) if seen.found is None else None


def name_is_current(seen: Seen) -> Answer:
    """The name that people see."""
    return None if seen.found is None or seen.found.name == seen.name else Rename(seen.found.id, seen.name)


def permissions_are_exact(seen: Seen) -> Answer:
    """Exactly the declared permissions; their order means nothing."""
    if seen.found is None or _plain(seen.found.permissions) == seen.permissions:
        return None
    return SetPermissions(seen.found.id, seen.permissions)


def switch_is_set(seen: Seen) -> Answer:
    """Clients with a metadata document have what is declared, once the permissions are there; an absent word leaves it as it is."""
    api, wanted = seen.found, seen.resource.spec.cimd_access
    if api is None or wanted is None or _plain(api.permissions) != seen.permissions:
        return None
    opened = tuple(sorted(item.key for item in api.permissions if item.allowed_for_cimd))
    return (
        None if (api.allow_cimd, opened) == (wanted, seen.open_keys) else SetCimdAccess(api.id, wanted, seen.open_keys)
    )


def _plain(permissions: tuple[Permission, ...]) -> tuple[Permission, ...]:
    """Permissions as they are sent, in the order of their keys."""
    return tuple(
        sorted((replace(item, id="", allowed_for_cimd=False) for item in permissions), key=lambda item: item.key)
    )


RULES: Final[tuple[Rule, ...]] = (
    *BEFORE, it_may_be_had, the_barred_hold_nothing, within_limits(limits), bound_first("apiID"), marked(CLIENT_FINALIZER),
    api_exists, id_is_written_down, name_is_current, permissions_are_exact, switch_is_set,
)  # fmt: skip


# --- deletion


def delete(seen: Seen) -> Answer:
    """Its grants go with it."""
    return Delete(seen.known) if seen.known else None


DELETION: Final[tuple[Rule, ...]] = (
    no_client_refers, marked(CLIENT_FINALIZER), what_was_begun_is_known, nothing_is_left_there, instance_leaves_it, retained, instance_is_ready, server_can_be_asked, delete,
)  # fmt: skip
