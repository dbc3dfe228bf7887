"""Many watches at once, each counting. A program.

Enters: {target, path, watchers, count}. Prints `watching` when all are open. Leaves: JSON {events, wrong}: `wrong` counts objects
seen twice and resourceVersions that do not rise. It ends when every watcher has seen `count` objects, or 60 s after the last event.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

import uvloop

from bench.target import Target

_NAME = re.compile(rb'"name":"(w-\d+)"')
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Watcher:
    """One watch."""

    def __init__(self) -> None:
        self.names: set[bytes] = set()
        self.wrong = 0
        self._last = 0
        self._line = b""

    def take(self, piece: bytes) -> None:
        """Bytes of the body; events are lines."""
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            name = _NAME.search(line)
            if name is None:
                continue
            version = int(_VERSION.findall(line)[-1])
            self.wrong += version <= self._last or name[1] in self.names
            self._last = version
            self.names.add(name[1])

    async def follow(self, target: Target, path: str, opened: asyncio.Event, count: int) -> None:
        reader, writer = await asyncio.open_connection(
            target.host, target.port, ssl=target.context, server_hostname=target.host, limit=1 << 22
        )
        writer.write(f"GET {path} HTTP/1.1\r\n{target.head}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise RuntimeError(head.decode("latin-1"))
        opened.set()
        try:
            while len(self.names) < count:
                size = int(await asyncio.wait_for(reader.readline(), 60), 16)
                if not size:
                    break
                self.take(await reader.readexactly(size))
                await reader.readexactly(2)
        except TimeoutError:
            pass
        finally:
            writer.close()


async def _run(spec: dict[str, Any]) -> dict[str, int]:
    target = Target(**spec["target"])
    made = [(Watcher(), asyncio.Event()) for _ in range(spec["watchers"])]
    tasks = [asyncio.create_task(one.follow(target, spec["path"], opened, spec["count"])) for one, opened in made]
    for _, opened in made:
        await opened.wait()
    print("watching", flush=True)
    await asyncio.gather(*tasks)
    return {"events": sum(len(one.names) for one, _ in made), "wrong": sum(one.wrong for one, _ in made)}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.loads(sys.argv[1])))))
