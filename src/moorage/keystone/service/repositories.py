"""The two key repositories as rules: made once, rotated by schedule, never lost.

Fernet keys rotate by themselves: a token lives for hours, its key for weeks. Credential keys protect rows of the database:
before a rotation drops a key, a Job encrypts every stored credential with the primary, and only its success lets the
rotation go on. Enters: the snapshot. Leaves: Met, a plan or a wait. Source: ADR 0010; keystone `credential_rotate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from moorage.core.meta import JsonObject
from moorage.core.outcome import Stalled, Waiting

from .blocks import KeyRepository
from .jobs import job_step
from .keys import (
    ROTATED_AT,
    Commit,
    due,
    keys_of,
    next_rotation,
    primary,
    problem,
    rotated_at,
    staged_step,
    version_of,
)
from .manifests import credential_migrate, gate_of
from .met import Met
from .plan import CommitKeys, MakeKeys, Plan, Remove, StageKeys
from .seen import JOB, SECRET, Seen, Step, job_state

__all__ = ["credential_keys", "credential_rotation", "fernet_keys", "rotations", "version_of"]


@dataclass(frozen=True, slots=True)
class _Repository:
    """One repository: how it is called, what the spec says, what lives."""

    word: str
    step: Step
    secret: str
    settings: KeyRepository
    live: JsonObject | None
    staging: JsonObject | None


_WORDS: Final[dict[str, Step]] = {"Fernet": "FernetKeys", "Credential": "CredentialKeys"}


def _repository(seen: Seen, word: str) -> _Repository:
    secret = f"{seen.name}-{word.lower()}-keys"
    spec = seen.keystone.spec
    return _Repository(
        word=word,
        step=_WORDS[word],
        secret=secret,
        settings=spec.fernet if word == "Fernet" else spec.credential_keys,
        live=seen.child(SECRET, secret),
        staging=seen.child(SECRET, f"{secret}-rotation"),
    )


def fernet_keys(seen: Seen) -> Met | Plan | Stalled:
    """The keys of the tokens, and their rotation."""
    found = _repository(seen, "Fernet")
    if answer := _usable(seen, found):
        return answer
    assert found.live is not None
    if answer := _staged(found):
        return answer
    if due(found.live, found.settings.rotation_schedule, found.settings.suspend, seen.now):
        return Plan(found.step, (StageKeys(found.secret, found.settings.max_active_keys, found.live),))
    return _met(found)


def credential_keys(seen: Seen) -> Met | Plan | Stalled:
    """The keys of stored credentials; their rotation comes last, when the database is known to be served."""
    found = _repository(seen, "Credential")
    return _usable(seen, found) or _met(found)


def credential_rotation(seen: Seen) -> Met | Plan | Stalled | Waiting:
    """Encrypt everything with the primary, then rotate."""
    found = _repository(seen, "Credential")
    assert found.live is not None
    if plan := _staged(found):
        return plan
    if not due(found.live, found.settings.rotation_schedule, found.settings.suspend, seen.now):
        return _without_job(seen, found) or _met(found)
    job = credential_migrate(seen.keystone, seen.wanted.mounts.config, version_of(found.live))
    answer = job_step(seen, found.step, job, ("MigratingCredentials", "CredentialMigrationFailed", 30))
    if isinstance(answer, Waiting) and answer.reason == "MigratingCredentials":
        return Met(f"{found.word}KeysAvailable", "stored credentials are encrypted anew before the rotation")
    return answer or Plan(found.step, (StageKeys(found.secret, found.settings.max_active_keys, found.live),))


def _without_job(seen: Seen, found: _Repository) -> Plan | None:
    """Remove the Job of the last rotation; a present one of another version must not be mistaken for the next."""
    assert found.live is not None
    live = seen.child(JOB, f"{seen.name}-credential-migrate")
    if live is None or not seen.owns(live) or job_state(live) == "ending":
        return None
    wanted = credential_migrate(seen.keystone, seen.wanted.mounts.config, version_of(found.live))
    return None if gate_of(live) == gate_of(wanted) else Plan(found.step, (Remove(JOB, live),))


def _usable(seen: Seen, found: _Repository) -> Plan | Stalled | None:
    """A repository that cannot serve is never replaced: its keys may be all that opens what is stored."""
    if found.live is None:
        return Plan(found.step, (MakeKeys(found.secret),))
    if why := problem(keys_of(found.live)):
        text = f'Secret "{found.secret}": {why}. Restore it from a backup; to start anew, delete it'
        return Stalled(f"{found.word}KeysInvalid", text)
    for secret in (found.live, found.staging):
        if secret is not None and _foreign(seen, secret):
            return Stalled(
                f"{found.word}KeysInvalid", f'Secret "{secret["metadata"]["name"]}" belongs to another object'
            )
    return None


def _foreign(seen: Seen, secret: JsonObject) -> bool:
    """Keys that a person brought have no controller and are used; those of another controller are not."""
    owners = secret["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") for owner in owners) and not seen.owns(secret)


def _staged(found: _Repository) -> Plan | None:
    if found.live is None or found.staging is None:
        return None
    step = staged_step(found.live, found.staging, found.settings.max_active_keys)
    if isinstance(step, Commit):
        return Plan(found.step, (CommitKeys(found.live, found.staging, step.keys),))
    return Plan(found.step, (Remove(SECRET, found.staging),))


def _met(found: _Repository) -> Met:
    assert found.live is not None
    rotated = ROTATED_AT in (found.live["metadata"].get("annotations") or {})
    keys = keys_of(found.live)
    text = f"{len(keys)} keys, primary {primary(keys)}; "
    if found.settings.suspend:
        text += "rotation is suspended"
    else:
        at = next_rotation(found.settings.rotation_schedule, rotated_at(found.live))
        text += f"next rotation {at:%Y-%m-%dT%H:%M:%SZ}"
    return Met(f"{found.word}Keys{'Rotated' if rotated else 'Available'}", text)


def rotations(seen: Seen) -> Iterator[datetime | None]:
    """When each repository is to be rotated next; None where rotation is suspended."""
    for word in _WORDS:
        found = _repository(seen, word)
        if found.live is None or found.settings.suspend:
            yield None
        else:
            yield next_rotation(found.settings.rotation_schedule, rotated_at(found.live))
