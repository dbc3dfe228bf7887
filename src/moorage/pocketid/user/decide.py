"""The policy of a user, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

Enters: a snapshot. Leaves: the next plan, or what the pass came to. Pure. A login link is made for a user that we made ourselves, never for
one that was adopted: it would let in whoever reads the Secret. Source: spec/pocketid.md 2.4, 4.7.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from moorage.core.outcome import Done, Outcome, Stalled, Waiting
from moorage.pocketid.rest_types import STATIC_KEY_OWNER, nfc
from moorage.pocketid.sibling import (
    REFUSED_POLL,
    Answer,
    Record,
    Rule,
    bound_first,
    first_answer,
    instance_is_ready,
    instance_is_selected,
    instance_leaves_it,
    look_worked,
    nobody_else_has_it,
    nothing_is_left_there,
    server_can_be_asked,
)
from moorage.runtime.room import Event, Released

from .keys import encoded, is_due, place
from .powers import id_is_written_down, overreach
from .seen import Create, Delete, DropKey, MakeKey, MakeLink, Plan, Seen, SetClaims, Update, WriteData, WriteKeys
from .types import DELETE

LINK_LIFE: Final = timedelta(minutes=60)


def decide(seen: Seen) -> Plan | Outcome | Released:
    """The next plan, or what the pass came to."""
    rules = DELETION if seen.resource.metadata.deletion_timestamp else RULES
    answer: Plan | Outcome | Released = first_answer(rules, seen)
    if isinstance(answer, Done) and seen.link_until is not None:
        return Done(after=min(seen.resync, (seen.link_until - seen.now).total_seconds() + 1))
    return answer


def values_are_there(seen: Seen) -> Answer:
    """A watch on Secrets wakes us when they are."""
    return None if seen.values else Waiting("ValueNotFound", seen.fault, after=seen.resync)


def it_is_a_person(seen: Seen) -> Answer:
    """The owner of the server's static key is the operator itself."""
    if STATIC_KEY_OWNER not in (seen.resource.spec.user_id, seen.found.id if seen.found else None):
        return None
    return Stalled("ReconcileError", f"user {STATIC_KEY_OWNER} owns the API key of the operator; declare another one")


def powers_are_given(seen: Seen) -> Answer:
    """What would make a tenant of the cluster an administrator of the server is asked of the instance."""
    why = overreach(seen)
    return Stalled("NotPermitted", why) if why else None


def keys_of_an_administrator_go(seen: Seen) -> Answer:
    """Made for an ordinary person of a namespace that is not trusted, they would open the whole server since that person was promoted."""
    user = seen.found
    if user is None or not user.is_admin or user.id != seen.known or not overreach(seen):
        return None
    for name, shelf in sorted(seen.shelves.items()):
        if shelf.user == user.id:
            left = [id for held in shelf.held for id in (held.id, *held.former) if id not in seen.dropped]
            return DropKey(user.id, left[0]) if left else WriteKeys(name, ())
    return None


def secrets_are_ours(seen: Seen) -> Answer:
    """A Secret that is there and is not ours is never written over."""
    if not seen.foreign:
        return None
    names = ", ".join(seen.foreign)
    return Waiting(
        "ForeignSecret", f"Secret {names} exists and is not of this resource; delete or rename it", after=REFUSED_POLL
    )


def keys_of_a_lost_user_go(seen: Seen) -> Answer:
    """They went with the user; a Secret that still holds one would be taken for good."""
    if seen.found is not None or not seen.lost:
        return None
    return next((WriteKeys(name, ()) for name, shelf in sorted(seen.shelves.items()) if shelf.exists), None)


