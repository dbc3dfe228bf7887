"""Properties of the work queue, with a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moorage.core.backoff import Backoff
from moorage.core.meta import Key
from moorage.runtime.queue import Queue

KEYS = [Key("", name) for name in "abcd"]
keys = st.sampled_from(KEYS)


@dataclass
class Clock:
    """A clock whose timers ring when it is moved."""

    now: float = 0.0
    timers: list[Ring] = field(default_factory=list)

    def later(self, seconds: float, call: Callable[[], None]) -> Ring:
        ring = Ring(self.now + seconds, call)
        self.timers.append(ring)
        return ring

    def move(self, seconds: float) -> None:
        self.now += seconds
        due = sorted((ring for ring in self.timers if ring.due <= self.now), key=lambda ring: ring.due)
        self.timers = [ring for ring in self.timers if ring.due > self.now]
        for ring in due:
            if not ring.cancelled:
                ring.call()


@dataclass(eq=False)
class Ring:
    due: float
    call: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class QueueMachine(RuleBasedStateMachine):
    """Any order of adds, delayed adds, gets and dones: one worker a key, no add is lost, first come first served."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.queue = Queue(clock=lambda: self.clock.now, later=self.clock.later, chance=lambda: 0.5)
        self.loop = asyncio.new_event_loop()
        self.held: list[Key] = []
        self.owed: dict[Key, None] = {}
        self.again: set[Key] = set()
        self.due: dict[Key, float] = {}

    def teardown(self) -> None:
        self.loop.close()

    def _added(self, key: Key) -> None:
        if key in self.held:
            self.again.add(key)
        else:
            self.owed.setdefault(key)

    @rule(key=keys)
    def add(self, key: Key) -> None:
        self.queue.add(key)
        self._added(key)

    @rule(key=keys, seconds=st.sampled_from([0.0, 1.0, 5.0]))
    def add_after(self, key: Key, seconds: float) -> None:
        self.queue.add_after(key, seconds)
        if seconds == 0:
            self._added(key)
        else:
            due = self.clock.now + seconds
            if due < self.due.get(key, float("inf")):
                self.due.pop(key, None)
                self.due[key] = due

    @rule(seconds=st.sampled_from([0.5, 1.0, 10.0]))
    def wait(self, seconds: float) -> None:
        ringing = [key for key, due in self.due.items() if due <= self.clock.now + seconds]
        ringing.sort(key=lambda key: self.due[key])
        self.clock.move(seconds)
        for key in ringing:
            del self.due[key]
            self._added(key)

    @precondition(lambda self: self.owed)
    @rule()
    def get(self) -> None:
        key = self.loop.run_until_complete(self.queue.get())
        assert key not in self.held, "two workers hold one key"
        assert key is not None
        assert key == next(iter(self.owed)), "somebody jumped the queue"
        del self.owed[key]
        self.held.append(key)

    @precondition(lambda self: self.held)
    @rule(position=st.integers(0, 3))
    def done(self, position: int) -> None:
        key = self.held.pop(position % len(self.held))
        self.queue.done(key)
        if key in self.again:
            self.again.discard(key)
            self.owed[key] = None

    @invariant()
    def as_many_wait_as_are_owed(self) -> None:
        assert len(self.queue) == len(self.owed)
        assert set(self.queue.working()) == set(self.held)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_every_added_key_is_worked_on_after_its_last_add(numbers: list[int], workers: int) -> None:
    """With any number of workers, each key is taken after its last add, and never by two at once."""

    async def scenario() -> None:
        queue, busy, seen = Queue(), set[Key](), dict[Key, int]()
        clock = 0

        async def work() -> None:
            nonlocal clock
            while (key := await queue.get()) is not None:
                assert key not in busy
                busy.add(key)
                clock += 1
                seen[key] = clock
                await asyncio.sleep(0)
                busy.discard(key)
                queue.done(key)

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        added = {}
        for number in numbers:
            key = Key("", str(number))
            clock += 1
            added[key] = clock
            queue.add(key)
            if number % 3 == 0:
                await asyncio.sleep(0)
        while len(queue) or queue.working():  # noqa: ASYNC110  the queue is watched from outside
            await asyncio.sleep(0)
        queue.close()
        await asyncio.gather(*tasks)
        assert all(seen[key] > when for key, when in added.items())

    asyncio.run(scenario())


def test_a_failing_key_waits_longer_each_time_and_others_do_not_wait_for_it() -> None:
    """Back-off is per key, capped, and starts anew after success."""
    clock = Clock()
    queue = Queue(backoff=Backoff(1, 8, 0), clock=lambda: clock.now, later=clock.later, chance=lambda: 0.0)
    delays = []
    for _ in range(5):
        delays.append(queue.retry(KEYS[0]))
        clock.move(100)
    assert delays == [1, 2, 4, 8, 8]
    assert queue.retry(KEYS[1]) == 1
    queue.forget(KEYS[0])
    assert queue.retry(KEYS[0]) == 1


def test_jitter_only_shortens_the_delay() -> None:
    """The cap holds whatever chance says."""
    back = Backoff(1, 8, 0.2)
    assert back.delay(2, 0.0) == 4
    assert back.delay(2, 1.0) == pytest.approx(3.2)
    assert back.delay(1000, 0.0) == 8


async def test_a_cancelled_worker_passes_its_key_on() -> None:
    """A key that woke a worker which was cancelled at that moment goes to the next one."""
    queue = Queue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(KEYS[0])
    first.cancel()
    assert await second == KEYS[0]


async def test_closing_wakes_all_workers_and_refuses_adds() -> None:
    """After close, get answers None at once."""
    queue = Queue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add_after(KEYS[0], 0.001)
    queue.close()
    queue.add(KEYS[1])
    assert await asyncio.gather(*waiting) == [None, None, None]
    assert len(queue) == 0
