"""What is done next about a client's secrets, read from top to bottom.

Enters: a snapshot of the secrets. Leaves: the next plan, or None when nothing is left. Pure. The caller performs a plan, puts the answer into
the snapshot (`minted`, `without`, `written`) and asks again, so that one pass is

    make room -> mint or push -> discard a collision -> store -> retire

and a crash between any two is healed by the next pass: the stored value is found again among what the server holds, and what was made
beside it is retired. Nothing is deleted before its replacement stands in the credentials Secret.
Source: seed 004, Client Secret to Client Secret Overlap; spec/pocketid.md 1.6.1, 3.11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from moorage.core.secret import SecretText

from .rotation import NEVER, Rotate, stamp
from .secret_snapshot import Mode, Secrets
from .secrets import (
    MINT_ATTEMPTS,
    Delete,
    Discard,
    Impossible,
    Mint,
    Push,
    Retired,
    Store,
    Trigger,
    alive,
    cap_plan,
    could_hold,
    mint_plan,
    oldest_first,
    present,
    retirement_plan,
    retirements,
)
from .types_status import SecretStatus

Step: TypeAlias = Mint | Push | Discard | Delete | Store | Impossible


Answer: TypeAlias = Step | None
Rule: TypeAlias = Callable[[Secrets], Answer]


def step(secrets: Secrets) -> Answer:
    """The next plan; None when nothing is left to do."""
    return next((answer for rule in RULES[secrets.mode] if (answer := rule(secrets)) is not None), None)


# --- rules


def a_collision_is_discarded(secrets: Secrets) -> Answer:
    """Never two secrets that cannot be told apart; once stored, it is the others that give way."""
    made = secrets.fresh
    if made is None or made.value == secrets.stored:
        return None
    return mint_plan(made, secrets.held, secrets.server_now)


def a_fresh_value_is_stored(secrets: Secrets) -> Answer:
    """Before anything is retired."""
    made = secrets.fresh
    return Store(made.value, made.trigger) if made and made.value != secrets.stored else None


def a_secret_is_made(secrets: Secrets) -> Answer:
    """When there is a reason, and nothing was made in this pass."""
    if secrets.fresh is not None or (why := trigger(secrets)) is None:
        return None
    if secrets.discarded >= MINT_ATTEMPTS:
        return Impossible(
            "Pocket-ID made three secrets in a row that begin like one the client has already; it is tried again"
        )
    return _room(secrets) or Mint(why)


def a_declared_value_is_pushed(secrets: Secrets) -> Answer:
    """On a new revision, and when no secret of the server is known to hold it; what the server says it stored must be what was sent.

    A value that is pushed once more may stand in two secrets then: the new one is known to work, so all others end as if they had been replaced.
    """
    if secrets.declared is None:
        return None
    if (made := secrets.fresh) is not None:
        return (
            None
            if made.value == secrets.declared
            else Impossible("Pocket-ID stored another value than clientSecretRef declares")
        )
    if secrets.current is not None and not secrets.changed:
        return None
    return _room(secrets) or Push(secrets.declared)


def a_declared_value_is_stored(secrets: Secrets) -> Answer:
    """Unless the Secret is switched off or is not to hold it."""
    wanted = secrets.declared
    return (
        Store(wanted, Trigger.DECLARED) if secrets.stores and wanted is not None and wanted != secrets.stored else None
    )


def superseded_ones_are_retired(secrets: Secrets) -> Answer:
    """Only beside a current one that is known, and only when the Secret holds it."""
    if (current := secrets.current) is None:
        return None
    return retirement_plan(current, secrets.held, secrets.overlap, secrets.server_now)


def what_holds_the_same_ends(secrets: Secrets) -> Answer:
    """A value that was pushed again replaced nothing. Its first secret stays while there is an older one, whose overlap began with it."""
    begin, made = secrets.beginning, secrets.fresh
    if begin is None or made is None:
        return None
    marks = any(row.created_at < begin.created_at for row in secrets.held)
    same = {secrets.marked, begin.id} - {begin.id if marks else "", made.id}
    ids = tuple(row.id for row in oldest_first(secrets.held) if row.id in same)
    return Delete(ids, Retired.SUPERSEDED) if ids else None


def what_others_manage_is_left_alone(secrets: Secrets) -> Answer:
    """A secret that is not stored is managed elsewhere; until the first one is stored, all are ours."""
    return superseded_ones_are_retired(secrets) if secrets.pending else None


def a_fault_retires_nothing_new(secrets: Secrets) -> Answer:
    """A declared value that cannot be used takes the place of none."""
    return superseded_ones_are_retired(secrets) if secrets.declared is not None else None


def what_we_replaced_before_still_ends(secrets: Secrets) -> Answer:
    """An overlap that began ends, whoever manages the secret by now: what is older than the one that we made or pushed last.

    What is younger is of others, and what could be the stored value stays.
    """
    last, stored, now = secrets.living(secrets.marked), None if secrets.known else secrets.stored, secrets.server_now
    if last is None:
        return None
    before = [
        row
        for row in secrets.held
        if row.created_at < last.created_at and not (stored and could_hold(stored, row, now))
    ]
    return retirement_plan(last, [*before, last], secrets.overlap, now)


RULES: Final[Mapping[Mode, tuple[Rule, ...]]] = {
    Mode.OWN: (
        a_collision_is_discarded,
        a_fresh_value_is_stored,
        superseded_ones_are_retired,
        a_secret_is_made,
    ),
    Mode.KEPT: (
        a_collision_is_discarded,
        a_fresh_value_is_stored,
        a_secret_is_made,
        what_others_manage_is_left_alone,
        what_we_replaced_before_still_ends,
    ),
    Mode.DECLARED: (
        a_declared_value_is_pushed,
        a_declared_value_is_stored,
        a_fault_retires_nothing_new,
        what_holds_the_same_ends,
        what_we_replaced_before_still_ends,
    ),
    Mode.OFF: (what_we_replaced_before_still_ends,),
    Mode.NONE: (),
}


# --- reasons to make one, the first that holds


def trigger(secrets: Secrets) -> Trigger | None:
    """Why a secret is made now. Scheduled ones alone pass gates."""
    return next((why for why, holds in TRIGGERS[secrets.mode] if holds(secrets)), None)


def _nothing_stored(secrets: Secrets) -> bool:
    return not secrets.stored


def _created_by_us(secrets: Secrets) -> bool:
    return (secrets.pending or secrets.overwritten) and not secrets.stored


def _asked(secrets: Secrets) -> bool:
    return secrets.asked


def _rotation_due(secrets: Secrets) -> bool:
    return isinstance(secrets.rotation, Rotate)


def _lost(secrets: Secrets) -> bool:
    stored = secrets.stored
    return stored is not None and (secrets.altered or not _is_there(secrets, stored))


def _is_there(secrets: Secrets, value: SecretText) -> bool:
    """Whether the server has it: the secret that it is known to be, else any that it could be."""
    return secrets.current is not None if secrets.known else present(value, secrets.held, secrets.server_now)


TRIGGERS: Final[Mapping[Mode, tuple[tuple[Trigger, Callable[[Secrets], bool]], ...]]] = {
    Mode.OWN: (
        (Trigger.INITIAL, _nothing_stored),
        (Trigger.MANUAL, _asked),
        (Trigger.SCHEDULED, _rotation_due),
        (Trigger.DRIFT, _lost),
    ),
    Mode.KEPT: ((Trigger.INITIAL, _created_by_us),),
    Mode.DECLARED: (),
    Mode.OFF: (),
    Mode.NONE: (),
}


# --- what people see


def ignored_request(mode: Mode) -> str | None:
    """Why a request to regenerate is taken away without effect; None when it has one."""
    return mode.value or None


def summary(secrets: Secrets) -> tuple[SecretStatus, ...]:
    """`status.secrets`: the secrets on the server, oldest first, without a character of them."""
    current = secrets.current
    times = retirements(current, secrets.held, secrets.overlap) if current is not None else {}
    return tuple(
        SecretStatus(
            created=stamp(item.created_at),
            retires=stamp(times[item.id]) if item.id in times else None,
            active=alive(item, secrets.server_now),
            current=current is not None and item.id == current.id,
        )
        for item in oldest_first(secrets.held)
    )


def next_retirement(secrets: Secrets) -> datetime | None:
    """When the next secret is retired whose overlap has not passed yet, by the server's clock; None when none waits for that."""
    if secrets.current is None or secrets.overlap <= NEVER:
        return None
    times = retirements(secrets.current, secrets.held, secrets.overlap).values()
    return min((time for time in times if time > secrets.server_now), default=None)


def _room(secrets: Secrets) -> Answer:
    if secrets.mode is not Mode.DECLARED or (declared := secrets.declared) is None:
        return cap_plan(secrets.held, secrets.stored, secrets.server_now)
    stored = None if secrets.again and secrets.stored == declared else secrets.stored  # the marked one holds it
    return cap_plan(secrets.held, stored, secrets.server_now, declared=declared, known=secrets.marked)
