"""Leader election by a coordination.k8s.io Lease.

Enters: a client and our identity. Leaves: `Leadership`, whose `check` refuses when our claim may have run out. Two leaders
never write: a claim counts from the moment before the renewing request was sent, and ends `lease - deadline` seconds before
others may take over. Other clocks are not trusted: a foreign claim is old when we have seen it unchanged for its duration.
Source: client-go leaderelection; KEP-589.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from moorage.core.errors import EnvironmentError_, MoorageError
from moorage.core.meta import JsonObject, Key
from moorage.kube.client import Client
from moorage.kube.errors import Conflict, NotFound
from moorage.kube.resources import LEASES

_log = structlog.get_logger("moorage.lease")


class NotLeading(EnvironmentError_):
    """This process does not lead, or its claim ran out: the write was not sent."""

    code = "not_leading"


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds. `deadline` must be shorter than `duration`, `retry` shorter than `deadline`."""

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0


_TERMS = Terms()


def awake_or_not() -> float:
    """Seconds that also count while the machine is suspended: a leader that wakes up knows that its claim ran out."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass
class Election:
    """One candidate.

    Args:
        identity: unique to this process, such as `pod_uuid`.
    """

    client: Client
    key: Key
    identity: str
    terms: Terms = _TERMS
    clock: Callable[[], float] = awake_or_not
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _until: float = field(default=float("-inf"), init=False)
    _seen: tuple[Any, float] = field(default=(None, 0.0), init=False)

    @property
    def leading(self) -> bool:
        """Whether our claim holds at this moment."""
        return self.clock() < self._until

    def check(self) -> None:
        """Refuse unless our claim holds.

        Raises:
            NotLeading: it does not.
        """
        if not self.leading:
            raise NotLeading(f"Lease {self.key}", "this process does not lead", "Another replica goes on")

    def left(self) -> float:
        """Seconds until another candidate may lead; a write that hangs must be given up before."""
        return self._until + self.terms.duration - self.terms.deadline - self.clock()

    async def acquire(self) -> None:
        """Wait until we lead."""
        while not await self.attempt():
            await self.sleep(self.terms.retry * (1.0 + random.random() * 0.2))  # noqa: S311
        _log.info("leading", lease=str(self.key), identity=self.identity)

    async def hold(self) -> None:
        """Renew until the claim is lost. Returns when it is; the caller stops writing and may `acquire` again."""
        while True:
            await self.sleep(self.terms.retry)
            left = self._until - self.clock()
            if left <= 0:
                break
            try:
                await asyncio.wait_for(self.attempt(), left)
            except TimeoutError:
                break
        self._until = float("-inf")
        _log.warning("no longer leading", lease=str(self.key), identity=self.identity)

    async def release(self) -> None:
        """Give the claim back, so that another candidate need not wait."""
        if not self.leading:
            return
        self._until = float("-inf")
        try:
            lease = await self.client.get(LEASES, self.key)
            if lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {
                    "holderIdentity": "",
                    "leaseDurationSeconds": 1,
                    "renewTime": _micro(datetime.now(UTC)),
                }
                await self.client.replace(LEASES, lease)
        except MoorageError as error:
            _log.warning("the lease was not released", lease=str(self.key), error=str(error))

    async def attempt(self) -> bool:
        """Try once to take or renew the claim; whether we lead now. Failures of the server are logged."""
        asked = self.clock()
        try:
            won = await self._claim()
        except Conflict:
            won = False
        except MoorageError as error:
            _log.warning("cannot reach the lease", lease=str(self.key), error=str(error))
            return self.leading
        self._until = asked + self.terms.deadline if won else float("-inf")
        return won and self.leading

    async def _claim(self) -> bool:
        try:
            lease = await self.client.get(LEASES, self.key)
        except NotFound:
            await self.client.create(LEASES, self._fresh())
            return True
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder and holder != self.identity and not self._is_old(spec):
            return False
        await self.client.replace(LEASES, {**lease, "spec": self._spec(spec, taken=holder != self.identity)})
        return True

    def _is_old(self, spec: JsonObject) -> bool:
        """Whether a foreign claim stood unchanged, before our own eyes, for as long as it said it would hold."""
        claim = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if claim != self._seen[0]:
            self._seen = (claim, self.clock())
        return self.clock() - self._seen[1] >= float(spec.get("leaseDurationSeconds") or self.terms.duration)

    def _spec(self, before: JsonObject, *, taken: bool) -> JsonObject:
        now = _micro(datetime.now(UTC))
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self.terms.duration)),
            "acquireTime": now if taken else before.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": transitions + 1 if taken else transitions,
        }

    def _fresh(self) -> JsonObject:
        spec = {**self._spec({}, taken=True), "leaseTransitions": 0}
        return {"metadata": {"name": self.key.name, "namespace": self.key.namespace}, "spec": spec}


def _micro(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
