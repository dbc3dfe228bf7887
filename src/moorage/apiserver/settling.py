"""The loop of a controller inside the server: one key after the other, again when somebody else wrote or the store refused.

Enters: a queue of keys and what to do with one. Leaves: nothing; it runs until it is cancelled. Beside it: many writes at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Stale

log = structlog.get_logger(__name__)


async def settle(
    queue: asyncio.Queue[str], reconcile: Callable[[str], Awaitable[None]], what: str, again: float
) -> None:
    """Work through keys as they come; `again`: seconds until a refused one is tried anew."""
    while True:
        key = await queue.get()
        try:
            await reconcile(key)
        except Stale:
            queue.put_nowait(key)
        except StatusError as error:
            log.warning("not_settled", what=what, key=key, why=error.message)
            asyncio.get_running_loop().call_later(again, queue.put_nowait, key)


async def together(writes: Iterable[Awaitable[object]]) -> None:
    """Writes that do not wait for one another, so that one sync to the disk carries them all; the first failure after all have ended."""
    for ended in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended
