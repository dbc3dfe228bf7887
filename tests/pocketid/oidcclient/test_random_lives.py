"""Lives of a client at random: edits of its spec and Secrets, restarts and crashes, answers that are lost, moves, time. Two things hold whenever it is settled.

    nobody is locked out   a Secret of a client that is Ready holds a secret that works, the declared one where one is declared
    nothing lingers        no secret works that was replaced and has no overlap any more, and no client stands where the resource is not at home

A few lives are walked in the suite, always the same. By hand, for as long as there is time:

    MOORAGE_LIVES=500 MOORAGE_LIVES_OF=today .venv/bin/python -m pytest tests/pocketid/oidcclient/test_random_lives.py -n 2
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.crashpoints import Fence
from tests.fakes.pocketid import Fake, serving

from moorage.core.meta import JsonObject, Key
from moorage.kube.errors import NotFound
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.secret_facts import DRAWN_LENGTH

from .scene import INSTANCE_KEY, NAMESPACE, SECRET, Scene, scene

MARK = "pocketid.internal/client-secret-mark"
REF = {"name": "source", "key": "value"}
LONG = "prod-declared-value-that-is-long-enough-for-a-digest"
VALUES = ("prod-declared-value-0001", "prod-declared-value-0002", "test-declared-value-0001", f"{LONG}-1", f"{LONG}-2")
HOW: dict[str, JsonObject] = {
    "own": {"clientSecretRef": None, "secret": None},
    "kept": {"clientSecretRef": None, "secret": {"storeClientSecret": False, "enabled": None}},
    "off": {"clientSecretRef": None, "secret": {"enabled": False, "storeClientSecret": None}},
    "declared": {"clientSecretRef": REF, "secret": None},
    "declared-kept": {"clientSecretRef": REF, "secret": {"storeClientSecret": False, "enabled": None}},
    "declared-off": {"clientSecretRef": REF, "secret": {"enabled": False, "storeClientSecret": None}},
}
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    *(("is_declared_otherwise", (how,)) for how in sorted(HOW)),
    *(("has_an_overlap", (overlap,)) for overlap in (False, True)),
    *(("declares", (value,)) for value in VALUES),
    *(("selects", (name,)) for name in (INSTANCE_KEY.name, "other")),
    *(("edits_the_secret", (edit,)) for edit in ("cut", "junk", "no mark", "cut without mark", "no key", "deleted")),
    *(("deletes_a_secret_at_the_server", (which,)) for which in range(2)),
    *(("time_passes", (minutes,)) for minutes in (20, 50, 70)),
    *(
        ("an_answer_is_lost", (kind, path))
        for kind in ("drop_after", "status")
        for path in ("*/secrets", "*/oidc/clients/*")
    ),
    *(("operator_dies", (writes,)) for writes in range(6)),
    *(
        (name, ())
        for name in (
            "source_is_touched",
            "source_is_touched_for_a_day",
            "asks_for_another",
            "deletes_the_client_at_the_server",
            "is_looked_at",
            "overlaps_end",
        )
    ),
]
LIVES = int(os.environ.get("MOORAGE_LIVES", "0"))
BEGIN = os.environ.get("MOORAGE_LIVES_OF", "")


class Lives(RuleBasedStateMachine):
    """One client, two servers. `current` is the value that worked when it was settled last; `replaced` are those that it took the place of."""

    def __init__(self) -> None:
        super().__init__()
        self.runner, self.stack = asyncio.Runner(), contextlib.AsyncExitStack()
        self.how, self.overlap, self.declared = "own", False, VALUES[0]
        self.current, self.replaced, self.touched = "", set[str](), False

    def run(self, work: Any) -> Any:
        """Do it, in the loop in which the servers are."""
        return self.runner.run(work)

    @initialize(how=st.sampled_from(sorted(HOW)), overlap=st.booleans())
    def is_made(self, how: str, overlap: bool) -> None:
        self.how, self.overlap = how, overlap
        self.run(self._made())
        self.is_settled()

    async def _made(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.here: Scene = await self.stack.enter_async_context(scene(folder))
        self.other = Fake(api_key=self.here.fake.api_key)
        await self.here.instance("other", await self.stack.enter_async_context(serving(self.other)))
        for name in (INSTANCE_KEY.name, "other"):
            key, labels = Key(NAMESPACE, name), {"metadata": {"labels": {"at": name}}}
            await self.here.client.patch(INSTANCE.resource, key, labels)
            await self.here.attach(key)
        await self.here.secret("source", value=self.declared)
        spec = {name: value for name, value in HOW[self.how].items() if value is not None}
        spec |= {"clientSecretOverlap": "1h"} if self.overlap else {}
        await self.here.make(instanceSelector={"matchLabels": {"at": INSTANCE_KEY.name}}, **spec)

    def teardown(self) -> None:
        """Settled once more at the end."""
        try:
            if hasattr(self, "here"):
                self.is_settled()
                self.overlaps_end()
        finally:
            self.close()

    def close(self) -> None:
        """The servers end."""
        self.run(self.stack.aclose())
        self.runner.close()

    @property
    def fakes(self) -> tuple[Fake, Fake]:
        """Both servers."""
        return self.here.fake, self.other

    @rule(step=st.sampled_from(STEPS), settles=st.booleans())
    def goes_on(self, step: tuple[str, Any], settles: bool) -> None:
        """One rule for all, so that in each life everything may happen."""
        name, args = step
        getattr(self, name)(*args)
        if settles:
            self.is_settled()

    # --- what people do

    @rule(how=st.sampled_from(sorted(HOW)))
    def is_declared_otherwise(self, how: str) -> None:
        self.how = how
        self.run(self.here.edit(**HOW[how]))

    def has_an_overlap(self, overlap: bool) -> None:
        self.overlap = overlap
        self.run(self.here.edit(clientSecretOverlap="1h" if overlap else None))

    def declares(self, value: str) -> None:
        self.declared = value
        self.run(self.here.secret("source", value=value))

    def source_is_touched(self) -> None:
        note = {"metadata": {"annotations": {"touched": str(self.here.now())}}}
        self.run(self.here.client.patch(SECRETS, Key(NAMESPACE, "source"), note))

    def source_is_touched_for_a_day(self) -> None:
        """More often than a client has room for secrets, each time by a process that just started."""
        for _ in range(22):
            self.time_passes(2)
            self.source_is_touched()
            self.run(self.here.once())

    def asks_for_another(self) -> None:
        self.run(self.here.annotate(regenerate_client_secret="true"))

    def selects(self, to: str) -> None:
        self.run(self.here.edit(instanceSelector={"matchLabels": {"at": to}}))

    def edits_the_secret(self, edit: str) -> None:
        self.touched = True
        self.run(self._edited(edit))

    async def _edited(self, edit: str) -> None:
        found, key = await self.here.credentials(), Key(NAMESPACE, SECRET)
        value = found.get("client_secret")
        if value is None:
            return
        if edit == "deleted":
            with contextlib.suppress(NotFound):
                await self.here.client.delete(SECRETS, key)
            return
        if edit == "cut without mark" and len(value) < DRAWN_LENGTH:
            return  # the status has no digest of what a person chose (ADR 0020): cut together with its mark it is beyond telling
        if edit == "no key":
            await self.here.client.patch(SECRETS, key, {"data": {"client_secret": None}})
        if edit.startswith(("cut", "junk")):
            await self.here.secret(SECRET, client_secret=value[:18] if edit.startswith("cut") else "junk" + value[4:])
        if edit.endswith("mark"):
            await self.here.client.patch(SECRETS, key, {"metadata": {"annotations": {MARK: None}}})

    def deletes_a_secret_at_the_server(self, which: int) -> None:
        self.touched = True
        for fake in self.fakes:
            for client in fake.store.clients.values():
                del client.secrets[which : which + 1]

    def deletes_the_client_at_the_server(self) -> None:
        self.touched = True
        for fake in self.fakes:
            for id in list(fake.store.clients):
                fake.store.delete_client(id)

    # --- what happens

    def time_passes(self, minutes: int) -> None:
        self.here.later(minutes=minutes)
        self.other.clock.offset = self.here.fake.clock.offset

    def an_answer_is_lost(self, kind: Any, path: str) -> None:
        for fake in self.fakes:
            fake.faults.add(kind, method="POST" if path.endswith("s") else "DELETE", path=path, status=503)

    def is_looked_at(self) -> None:
        self.run(self.here.once())

    def operator_dies(self, writes: int) -> None:
        self.run(self.here.dies(Fence(writes)))

    # --- what holds

    def is_settled(self) -> None:
        self.run(self._settled())

    def overlaps_end(self) -> None:
        self.run(self._settled())
        self.time_passes(70)
        self.run(self._settled(late=True))

    async def _settled(self, *, late: bool = False) -> None:
        for fake in self.fakes:
            fake.faults.clear()
        await self.here.settle()
        ready, message = await self.here.ready()
        assert ready == "True/Reconciled", message
        status, stored = await self.here.status(), (await self.here.credentials()).get("client_secret")
        home = self.fakes[status["instance"]["name"] == "other"]
        away = self.fakes[status["instance"]["name"] != "other"]
        assert (len(home.store.clients), len(away.store.clients)) == (1, 0), "a client stands where it is not to"
        (row,) = home.store.clients.values()
        works = {value for value in home.told.get(row.id, ()) if home.authenticates(row.id, value)}
        self._checked(works, stored, late=late)
        before = len(home.journal.writes())
        await self.here.once()
        assert len(home.journal.writes()) == before, "a second pass writes"

    def _checked(self, works: set[str], stored: str | None, *, late: bool) -> None:
        managed = self.how not in ("kept", "off")
        if self.how.startswith("declared"):
            assert self.declared in works, "the declared secret does not work"
            assert stored in (None, self.declared)
            assert (stored is None) == (self.how != "declared")
        elif self.how == "own" or (stored is not None and not self.touched):
            assert stored in works, "the stored secret does not work"
        current = self.declared if self.how.startswith("declared") else stored or ""
        if managed:
            if self.current not in ("", current):
                self.replaced.add(self.current)
            self.current, self.touched = current, False
            self.replaced.discard(current)
        if late or not self.overlap:
            assert not works & self.replaced, "a replaced secret works"
            assert not managed or works == {current}, "a secret works that nobody knows of"


@pytest.mark.case("PIDX1", "PIDX2", "PIDX14", "P5")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(LIVES or 3))
def test_a_life_at_random_locks_nobody_out_and_leaves_nothing(seed: int) -> None:
    """A failure shows the steps that led to it."""
    chance, story = random.Random(f"{BEGIN}{seed}"), []
    lives = Lives()
    try:
        how, overlap = chance.choice(sorted(HOW)), chance.random() < 0.5
        story.append(f"is_made({how!r}, {overlap})")
        lives.is_made(how=how, overlap=overlap)
        for _ in range(25 if LIVES else 12):
            step, settles = chance.choice(STEPS), chance.random() < 0.5
            story.append(f"{step[0]}{step[1]}{', settled' if settles else ''}")
            lives.goes_on(step=step, settles=settles)
        lives.is_settled()
        lives.overlaps_end()
    except AssertionError as error:
        raise AssertionError("\n".join([*story, str(error)])) from error
    finally:
        lives.close()


if LIVES:  # with steps that are made fewer; it finds less in the same time
    TestLives = Lives.TestCase
    TestLives.settings = settings(
        max_examples=LIVES, stateful_step_count=30, suppress_health_check=list(HealthCheck), database=None
    )
    TestLives.pytestmark = [pytest.mark.timeout(0)]
