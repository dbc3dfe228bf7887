"""Whatever is written, deleted, compacted and restarted, in whatever order: the store shows what was acknowledged, now and at every kept revision."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Hub, Stale

STORAGE = "things"
KEYS = st.sampled_from([f"{space}/{name}" for space in ("m", "n") for name in ("a", "b", "c")])


def thing(key: str, text: str) -> dict[str, Any]:
    return {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": key.rpartition("/")[2]}, "text": text}


class Stored(RuleBasedStateMachine):
    """A hub on a real file beside a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-store-"))
        self.model: dict[str, tuple[int, str]] = {}
        self.past: dict[int, dict[str, tuple[int, str]]] = {}
        self.compacted = 0
        self.hub = self._opened()

    def _opened(self) -> Hub:
        hub = Hub(self.folder / "store.db")

        async def begin() -> None:
            hub.open()

        self.loop.run_until_complete(begin())
        return hub

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.hub.close()
        self.loop.close()
        shutil.rmtree(self.folder)

    def _note(self, revision: int) -> None:
        self.past[revision] = dict(self.model)

    @rule(key=KEYS, text=st.text(max_size=6))
    def write(self, key: str, text: str) -> None:
        """A create or an update over what is there."""
        seen = self.model.get(key, (0, ""))[0]
        entry = self.run(self.hub.write(STORAGE, key, thing(key, text), seen))
        self.model[key] = (entry.rev, entry.parse()["text"])
        self._note(entry.rev)

    @rule(keys=st.lists(KEYS, min_size=2, unique=True))
    def write_many(self, keys: list[str]) -> None:
        """Writes that share a commit."""

        async def all_of_them() -> list[Any]:
            seen = [self.model.get(key, (0, ""))[0] for key in keys]
            return await asyncio.gather(
                *(self.hub.write(STORAGE, key, thing(key, "many"), at) for key, at in zip(keys, seen, strict=True))
            )

        for key, entry in zip(keys, self.run(all_of_them()), strict=True):
            self.model[key] = (entry.rev, "many")
            self._note(entry.rev)

    @rule(key=KEYS)
    def write_over_another_revision(self, key: str) -> None:
        """Refused, and nothing changes."""
        seen = self.model.get(key, (0, ""))[0]
        with pytest.raises(Stale):
            self.run(self.hub.write(STORAGE, key, thing(key, "stale"), seen + 1000))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        seen, text = self.model.pop(key)
        entry = self.run(self.hub.write(STORAGE, key, thing(key, text), seen, delete=True))
        self._note(entry.rev)

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        upto = data.draw(st.sampled_from(sorted(self.past)))
        self.run(self.hub.store.compact(upto))
        self.compacted = max(self.compacted, upto)

    @rule()
    def restart(self) -> None:
        self.hub.close()
        self.hub = self._opened()

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """A list of the past is what stood then, or 410."""
        revision = data.draw(st.sampled_from(sorted(self.past)))
        if revision < self.compacted:
            with pytest.raises(StatusError) as refused:
                self.run(self.hub.at(STORAGE, "", revision))
            assert refused.value.code == 410
            return
        entries = self.run(self.hub.at(STORAGE, "", revision))
        found = {entry.key: (entry.rev, entry.parse()["text"]) for entry in entries}
        assert found == self.past[revision]

    @precondition(lambda self: any(revision >= self.compacted for revision in self.past))
    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        """Played over what stood at a revision, the changes since then lead to what stands now."""
        since = data.draw(st.sampled_from([revision for revision in sorted(self.past) if revision >= self.compacted]))
        state = {key: revision for key, (revision, _) in self.past[since].items()}
        last = since
        for change in self.run(self.hub.changes(STORAGE, since, self.hub.revision)):
            assert change.rev > last
            last, key = change.rev, change.entry.key
            assert (change.type == "ADDED") is (key not in state)
            if change.type == "DELETED":
                del state[key]
            else:
                state[key] = change.rev
        assert state == {key: revision for key, (revision, _) in self.model.items()}

    @invariant()
    def shows_what_was_acknowledged(self) -> None:
        entries = self.hub.collections[STORAGE].select("")
        assert {entry.key: (entry.rev, entry.parse()["text"]) for entry in entries} == self.model
        assert self.hub.revision >= max(self.past, default=0)


Stored.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
test_the_store_keeps_its_word = Stored.TestCase
