"""Ways of a client among three instances at random: selectors, kills between any two writes, answers that are lost, groups that hold it up, time.

In the end there is one client, where the resource is at home, and its stored secret alone works; or none, where it was deleted. A few ways are walked in
the suite, always the same. By hand, for as long as there is time:

    MOORAGE_MOVES=300 MOORAGE_MOVES_OF=today .venv/bin/python -m pytest tests/pocketid/oidcclient/test_random_moves.py -n 2
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.crashpoints import Fence
from tests.fakes.pocketid import Fake, serving

from moorage.core.meta import JsonObject, Key
from moorage.core.outcome import Waiting
from moorage.kube.errors import NotFound
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.types import KIND

from .scene import CALLBACK, INSTANCE_KEY, NAMESPACE, SECRET, Scene, scene
from .test_other_instances import namespace, place

NAMES = (INSTANCE_KEY.name, "second", "third")
SPACES = (NAMESPACE, "team")
SOURCE, VALUE = {"name": "source", "key": "value"}, "prod-value-long-enough-1"
STEPS = (
    *("selects",) * 3, *("settles", "time_passes", "selects_nothing"), *("answer_is_lost",) * 2, "group_is_missing", "group_is_forgotten",
)  # fmt: skip
MORE = ("key_is_a_plain_users", "key_is_right", "server_is_upgraded")
"""Beside those on ways that did not end wrong before these were there: a way is drawn from all steps that it may take."""
MOVES = int(os.environ.get("MOORAGE_MOVES", "0"))
BEGIN = os.environ.get("MOORAGE_MOVES_OF", "")
FOUND = ("seed 13", "seed 22", "seed 67", "dec1a74")
"""Ways that ended wrong once."""


@dataclass
class Way:
    """One client, three servers, and what happened so far."""

    here: Scene
    fakes: dict[str, Fake]
    urls: dict[str, str]
    chance: random.Random
    key: Key
    kept: bool = False
    declared: bool = False
    steps: tuple[str, ...] = STEPS
    story: list[str] = field(default_factory=list)

    async def edit(self, spec: JsonObject) -> None:
        """A person edits the client."""
        await self.here.client.patch(KIND.resource, self.key, {"spec": spec})

    async def settle(self) -> None:
        """Passes of a process that just started; none may ask for the next at once, for ever."""
        outcome = await self.here.settle(self.key)
        assert not (isinstance(outcome, Waiting) and outcome.after == 0.0), "it spins"

    async def goes_on(self) -> None:
        """One step, and then a process that dies, one that works, or none."""
        step = self.chance.choice(self.steps)
        self.story.append(step)
        await getattr(self, step)()
        if self.chance.random() < 0.35:
            allowed = self.chance.randint(0, 7)
            self.story.append(f"dies after {allowed} writes")
            await self.here.dies(Fence(allowed), self.key)
        elif self.chance.random() < 0.8:
            self.story.append("settles")
            await self.settle()

    async def selects(self, to: str = "") -> None:
        to = to or self.chance.choice(NAMES)
        self.story.append(to)
        await self.edit({"instanceSelector": {"matchLabels": {"at": to}}})

    async def selects_nothing(self) -> None:
        await self.edit({"instanceSelector": {"matchLabels": {"at": "nowhere"}}})

    async def settles(self) -> None:
        await self.settle()

    async def time_passes(self, minutes: int = 40) -> None:
        self.here.later(minutes=minutes)
        for fake in self.fakes.values():
            fake.clock.offset = self.here.fake.clock.offset

    async def answer_is_lost(self) -> None:
        how, method = self.chance.choice(("drop_after", "drop_before")), self.chance.choice(("POST", "DELETE", "PUT"))
        self.fakes[self.chance.choice(NAMES)].faults.add(how, method=method, times=1)

    async def group_is_missing(self) -> None:
        await self.edit({"allowedUserGroups": [{"name": "absent"}]})

    async def group_is_forgotten(self) -> None:
        await self.edit({"allowedUserGroups": None})

    async def key_is_a_plain_users(self) -> None:
        """The Secret that all three instances name gets a key that none of their servers takes for an administrator's."""
        await self._key(self.fakes[self.chance.choice(NAMES)].plain_key())

    async def key_is_right(self) -> None:
        await self._key(self.here.fake.api_key)

    async def _key(self, token: str) -> None:
        await self.here.secret("pocketid-key", token=token)
        await self.attached()

    async def server_is_upgraded(self) -> None:
        self.fakes[self.chance.choice(NAMES)].upgrade("2.17.0")
        await self.attached()

    async def attached(self) -> None:
        """All instances are looked at."""
        for name in NAMES:
            await self.here.attach(Key(NAMESPACE, name))

    # --- the end

    async def ends(self) -> None:
        """All is well by now, and hours pass."""
        for fake in self.fakes.values():
            fake.faults.clear()
        end, deleted = self.chance.choice(NAMES), self.chance.random() < 0.3
        self.story.append("deleted" if deleted else "stays")
        await self.group_is_forgotten()
        await self.key_is_right()
        await self.selects(end)
        if deleted:
            await self.here.client.delete(KIND.resource, self.key)
        for _ in range(3):
            if await self.here.is_there(self.key):
                await self.settle()
            await self.time_passes(120)
        clients = {name: len(fake.store.clients) for name, fake in self.fakes.items()}
        for name in self.orphaned():
            clients[name] -= 1
        if deleted:
            assert not await self.here.is_there(self.key), "it does not go"
            assert sum(clients.values()) == 0, f"clients are left: {clients}"
            return
        (ready,) = (await self.here.client.get(KIND.resource, self.key))["status"]["conditions"]
        assert ready["reason"] == "Reconciled", ready["message"]
        assert clients == {name: int(name == end) for name in NAMES}
        await self.works(end)

    def orphaned(self) -> set[str]:
        """Where one stays that nobody can prove to be ours, as a person was told: made on a way that was cut short and looked away from, under an id that a person chose (ADR 0020)."""
        if self.key.namespace == NAMESPACE or not self.declared:
            return set()
        told = [event.message for event in self.here.told if event.reason == "ClientOrphaned"]
        return {name for name, url in self.urls.items() if any(f" at {url} " in message for message in told)}

    async def works(self, at: str) -> None:
        """The stored secret, and no other; beside one that is managed elsewhere what a way that led back found there."""
        found = await self.credentials()
        fake, id = self.fakes[at], found["client_id"]
        assert found["issuer_url"].startswith(self.urls[at])
        working = {value for value in (*fake.told.get(id, ()), VALUE) if fake.authenticates(id, value)}
        assert found.get("client_secret") in working
        assert self.kept or len(working) == 1

    async def credentials(self) -> dict[str, str]:
        """The data of its Secret."""
        with contextlib.suppress(NotFound):
            secret = await self.here.client.get(SECRETS, Key(self.key.namespace, SECRET))
            return {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
        return {}


@contextlib.asynccontextmanager
async def way(folder: Path, chance: random.Random) -> AsyncIterator[Way]:
    """A client that was made at the first instance, in a namespace that it trusts or in another."""
    async with contextlib.AsyncExitStack() as stack:
        here = await stack.enter_async_context(scene(folder))
        fakes, urls = {NAMES[0]: here.fake}, {NAMES[0]: here.url}
        for name in NAMES[1:]:
            fakes[name] = Fake(api_key=here.fake.api_key)
            urls[name] = await stack.enter_async_context(serving(fakes[name]))
            await here.instance(name, urls[name])
        for name in NAMES:
            await here.client.patch(INSTANCE.resource, Key(NAMESPACE, name), {"metadata": {"labels": {"at": name}}})
            await here.attach(Key(NAMESPACE, name))
        await namespace(here, SPACES[1])
        made = Way(here, fakes, urls, chance, Key(chance.choice(SPACES), "wiki"))
        spec: JsonObject = {"clientID": "wiki-app"} if chance.random() < 0.6 else {}
        spec |= chance.choice(({}, {"secret": {"storeClientSecret": False}}, {"clientSecretRef": SOURCE}))
        made.kept, made.declared = "secret" in spec, "clientID" in spec
        spec |= {"clientSecretOverlap": "1h"} if chance.random() < 0.3 else {}
        made.story.append(f"{made.key.namespace} {spec}")
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "source", "namespace": made.key.namespace}}
        await here.client.create(SECRETS, {**secret, "stringData": {"value": VALUE}})
        at = {"instanceSelector": {"matchLabels": {"at": NAMES[0]}}}
        await place(here, made.key.namespace, KIND, made.key.name, {"callbackUrls": [CALLBACK], **at, **spec})
        await made.settle()
        yield made


@pytest.mark.case("PIDX2", "PIDX3", "PIDX14")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [f"{BEGIN}{number}" for number in range(MOVES)] or FOUND)
async def test_a_way_at_random_ends_with_one_client_and_one_secret_that_works(tmp_path: Path, seed: str) -> None:
    """A failure shows the steps that led to it."""
    chance = random.Random(seed)
    async with way(tmp_path, chance) as made:
        made.steps = STEPS if seed in FOUND else (*STEPS, *MORE)
        try:
            for _ in range(chance.randint(3, 8)):
                await made.goes_on()
            await made.ends()
        except (AssertionError, LookupError) as error:
            raise AssertionError("\n".join([*made.story, str(error)])) from error
