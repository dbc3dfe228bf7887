"""Which secret on the server is the stored one, and which may go: the plans, each a frozen value.

Enters: a value, the secrets that the server lists, the server's time. Leaves: the secret that holds the value, or a plan to mint, push or
delete. Pure. The server tells four characters of each secret and never its value; what cannot be told apart is left alone, unless the status
has the id of the one that we made or pushed last (`secret_facts`):

    could hold   active, and the prefix is that of the value or none (a secret that an upgrade carried over)
    resolve      the only one with the prefix, else the only one without any, else unknown
    at the cap   what cannot hold a protected value, oldest first; of declared ones before all others what begins like both its neighbours
    retirement   all but the resolved one, oldest first, each once an overlap has passed since its own replacement was made

Source: seed 004, Client Secret; spec/pocketid.md 3.11, 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from moorage.core.secret import SecretText
from moorage.pocketid.rest_types import SECRET_CAP, ClientSecret, MadeSecret

PREFIX_LENGTH: Final = 4
SHORTEST: Final = 16
"""Fewest characters of a declared secret."""
MINT_ATTEMPTS: Final = 3
_NEVER: Final = timedelta(0)


class Trigger(StrEnum):
    """Why a secret is made; the label of the metric. `declared` is no rotation and is not counted as one."""

    INITIAL = "initial"
    MANUAL = "manual"
    SCHEDULED = "scheduled"
    DRIFT = "drift"
    DECLARED = "declared"


class Retired(StrEnum):
    """Why a secret is deleted; the label of the metric."""

    SUPERSEDED = "superseded"
    CAP = "cap"


@dataclass(frozen=True, slots=True)
class Mint:
    """Let the server make a secret."""

    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Push:
    """Send a declared value."""

    value: SecretText


@dataclass(frozen=True, slots=True)
class Discard:
    """Delete a mint whose first characters another secret has; nobody has seen its value."""

    id: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete these, in this order. One that is gone already is done; a failed delete ends the plan, and the next pass makes it anew."""

    ids: tuple[str, ...]
    reason: Retired


@dataclass(frozen=True, slots=True)
class Store:
    """Write the credentials Secret with this value, everything else in it included."""

    value: SecretText
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Impossible:
    """Only a person can go on; the message says how and holds no character of a secret."""

    message: str


@dataclass(frozen=True, slots=True)
class Made:
    """A secret made in this pass, or carried over because it could not be stored yet."""

    made: MadeSecret = field(repr=False)
    trigger: Trigger

    @property
    def id(self) -> str:
        """Its id on the server."""
        return self.made.secret.id

    @property
    def value(self) -> SecretText:
        """The value."""
        return self.made.value


Held = Sequence[ClientSecret]


def prefix(value: SecretText) -> str:
    """What the server tells of a value; "" for one that is too short for it."""
    text = value.reveal()
    return text[:PREFIX_LENGTH] if len(text) > PREFIX_LENGTH else ""


def alive(secret: ClientSecret, now: datetime) -> bool:
    """Whether it authenticates at this time of the server."""
    return secret.is_active and (secret.expires_at is None or secret.expires_at > now)


def could_hold(value: SecretText, secret: ClientSecret, now: datetime) -> bool:
    """Whether it may be this value: it lives, and what is known of it does not differ. No secret holds what the server would refuse."""
    return alive(secret, now) and _possible(value) and secret.prefix in ("", prefix(value))


def present(value: SecretText, held: Held, now: datetime) -> bool:
    """Whether any secret may be this value; that it cannot be told which is no drift."""
    return any(could_hold(value, secret, now) for secret in held)


def resolve(value: SecretText, held: Held, now: datetime) -> ClientSecret | None:
    """The secret that holds the value; None when that cannot be told, and then nothing is deleted."""
    candidates = [secret for secret in held if could_hold(value, secret, now)]
    exact = [secret for secret in candidates if secret.prefix]
    found = exact or candidates
    return found[0] if len(found) == 1 else None


def newest(held: Held, id: str) -> ClientSecret | None:
    """The secret of that id, if none was made after it."""
    found = next((row for row in held if row.id == id), None)
    return found if found and all(row is found or row.created_at < found.created_at for row in held) else None


def _possible(value: SecretText) -> bool:
    text = value.reveal()
    return bool(text) and all(" " <= char <= "~" for char in text)


def collides(made: ClientSecret, held: Held, now: datetime) -> bool:
    """Whether a living secret beside it has the same first characters."""
    others = (secret for secret in held if secret.id != made.id and alive(secret, now))
    return bool(made.prefix) and any(secret.prefix == made.prefix for secret in others)


def mint_plan(made: Made, held: Held, now: datetime) -> Discard | None:
    """What becomes of a mint: kept, or discarded because it could not be told from another."""
    return Discard(made.id) if collides(made.made.secret, held, now) else None


