"""Work on large objects, beside the event loop: what others ask for goes on being answered meanwhile.

Enters: a pure function and how many bytes it works on. Leaves: what it gives or raises. Small work is done at once, on the loop.
Large work shares two threads, whatever the number of clients: the interpreter runs one thread at a time, and each further one would
take its share from the loop. What is handed in must not touch the hub or anything else that belongs to the loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from moorage.apiserver.errors import too_many

LARGE: Final = 32 * 1024
"""Bytes from which on work goes to a thread: below, even an apply of a field in each ten bytes takes the loop for less than 0.1 s."""
_THREADS: Final = 2
_WAITING: Final = 64
_SWITCH: Final = 0.001
"""Seconds after which a thread hands the interpreter to the loop that waits for it. One small request waits for it several times."""
Answer = TypeVar("Answer")


class Aside:
    """The threads of one server."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="large")
        self._running = 0
        self._usual = sys.getswitchinterval()

    async def run(self, size: int, work: Callable[[], Answer]) -> Answer:
        """What `work` gives, done in a thread when `size` (bytes) is large.

        Raises:
            StatusError: 429, too much large work waits already; and what `work` raises.
        """
        if size < LARGE:
            return work()
        if self._running >= _WAITING:
            raise too_many("too many large objects are being worked on, please try again later")
        self._running += 1
        sys.setswitchinterval(_SWITCH)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._running -= 1
            if not self._running:
                sys.setswitchinterval(self._usual)

    def close(self) -> None:
        """Drop what waits; a thread that works ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
