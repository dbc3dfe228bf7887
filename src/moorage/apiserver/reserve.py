"""Room that is kept for the day on which the disk is full: a file that is given up, so that deleting and compacting still work.

Enters: a path. Leaves: nothing but that file. It must not know the store.
"""

from __future__ import annotations

import os
from pathlib import Path

SIZE = 4 * 1024 * 1024
"""Bytes that are kept."""


class Reserve:
    """The file at `path`."""

    def __init__(self, path: Path, size: int = SIZE) -> None:
        self._path, self._size = path, size

    @property
    def kept(self) -> bool:
        """Whether the room is there."""
        return self._path.exists()

    def keep(self) -> bool:
        """Take the room, unless there is none; whether it is there now."""
        if self.kept:
            return True
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, self._size)
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        finally:
            os.close(handle)
        return True

    def give(self) -> None:
        """Give the room up."""
        self._path.unlink(missing_ok=True)
