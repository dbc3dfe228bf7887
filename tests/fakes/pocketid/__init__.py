"""A fake Pocket-ID: real HTTP, a real token endpoint, bad days on demand.

with running(Fake(version="2.17.0")) as url: ...          # in the test's process
python -m tests.fakes.pocketid --port 1411                # a program of its own
"""

from __future__ import annotations

from .fake import API_KEY, Fake
from .faults import Entry, Fault
from .server import running, serving

__all__ = ["API_KEY", "Entry", "Fake", "Fault", "running", "serving"]
