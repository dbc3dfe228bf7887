"""ClusterRoles that gather the rules of others are kept in step with them."""

from __future__ import annotations

import asyncio

import structlog

from moorage.apiserver.access import Access
from moorage.apiserver.api import Api
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Change, Stale

_STORAGE = "clusterroles.rbac.authorization.k8s.io"
_RETRY = 1.0
log = structlog.get_logger(__name__)


class Aggregation:
    """Gathers again after each change of a ClusterRole."""

    def __init__(self, api: Api, access: Access) -> None:
        self._api, self._access = api, access
        self._changed = asyncio.Event()
        api.hub.listeners.append(self._notice)

    def _notice(self, change: Change) -> None:
        if change.storage == _STORAGE:
            self._changed.set()

    async def run(self) -> None:
        """Wait for changes and gather."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._access.gather(self._api)
            except Stale:
                self._changed.set()
            except StatusError as error:
                log.warning("roles_not_gathered", why=error.message)
                asyncio.get_running_loop().call_later(_RETRY, self._changed.set)
