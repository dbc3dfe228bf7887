"""A server of client secrets and a credentials Secret, small enough to crash anywhere. Its rules are those of spec/pocketid.md 4.3.

Enters: what the server holds, what is declared. Leaves: the world after one pass, whole or ended by a crash after its n-th write. It knows every
value, so that a test can ask whether the stored one authenticates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from moorage.core.secret import SecretText
from moorage.pocketid.oidcclient.secret_snapshot import Mode, Secrets
from moorage.pocketid.oidcclient.secret_steps import step
from moorage.pocketid.oidcclient.secrets import Delete, Discard, Impossible, Made, Mint, Push, Store, Trigger, newest
from moorage.pocketid.rest_types import ClientSecret, MadeSecret

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CAP = 20


class Crashed(Exception):
    """The operator died."""


def row(id_: str, prefix: str, age: float = 60, *, expired: bool = False) -> ClientSecret:
    """A secret as the server lists it, made `age` minutes ago."""
    expires = NOW - timedelta(minutes=1) if expired else None
    return ClientSecret(id_, prefix, NOW - timedelta(minutes=age), expires, not expired)


@dataclass
class World:
    """`values`: what each row of `rows` truly is. `mark`: what the status tells of the last push, "" before there was any, and `first` beside it.

    `pushed`: the mark as long as the process lives that pushed it.
    """

    rows: list[ClientSecret] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    stored: str | None = None
    pending: bool = False
    asked: bool = False
    recorded: bool = True
    mark: str = ""
    first: str = ""
    pushed: str = ""
    next_values: Iterator[str] = field(default_factory=lambda: (f"{n:04d}-generated-value" for n in range(5000, 9999)))
    now: datetime = NOW
    writes: int = 0
    last_write: int | None = None
    deleted: list[list[str]] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    def put(self, value: str, *, prefixless: bool = False, age: float = 60, expired: bool = False) -> str:
        """A row that was there before."""
        id_ = f"s{len(self.values)}"
        self.rows.append(row(id_, "" if prefixless else value[:4], age, expired=expired))
        self.values[id_] = value
        return id_

    def authenticates(self, value: str | None) -> bool:
        return any(self.values[item.id] == value and item.is_active for item in self.rows)

    def make(self, value: str) -> MadeSecret:
        """The server makes a secret."""
        assert len(self.rows) < CAP, "the server refuses the 21st secret"
        id_ = f"s{len(self.values)}"
        made = ClientSecret(id_, value[:4], self.now, None, True)
        self.rows.append(made)
        self.values[id_] = value
        return MadeSecret(made, SecretText(value))

    def delete(self, id_: str) -> None:
        self.rows = [item for item in self.rows if item.id != id_]

    def wrote(self, what: str) -> None:
        """A write was committed; the operator may die before it hears of it."""
        self.trace.append(what)
        self.writes += 1
        if self.last_write is not None and self.writes >= self.last_write:
            raise Crashed


def run(world: World, base: Secrets, crash_after: int | None = None) -> Impossible | None:
    """One pass as the room walks it; Crashed when it died."""
    world.writes, world.last_write = 0, crash_after
    secrets = replace(
        base,
        held=tuple(world.rows),
        server_now=world.now,
        stored=SecretText(world.stored) if world.stored else None,
        asked=world.asked,
        pending=world.pending,
        changed=base.mode is Mode.DECLARED and not world.recorded,
        marked=world.mark,
        again=base.declared is not None and _is_again(world, base, base.declared.reveal()),
        first=world.first,
        known=world.mark if base.declared is not None and world.recorded else "",
    )
    for _ in range(60):
        plan = step(secrets)
        if plan is None or isinstance(plan, Impossible):
            break
        secrets = _apply(world, secrets, plan)
    else:
        raise AssertionError("the steps do not end")
    if world.pending and world.stored:
        world.pending = False
        world.wrote("status: nothing pending")
    if world.asked:
        world.asked = False
        world.wrote("annotation removed")
    if plan is None:
        _record(world, secrets)
    return plan


def _is_again(world: World, base: Secrets, declared: str) -> bool:
    """The evidence of `secret_facts`: this process pushed it, or what was recorded once it was stored is the newest, and the stored one is declared."""
    if world.pushed and world.pushed == world.mark:
        return world.values[world.mark] == declared
    last = newest(world.rows, world.mark)
    return base.stores and world.stored == declared and last is not None and last.prefix in ("", declared[:4])


def _record(world: World, secrets: Secrets) -> None:
    """One status: the revision, and the id under which it was pushed."""
    if secrets.fresh is not None and secrets.mode is Mode.DECLARED:
        world.first = secrets.beginning.id if secrets.beginning is not None else ""
    pushed = secrets.made.id if secrets.made is not None and secrets.made.trigger is Trigger.DECLARED else world.mark
    if not world.recorded or pushed != world.mark:
        world.recorded, world.mark = True, pushed
        world.wrote("status: version")


def _apply(world: World, secrets: Secrets, plan: object) -> Secrets:
    match plan:
        case Mint(why):
            made = world.make(next(world.next_values))
            world.wrote(f"mint {why}")
            return secrets.minted(Made(made, why))
        case Push(value):
            made = world.make(value.reveal())
            world.pushed = made.secret.id
            world.wrote("push")
            return secrets.minted(Made(made, Trigger.DECLARED))
        case Discard(id_):
            world.delete(id_)
            world.wrote("discard")
            return secrets.without([id_])
        case Delete(ids, reason):
            world.deleted.append(list(ids))
            for id_ in ids:
                _harmless(world, id_)
                world.delete(id_)
                world.wrote(f"delete {reason}")
            return secrets.without(ids)
        case Store(value):
            world.stored = value.reveal()
            world.wrote("store")
            return secrets.written()
    raise AssertionError(plan)


def _harmless(world: World, id_: str) -> None:
    """The only secret that holds the stored value is never deleted."""
    holders = [item.id for item in world.rows if item.is_active and world.values[item.id] == world.stored]
    assert holders != [id_], "the only secret that holds the stored value is deleted"