def cap_plan(
    held: Held, stored: SecretText | None, now: datetime, *, declared: SecretText | None = None, known: str = ""
) -> Delete | Impossible | None:
    """Room for one more; expired secrets count.

    Args:
        stored: the value that must stay valid: what cannot hold it goes, oldest first.
        declared: a value that is pushed next, so those that could hold it may go, too, after all others; those that could be the stored one last.
        known: id of a secret that is in use, whatever its value is; it is among the last.
    """
    excess = len(held) - SECRET_CAP + 1
    if excess <= 0:
        return None
    rows = oldest_first(held)
    needed = [row.id for row in rows if row.id == known or (stored and could_hold(stored, row, now))]
    spare = [row.id for row in rows if row.id not in needed and declared and could_hold(declared, row, now)]
    free = [row.id for row in rows if row.id not in needed and row.id not in spare]
    if declared is not None:
        first = [id for id in _between(rows, known, now) if id not in needed]
        free = [*first, *(id for id in (*free, *spare, *needed) if id not in first)]
    if len(free) < excess:
        return Impossible(
            f"the client holds {len(held)} secrets, as many as Pocket-ID allows, and each could be the stored one;"
            " delete those that are not needed in Pocket-ID"
        )
    return Delete(tuple(free[:excess]), Retired.CAP)


def _between(rows: Held, known: str, now: datetime) -> list[str]:
    """What goes before all others, the youngest first: what does not live, and what begins like the one before and the one after it.

    A value that was pushed again and again leaves such a row. The first of it tells since when the one before it is replaced, and the last is in
    use. Only up to the known one: what is younger was not recorded.

    Args:
        rows: oldest first.
    """
    living = [row for row in rows if alive(row, now)]
    last = next((index for index, row in enumerate(living) if row.id == known), 0)
    threes = zip(living[: last + 1], living[1 : last + 1], living[2 : last + 1], strict=False)
    alike = [row.id for before, row, after in threes if before.prefix == row.prefix == after.prefix != ""]
    return [*(row.id for row in rows if row not in living), *reversed(alike)]


def retirement_plan(current: ClientSecret, held: Held, overlap: timedelta, now: datetime) -> Delete | None:
    """All but the current one, oldest first, each once its overlap has passed.

    Args:
        overlap: none retires at once, whatever the clocks say; so does what is younger than the current one.
        now: the server's time in whole seconds, since `created_at` is its own.
    """
    times, at_once = retirements(current, held, overlap), overlap <= _NEVER
    ids = tuple(
        secret.id
        for secret in oldest_first(held)
        if secret.id != current.id and (at_once or secret.created_at > current.created_at or now >= times[secret.id])
    )
    return Delete(ids, Retired.SUPERSEDED) if ids else None


def retirements(current: ClientSecret, held: Held, overlap: timedelta) -> dict[str, datetime]:
    """When each secret but the current one is deleted at the earliest, oldest first.

    Its overlap begins with its own replacement, which is the next secret that was made: measured from the current one, an overlap as long as the
    interval would begin anew with every rotation and pile secrets up. What is younger than the current one was never stored, so it has none.
    """
    rows = oldest_first(held)
    at = next((index for index, secret in enumerate(rows) if secret.id == current.id), len(rows))
    span = max(overlap, _NEVER)
    before = {secret.id: successor.created_at + span for secret, successor in pairwise(rows[: at + 1])}
    return before | {secret.id: secret.created_at for secret in rows[at + 1 :]}


def oldest_first(held: Held) -> list[ClientSecret]:
    """By creation; those of one moment in the server's order."""
    return sorted(held, key=lambda secret: secret.created_at)


def declared_fault(value: SecretText | None, source: str, secret_name: str, own_secret: str) -> str | None:
    """Why a declared value cannot be used, without a character of it.

    Args:
        value: None when the Secret or its key is missing; `optional` changes nothing about that.
        source: `<Secret>/<key>`.
        secret_name: the Secret that is referred to.
        own_secret: the credentials Secret.
    """
    if secret_name == own_secret:
        return f"clientSecretRef names {source}, the credentials Secret of this client; refer to another Secret"
    if value is None:
        return f"clientSecretRef names {source}, which does not exist; create the Secret and the key"
    text = value.reveal()
    if len(text) < SHORTEST:
        return f"the value of {source} has fewer than {SHORTEST} characters; use a longer one"
    if not _possible(value):
        return f"the value of {source} holds something else than printable ASCII, such as a line end; write it without"
    return None


def source_version(name: str, key: str, resource_version: str) -> str:
    """How `status.clientSecretSourceVersion` names a declared value."""
    return f"{name}/{key}@{resource_version}"
