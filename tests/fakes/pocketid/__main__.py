"""`python -m tests.fakes.pocketid`: serve until a signal; the first line on standard output is the URL.

Enters: options, the key in FAKE_POCKETID_API_KEY. Leaves: a served URL.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

from .fake import API_KEY, Fake
from .server import serving


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fakes.pocketid", description="A fake Pocket-ID for tests and the demo."
    )
    parser.add_argument("--port", type=int, default=1411, help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--version", default="2.14.0", help="what it says it is, and can do")
    parser.add_argument("--app-url", default="", help="its public address; the one it listens on unless given")
    parser.add_argument("--rate-limit", action="store_true", help="100 requests a second, 300 at once")
    parser.add_argument("--clock-offset", type=float, default=0.0, help="seconds its clock is ahead")
    return parser.parse_args()


async def _main(options: argparse.Namespace) -> None:
    key = os.environ.get("FAKE_POCKETID_API_KEY", API_KEY)
    fake = Fake(options.version, api_key=key, app_url=options.app_url, limited=options.rate_limit)
    fake.clock.offset = options.clock_offset
    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    async with serving(fake, options.port, options.host) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_main(_options()))