def link_is_announced(seen: Seen) -> Answer:
    """Written down before the user is made: after a crash it is known that the link is still owed."""
    if seen.found is not None or seen.link_until is not None:
        return None
    end = (seen.now + LINK_LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Record((("oneTimeLoginExpiresAt", end),), "a login link is owed to the user that is made next")


def user_exists(seen: Seen) -> Answer:
    """Created when nobody has the name or address; who has, is adopted."""
    return Create(seen.wanted_id) if seen.found is None else None


def settings_are_current(seen: Seen) -> Answer:
    """What is declared; everything else stays as people set it."""
    user = seen.found
    if user is None or user.ldap_id:
        return None
    wrong = drifted(seen)
    return Update(user.id, wrong) if wrong else None


def drifted(seen: Seen) -> tuple[str, ...]:
    """Declared members that the server holds otherwise."""
    raw = seen.found.raw if seen.found else {}

    def differs(name: str) -> bool:
        held = raw.get(name)
        return bool((nfc(held) if isinstance(held, str) else held) != seen.managed[name])

    return tuple(name for name in seen.managed if differs(name))


def claims_are_exact(seen: Seen) -> Answer:
    """Exactly the declared claims; their order means nothing."""
    user = seen.found
    if user is None or tuple(sorted(user.claims, key=lambda item: item.key)) == seen.claims:
        return None
    return SetClaims(user.id, seen.claims)


def link_is_made(seen: Seen) -> Answer:
    """Once, for a user that we made, while there is time to use it."""
    user, end = seen.found, seen.link_until
    if user is None or end is None or seen.link is not None or user.id != seen.wanted_id or user.disabled:
        return None
    until = end.strftime("%Y-%m-%dT%H:%M:%SZ")
    if seen.stored_link in encoded([("x", until)]).values() or end - seen.now < timedelta(minutes=1):
        return None
    return MakeLink(user.id, until)


def data_is_written(seen: Seen) -> Answer:
    """What the user is, and the link as long as it is good."""
    if seen.found is None or ((seen.data or {}).get("data") or {}) == seen.wanted_data()["data"]:
        return None
    return WriteData(seen.link is not None)


def made_keys_are_kept(seen: Seen) -> Answer:
    """At once: a token is seen once."""
    for key in seen.resource.spec.api_keys or ():
        if key.name in seen.made:
            return WriteKeys(place(seen.resource, key)[0], (key.name, seen.made[key.name].key.id))
    return None


def former_keys_go(seen: Seen) -> Answer:
    """Keys that were replaced, and keys that are declared no more."""
    if seen.found is None:
        return None
    declared = {key.name: place(seen.resource, key) for key in seen.resource.spec.api_keys or ()}
    for name, shelf in sorted(seen.shelves.items()):
        ours = shelf.user == seen.found.id
        for held in shelf.held:
            stays = declared.get(held.name) == (name, held.entry)
            gone = (*held.former, *(() if stays else (held.id,))) if ours else ()
            left = [id for id in gone if id not in seen.dropped]
            if left:
                return DropKey(seen.found.id, left[0])
            if gone or not stays:
                return WriteKeys(name, tuple(gone))
    return None


def keys_are_made(seen: Seen) -> Answer:
    """One after the other; a disabled user cannot have any made."""
    if seen.found is None or seen.found.disabled:
        return None
    for key in seen.resource.spec.api_keys or ():
        shelf = seen.shelves[place(seen.resource, key)[0]]
        held = shelf.get(key.name) if shelf.user == seen.found.id else None
        if is_due(key, held, seen.now):
            return MakeKey(seen.found.id, key.name)
    return None


def directory_agrees(seen: Seen) -> Answer:
    """A user of the directory takes claims only."""
    wrong = drifted(seen) if seen.found is not None and seen.found.ldap_id else ()
    if not wrong or seen.found is None:
        return None
    message = f"the directory (LDAP) manages user {seen.found.username!r}: {', '.join(wrong)} differ; change them there, and here to match"
    return Waiting("ManagedByDirectory", message, after=REFUSED_POLL)


RULES: Final[tuple[Rule, ...]] = (
    instance_is_selected, instance_is_ready, server_can_be_asked, values_are_there, look_worked, nobody_else_has_it, it_is_a_person,
    keys_of_an_administrator_go, powers_are_given, secrets_are_ours, bound_first("userID", "oneTimeLoginExpiresAt"), keys_of_a_lost_user_go, link_is_announced, user_exists,
    made_keys_are_kept, id_is_written_down, settings_are_current, claims_are_exact, link_is_made, data_is_written, former_keys_go, keys_are_made,
    directory_agrees,
)  # fmt: skip


# --- deletion


def keys_go(seen: Seen) -> Answer:
    """Keys that we made, also of a user that stays: their Secrets go, and nobody would know of them. What is refused is left."""
    refused = {plan.id for plan, trouble in seen.failed if isinstance(plan, DropKey) and not trouble.stops}
    ids = {
        id
        for shelf in seen.shelves.values()
        if shelf.user == seen.known
        for held in shelf.held
        for id in (held.id, *held.former)
    }
    left = sorted(ids - seen.dropped - refused)
    if not left:
        return None
    return instance_is_ready(seen) or server_can_be_asked(seen) or DropKey(str(seen.known), left[0])


def user_stays(seen: Seen) -> Answer:
    """By default; the annotation, or the policy, deletes the user."""
    annotated = (seen.resource.metadata.annotations or {}).get(DELETE) == "true"
    if annotated or seen.resource.spec.deletion_policy == "Delete":
        return None
    return Released(
        (Event("Normal", "Retained", f"user {seen.known} stays in Pocket-ID; annotation {DELETE} would delete it"),)
    )


def delete(seen: Seen) -> Answer:
    """Its keys go with it."""
    return Delete(seen.known) if seen.known else None


DELETION: Final[tuple[Rule, ...]] = (
    nothing_is_left_there,
    instance_leaves_it,
    keys_go,
    user_stays,
    instance_is_ready,
    server_can_be_asked,
    delete,
)
