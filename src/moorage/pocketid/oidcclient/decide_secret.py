"""The policy of the client secret and the credentials Secret, in the order that never locks an application out.

Enters: a snapshot. Leaves: the next plan, or what holds it up. Pure. What to do about secrets is `secret_steps`; here it becomes plans, beside
the Secret of Kubernetes, its former name and the requests of people. Source: seed 004, Client Secret; spec/pocketid.md 1.6, 3.11.
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Failed, Waiting
from moorage.core.secret import SecretText
from moorage.pocketid.rest_types import Client

from . import render
from .plans import ChangeSecrets, DeleteSecret, MarkInstance, Part, RemoveAnnotation, WriteSecret
from .rotation import Deferral, Deferred, forward, happened
from .rule import Answer, Rule, told, worked
from .secret_snapshot import Mode, Secrets, mode_of
from .secret_steps import ignored_request, step
from .secrets import Delete, Discard, Impossible, Mint, Push, Store
from .seen import Seen
from .seen_parts import Fault
from .types import REGENERATE


def declared_secret_is_usable(seen: Seen) -> Answer:
    """A fault is told; what the server and the Secret hold stays."""
    if seen.declared is None or not seen.declared.fault:
        return None
    return Waiting(Part.DECLARED.reason, seen.declared.fault, after=seen.settings.resync)


def secret_is_ours(seen: Seen) -> Answer:
    """Nothing is made that could not be stored: a Secret of somebody else is left alone."""
    if not seen.kept.foreign or not seen.client.spec.credentials.enabled:
        return None
    return told(Fault("ForeignSecret", seen.kept.foreign), seen)


def secret_that_was_not_stored_is_dropped(seen: Seen) -> Answer:
    """The Secret could not be written: nobody has seen the value, so it does not stay valid at the server."""
    secrets = seen.secrets
    if Part.SECRET not in seen.failures or secrets is None or secrets.made is None or secrets.mode is Mode.DECLARED:
        return None
    made = secrets.fresh
    if made is None or made.value == secrets.stored or ChangeSecrets(Discard(made.id)) in seen.done:
        return None
    return ChangeSecrets(Discard(made.id))


def a_rename_comes_first(seen: Seen) -> Answer:
    """The value moves as it is before it is replaced, so that no Secret of ours is left with one that is retired."""
    if seen.kept.former is None or seen.secrets is None or seen.secrets.fresh is not None:
        return None
    return credentials_are_written(seen) or former_secret_is_gone(seen)


def secrets_are_right(seen: Seen) -> Answer:
    """Make room, mint or push, discard, store, retire: one step."""
    client, secrets = seen.found, seen.secrets
    if client is None or secrets is None or client.is_public:
        return None
    match step(secrets):
        case Mint() | Push() | Discard() | Delete() as found:
            return ChangeSecrets(found, Part.DECLARED if isinstance(found, Push) else Part.SECRET)
        case Store(value, trigger):
            history = seen.history.after(trigger, seen.now)
            return _written(seen, client, secrets.after(stored=value, altered=False), history)
        case Impossible(message):
            return Waiting(Part.SECRET.reason, message, after=seen.settings.resync)
    return None


def credentials_are_written(seen: Seen) -> Answer:
    """The whole Secret as it should be, whether or not it holds a client secret; not asked of one that was written just now."""
    client = seen.found
    if (
        client is None
        or not seen.client.spec.credentials.enabled
        or (seen.done and isinstance(seen.done[-1], WriteSecret))
    ):
        return None
    return _written(seen, client, seen.secrets, seen.history)


def _written(seen: Seen, client: Client, secrets: Secrets | None, history: render.History) -> Answer:
    facts = facts_of(seen, client, secrets, history)
    wanted = render.render(seen.client, facts, seen.kept.live)
    if isinstance(wanted, render.Refused):
        return told(Fault(wanted.reason, wanted.message), seen)
    return WriteSecret(wanted) if render.differs(seen.kept.live, wanted) else None


def facts_of(seen: Seen, client: Client, secrets: Secrets | None, history: render.History) -> render.Facts:
    """What the Secret is made from."""
    value = secrets.presented if secrets is not None else None
    issuer = seen.instance.issuer if seen.instance else ""
    return render.Facts(client.id, issuer, value, history, seen.audiences, _mark(secrets, value, history))


def _mark(secrets: Secrets | None, value: SecretText | None, history: render.History) -> str:
    """The mark of a value that we made; it stays while it cannot be told which secret the value is. A declared one may be short and has none."""
    if secrets is None or not value or secrets.mode is Mode.DECLARED:
        return ""
    row = secrets.current if secrets.mode is Mode.OWN or secrets.fresh is not None else None
    return render.mark_of(row.id, value) if row is not None else history.mark


def former_secret_is_gone(seen: Seen) -> Answer:
    """After a rename, once the value stands under the new name; and the Secret itself when it is switched off."""
    enabled = seen.client.spec.credentials.enabled
    unwanted = (seen.kept.former, None if enabled else seen.kept.live)
    for secret in unwanted:
        if secret is not None and render.removable(secret, seen.client):
            return DeleteSecret(secret["metadata"]["name"])
    return None


def instance_remembers(seen: Seen) -> Answer:
    """The last scheduled rotation of any client, from the Secret itself, so that a crash before this write loses nothing."""
    if seen.instance is None:
        return None
    known = seen.instance_rotated or happened(seen.instance.last_rotated, seen.now)
    later = forward(known, happened(seen.history.scheduled_at, seen.now))
    return None if later is None else MarkInstance(later)


def request_is_done(seen: Seen) -> Answer:
    """A request to regenerate is taken away once it is followed, or with a word why it is not."""
    if seen.annotations.get(REGENERATE) != "true":
        return None
    return RemoveAnnotation(REGENERATE, ignored_request(mode_of(seen.client)) or "")


def rotation_is_understood(seen: Seen) -> Answer:
    """A schedule that cannot be read is told; everything else of the pass is done."""
    match seen.secrets:
        case Secrets(rotation=Deferred(Deferral.WINDOW_ERROR, _, message)):
            return Waiting(Part.SECRET.reason, message, after=seen.settings.resync)
    return None


def _retried(seen: Seen) -> Answer:
    failure = seen.failures.get(Part.DECLARED)
    if failure is None:
        return None
    if failure.after is None:
        return Failed(Part.DECLARED.reason, failure.message)
    return Waiting(Part.DECLARED.reason, failure.message, after=failure.after)


SECRET_RULES: Final[tuple[Rule, ...]] = (
    secret_that_was_not_stored_is_dropped, worked(Part.SECRET), _retried, secret_is_ours, a_rename_comes_first, secrets_are_right,
    credentials_are_written, former_secret_is_gone, instance_remembers, request_is_done, declared_secret_is_usable, rotation_is_understood,
)  # fmt: skip
