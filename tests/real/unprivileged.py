"""Servers that refuse to run as root, run as the user that Debian made for them.

Enters: an argument vector and a user's name. Leaves: the vector to start instead. As root a user namespace maps us to that user: the files stay ours, so
the test's own folder (0700) serves, and the process that is started is the server itself. Anybody else runs it as themselves.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Sequence
from pathlib import Path


class ServerMissing(Exception):
    """A program is not installed; says which Debian package has it."""


def program(path: Path, package: str) -> str:
    """The path as text; raises ServerMissing when nothing is there."""
    if not path.exists():
        raise ServerMissing(f"{path} is not installed; Debian package {package}")
    return str(path)


def as_user(name: str, argv: Sequence[str]) -> list[str]:
    """The vector under which `argv` sees itself as the user `name` of this machine; unchanged for those who are not root."""
    if os.geteuid() != 0:
        return list(argv)
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise ServerMissing(f"this machine has no user {name}; tools/debian-packages brings it") from None
    unshare = shutil.which("unshare") or "unshare"
    return [unshare, "--user", f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}", "--", *argv]
