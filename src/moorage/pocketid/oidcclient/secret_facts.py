"""The snapshot of a client's secrets: from the resource, its Secrets, and what the server lists; and what the status remembers of them.

Enters: a snapshot with the client in it, the server's time. Leaves: Secrets for the secret engine; `status.clientSecret`, which is the one place
that tells in every mode which secret of the server we made or pushed last. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from moorage.core.secret import SecretText
from moorage.pocketid.rest_types import Client, ClientSecret

from .render import DIGEST, mark_of, stored
from .rotation import NEVER, anchor_of, due, spacing_of, span_of
from .secret_snapshot import Mode, Secrets, mode_of, stores
from .secrets import Made, alive, newest, prefix, present
from .seen import Seen
from .types import REGENERATE
from .types_status import ClientSecretMark
from .wanted import is_newborn, own_id

DRAWN_LENGTH: Final = 32
"""Characters of a secret that Pocket-ID draws."""


def with_secrets(seen: Seen, client: Client, server_now: datetime) -> Seen:
    """The snapshot with what is known of the secrets, once the client is known."""
    resource, declared, mode = seen.client, seen.declared, mode_of(seen.client)
    found = stored(resource, seen.kept.live, seen.kept.former)
    spec, status, instance = resource.spec, resource.status, seen.instance
    version = declared.version if declared is not None else ""
    strange = found.value is not None and not present(found.value, client.secrets, server_now)
    pending = _is_pending(seen, client, settled=found.value is not None and not strange)
    gone = strange and mode is not Mode.DECLARED and (pending or bool(seen.places))
    value = None if gone else found.value
    told = status.client_secret or ClientSecretMark(id="")
    marks = (found.history.mark, _mark(told))
    foreign = found.value if gone and not seen.moved else None
    secrets = Secrets(
        mode=mode,
        held=client.secrets,
        server_now=server_now,
        stored=value,
        stores=stores(resource),
        overlap=NEVER if pending else span_of(spec.client_secret_overlap),
        declared=declared.value if declared is not None and not declared.fault else None,
        again=_is_again(seen, told, found.value, client),
        first=told.first or "",
        overwritten=mode is Mode.KEPT and foreign is not None and _mark(told) == mark_of(told.id, foreign),
        changed=version not in (told.source or status.client_secret_source_version, seen.pushed_version),
        asked=seen.annotations.get(REGENERATE) == "true",
        pending=pending,
        altered=mode is Mode.OWN and _is_altered(value, marks, client, server_now),
        marked=told.id,
        known=told.id if _is_certain(told, mode, version, held=_is_held(value, told.id, marks, client)) else "",
        rotation=due(
            seen.now,
            anchor_of(found.history.rotated_at, resource.metadata.creation_timestamp or "", seen.now),
            spec.client_secret_rotation,
            seen.settings.zone,
            spacing_of(
                instance.last_rotated if instance else None, instance.least_spacing if instance else None, seen.now
            ),
        ),
    )
    return seen.after(secrets=secrets, history=found.history)


def _is_pending(seen: Seen, client: Client, *, settled: bool) -> bool:
    """Whether the client was made by us, and its first secret is not stored yet: what stands in the Secret is of a client that is gone, or elsewhere.

    Args:
        settled: the stored value may be one of this client's; on the way to another instance that is all that tells.
    """
    if seen.client.status.initial_secret_pending:
        return True
    new = seen.known_id is None and client.id == own_id(seen) and not (seen.moving and settled)
    newborn = is_newborn(seen, client) and not settled
    return (seen.created or new or newborn) and mode_of(seen.client) in (Mode.KEPT, Mode.OWN)


def _mark(told: ClientSecretMark) -> str:
    return f"{told.id} {told.digest}" if told.digest else ""


def _is_again(seen: Seen, told: ClientSecretMark, value: SecretText | None, client: Client) -> bool:
    """Whether the secret that we pushed last is proven to hold what is declared now, so that a push of it replaces nothing.

    This process pushed it; or its revision was recorded, which is done once the value is stored, and the stored one is the declared one. A crash
    between Secret and status leaves a younger secret, and proves nothing.
    """
    declared = seen.declared.value if seen.declared is not None else None
    if declared is None or told.source is None:
        return False
    if seen.last_pushed == mark_of(told.id, declared):
        return True
    recorded = told.source == seen.client.status.client_secret_source_version
    last = newest(client.secrets, told.id)
    return recorded and value == declared and last is not None and last.prefix in ("", prefix(declared))


def _is_altered(value: SecretText | None, marks: Iterable[str], client: Client, server_now: datetime) -> bool:
    """Whether it takes the place of a living secret that we marked, and is another text.

    What begins like another secret is a person's own choice, unless it begins like the marked one, too, and that took the place of the other.
    The Secret and the status have a mark: who edits the one has no hand in the other.
    """
    if value is None:
        return False
    living = {row.id: row for row in client.secrets if alive(row, server_now)}
    same = [row for row in living.values() if row.prefix == prefix(value) != ""]

    def is_in_place_of(id: str) -> bool:
        others = [row for row in same if row.id != id]
        return not others or (living[id] in same and all(row.created_at < living[id].created_at for row in others))

    return any(
        text.startswith(DIGEST) and id in living and f"{id} {text}" != mark_of(id, value) and is_in_place_of(id)
        for id, _, text in (mark.partition(" ") for mark in marks)
    )


def _is_certain(told: ClientSecretMark, mode: Mode, version: str, *, held: bool) -> bool:
    """Whether the secret that the status tells of holds the valid value.

    A declared value of this very revision was pushed under it; one whose declaration was taken away stays in the Secret until it is replaced.
    """
    if mode is Mode.DECLARED:
        return told.source == version
    return mode in (Mode.OWN, Mode.KEPT) and told.source is not None and held


def _is_held(value: SecretText | None, id: str, marks: Iterable[str], client: Client) -> bool:
    """Whether the stored value is that of a secret: by its digest, or by its first characters where none was taken, as of a declared one."""
    if value is None:
        return False
    proofs = {mark for mark in marks if mark.startswith(f"{id} {DIGEST}")}
    if proofs:
        return proofs == {mark_of(id, value)}
    return any(row.id == id and row.prefix == prefix(value) != "" for row in client.secrets)


# --- what the status is to remember


def remembered(seen: Seen) -> ClientSecretMark | None:
    """`status.clientSecret` after this pass; None when there is nothing to remember.

    A declared secret counts as soon as it was pushed, one that we made once it is stored: what is not stored is taken back.
    """
    secrets, before = seen.secrets, seen.client.status.client_secret
    if secrets is None:
        return before
    match secrets:
        case Secrets(mode=Mode.NONE):
            return None
        case Secrets(mode=Mode.DECLARED, fresh=Made() as made):
            first, version = secrets.beginning, seen.declared.version if seen.declared else None
            return ClientSecretMark(id=made.id, source=version, first=first.id if first is not None else None)
        case Secrets(mode=Mode.OWN, stored=SecretText() as value, current=ClientSecret() as current) if (
            value == secrets.valid
        ):
            source = before.source if before is not None and before.id == current.id else None
            return ClientSecretMark(id=current.id, source=source, digest=_digest(current.id, value))
        case Secrets(mode=Mode.KEPT, overwritten=True, fresh=Made()):
            return None  # what is older here may be a person's, and ends with none of ours
        case Secrets(mode=Mode.KEPT, stored=SecretText() as value, fresh=Made() as made) if made.value == value:
            return ClientSecretMark(id=made.id, digest=_digest(made.id, value))
    return before


def _digest(id: str, value: SecretText) -> str | None:
    """A digest of what the server draws, or is as long, can be guessed by nobody; a shorter value may be a person's."""
    return mark_of(id, value).partition(" ")[2] if len(value.reveal()) >= DRAWN_LENGTH else None
