"""Events end an hour after their last write."""

from __future__ import annotations

import asyncio

import structlog

from moorage.apiserver.api import Api
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Stale

_EVENT_SECONDS, _EVERY = 3600.0, 60.0
log = structlog.get_logger(__name__)


class Expiry:
    """Takes old Events away."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def run(self) -> None:
        """Look once a minute."""
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.sweep()
            except StatusError as error:
                log.warning("events_not_expired", why=error.message)

    async def sweep(self) -> int:
        """Take away the Events that are due; their number.

        Raises:
            StatusError: the disk refused.
        """
        limit = self._api.clock().timestamp() - _EVENT_SECONDS
        served = self._api.registry.builtin("events")
        taken = 0
        for key in await self._api.hub.store.older("events", limit):
            entry = await self._api.hub.settled("events", key)
            if entry is None:
                continue
            try:
                await self._api.commit(served, key, entry.parse(), entry.rev, delete=True)
                taken += 1
            except Stale:
                continue
        return taken
