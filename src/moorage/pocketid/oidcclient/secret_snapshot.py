"""What is known of a client's secrets in one pass: who owns the secret, what the server lists, what is stored, what must authenticate.

Enters: parts of the client's snapshot (`secret_facts`). Leaves: a frozen value that `secret_steps` decides about; the caller puts the answer to a step into it
(`minted`, `without`, `written`). Pure. Source: seed 004, Client Secret; spec/pocketid.md 1.6.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property

from moorage.core.secret import SecretText
from moorage.core.snapshot import Snapshot
from moorage.pocketid.rest_types import ClientSecret

from .rotation import NEVER, NotDue, Verdict
from .secrets import Made, Trigger, alive, resolve
from .types import PocketIDOIDCClient


class Mode(Enum):
    """Who owns the secret. The value says why a request to regenerate is ignored; "" when it is not."""

    OWN = ""
    DECLARED = "clientSecretRef declares the client secret"
    KEPT = "secret.storeClientSecret is false; set it to true first"
    OFF = "secret.enabled is false"
    NONE = "a public client has no client secret"


def mode_of(client: PocketIDOIDCClient) -> Mode:
    """Who owns the secret of a client."""
    spec = client.spec
    if not spec.is_confidential:
        return Mode.NONE
    if spec.client_secret_ref is not None:
        return Mode.DECLARED
    if not spec.credentials.enabled:
        return Mode.OFF
    return Mode.OWN if spec.credentials.store_client_secret else Mode.KEPT


def stores(client: PocketIDOIDCClient) -> bool:
    """Whether the credentials Secret is to hold the client secret."""
    wanted = client.spec.credentials
    return client.spec.is_confidential and wanted.enabled and wanted.store_client_secret


@dataclass(frozen=True)
class Secrets(Snapshot):
    """The snapshot.

    `held`: what the server lists. `server_now`: the Date of the server's answer, so that its own times are compared with its own clock.
    `stored`: the value in the credentials Secret, wherever a rename left it. `made`: a secret made in this pass, with the client, or carried over
    from a pass that could not store it; it must be dropped at the end of a pass that stored it. `declared`: the value behind clientSecretRef,
    None when it has a fault. `changed`: its revision is not the recorded one. `asked`: the annotation. `pending`: the client was created by us
    and its first secret is not stored yet: nobody was given any other, so those have no overlap. `discarded`: mints of this pass that collided.
    `altered`: the stored value begins like the one that we stored, and is another. `marked`: the id of the secret that we made or pushed last, as
    the status has it. `known`: the same, where it is certain to hold the valid value. `again`: it is proven to hold what is declared now.
    `first`: the id of the first one with that value, as the status has it. `overwritten`: the Secret had a value of this client until one that we made
    on the way to another instance took its place, and the way led back.
    """

    derived = ("fresh", "valid", "presented", "current", "beginning")

    mode: Mode
    held: tuple[ClientSecret, ...]
    server_now: datetime
    stored: SecretText | None = None
    stores: bool = True
    overlap: timedelta = NEVER
    made: Made | None = None
    declared: SecretText | None = None
    changed: bool = False
    asked: bool = False
    pending: bool = False
    rotation: Verdict = field(default_factory=lambda: NotDue(None))
    discarded: int = 0
    altered: bool = False
    marked: str = ""
    again: bool = False
    first: str = ""
    known: str = ""
    overwritten: bool = False

    @cached_property
    def fresh(self) -> Made | None:
        """What was made, if the server still holds it and it is of the kind that this mode makes."""
        made = self.made
        if made is None or (made.trigger is Trigger.DECLARED) != (self.mode is Mode.DECLARED):
            return None
        return made if any(item.id == made.id and alive(item, self.server_now) for item in self.held) else None

    @cached_property
    def valid(self) -> SecretText | None:
        """The value that must authenticate: the declared one, the fresh one, the stored one."""
        if self.mode is Mode.DECLARED and self.declared is not None:
            return self.declared
        return self.fresh.value if self.fresh else self.stored

    @cached_property
    def presented(self) -> SecretText | None:
        """What the credentials Secret is to hold under its key; None leaves the key out (spec 1.6.1)."""
        if self.mode in (Mode.NONE, Mode.OFF) or (self.mode is Mode.DECLARED and not self.stores):
            return None
        return self.valid or None

    @cached_property
    def current(self) -> ClientSecret | None:
        """The secret on the server that holds the valid value; None when that cannot be told."""
        if self.fresh is not None and self.fresh.value == self.valid:
            return next(item for item in self.held if item.id == self.fresh.id)
        if self.known:
            return self.living(self.known)
        return resolve(self.valid, self.held, self.server_now) if self.valid and not self.altered else None

    @cached_property
    def beginning(self) -> ClientSecret | None:
        """The first secret with the value that is pushed again; None for a value that is not."""
        return (self.living(self.first) or self.living(self.marked)) if self.again else None

    def living(self, id: str) -> ClientSecret | None:
        """The secret of that id, if it authenticates."""
        return next((item for item in self.held if item.id == id and alive(item, self.server_now)), None)

    def minted(self, made: Made) -> Secrets:
        """After a mint or a push."""
        others = tuple(item for item in self.held if item.id != made.id)
        return self.after(held=(*others, made.made.secret), made=made, known="")

    def without(self, ids: Iterable[str]) -> Secrets:
        """After a delete; a discarded mint is counted."""
        gone = set(ids)
        dropped = self.made is not None and self.made.id in gone
        return self.after(
            held=tuple(item for item in self.held if item.id not in gone),
            made=None if dropped else self.made,
            discarded=self.discarded + dropped,
        )

    def written(self) -> Secrets:
        """After the credentials Secret was written with what is presented."""
        return self.after(stored=self.presented, altered=False)
