"""Election: no two leaders, though one sleeps through its claim."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from moorage.core.meta import Key
from moorage.kube.client import Client
from moorage.kube.errors import ConnectionFailed
from moorage.kube.resources import CONFIG_MAPS, LEASES
from moorage.runtime.lease import Election, NotLeading, Terms

LEASE = Key("default", "moorage")
TERMS = Terms(duration=15, deadline=10, retry=2)


@dataclass
class Clock:
    """Monotonic seconds of one candidate; a paused process does not see it move."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def candidate(client: Client, name: str, clock: Clock) -> Election:
    return Election(client, LEASE, name, TERMS, clock=clock)


async def test_the_first_candidate_leads_and_the_second_waits(client: Client) -> None:
    """A claim that is renewed is never taken."""
    clock = Clock()
    first, second = candidate(client, "first", clock), candidate(client, "second", clock)
    assert await first.attempt()
    for _ in range(20):
        clock.now += 2
        assert await first.attempt()
        assert not await second.attempt()
    lease = await client.get(LEASES, LEASE)
    assert lease["spec"]["holderIdentity"] == "first"
    assert lease["spec"]["leaseTransitions"] == 0


async def test_a_paused_leader_cannot_write_when_another_leads(client: Client) -> None:
    """At each moment of a pause, at most one of two candidates passes its fence."""
    clock = Clock()
    first, second = candidate(client, "first", clock), candidate(client, "second", clock)
    assert await first.attempt()
    await second.attempt()
    fenced = client.fenced(first.check)
    taken = False
    for _ in range(12):
        clock.now += 2
        taken = await second.attempt() or taken
        assert not (first.leading and second.leading)
    assert taken
    with pytest.raises(NotLeading):
        await fenced.create(CONFIG_MAPS, {"metadata": {"name": "x", "namespace": "default"}})
    assert client.calls["POST", "configmaps"] == 0
    assert not await first.attempt()
    assert (await client.get(LEASES, LEASE))["spec"]["leaseTransitions"] == 1


async def test_the_claim_counts_from_before_the_request(client: Client) -> None:
    """A renewal that was answered late does not lengthen the claim."""
    clock = Clock()
    election = candidate(client, "first", clock)
    claim = election._claim

    async def slow() -> bool:
        won = await claim()
        clock.now += 9
        return won

    election._claim = slow  # type: ignore[method-assign]
    assert await election.attempt()
    clock.now += 1
    assert not election.leading


async def test_a_candidate_that_cannot_reach_the_server_stops_by_itself(client: Client) -> None:
    """Without an answer the claim runs out at its deadline, before others may take it."""
    clock = Clock()
    election = candidate(client, "first", clock)
    assert await election.attempt()

    async def broken() -> bool:
        raise ConnectionFailed("server", "down")

    election._claim = broken  # type: ignore[method-assign]
    clock.now += 9
    assert await election.attempt()
    clock.now += 1
    assert not await election.attempt()
    with pytest.raises(NotLeading):
        election.check()


async def test_released_leadership_is_taken_at_once(client: Client) -> None:
    """Nobody waits for a claim that was given back."""
    clock = Clock()
    first, second = candidate(client, "first", clock), candidate(client, "second", clock)
    assert await first.attempt()
    await first.release()
    assert not first.leading
    assert await second.attempt()


async def test_two_candidates_that_start_together_give_one_leader(client: Client) -> None:
    """The server's resourceVersion decides."""
    clock = Clock()
    candidates = [candidate(client, f"c{number}", clock) for number in range(8)]
    won = await asyncio.gather(*(item.attempt() for item in candidates))
    assert sum(won) == 1


async def test_a_foreign_clock_is_not_trusted(client: Client) -> None:
    """A renewTime of last year is not old: only what we saw unchanged ourselves is."""
    clock = Clock()
    first, second = candidate(client, "first", clock), candidate(client, "second", clock)
    assert await first.attempt()
    lease = await client.get(LEASES, LEASE)
    lease["spec"]["renewTime"] = "2020-01-01T00:00:00.000000Z"
    await client.replace(LEASES, lease)
    assert not await second.attempt()
    clock.now += 14.9
    assert not await second.attempt()
    clock.now += 0.1
    assert await second.attempt()
