"""Fetches one artifact by Maven's own client, which knows where its artifacts come from. Used by tools that get real parts for the tests.

Enters: coordinates and a digest. Leaves: the file, its digest checked. It must not name a host.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("MOORAGE_CACHE", Path.home() / ".cache" / "moorage"))


class Broken(Exception):
    """A part cannot be had; the sentence says why."""


def run(argv: list[str], what: str) -> None:
    """Run a command to its end; raises Broken with the last of what it said."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Broken(f"{argv[0]} is not on PATH") from None
    if done.returncode:
        raise Broken(f"{what} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def fetch(artifact: str, sha256: str, folder: Path) -> Path:
    """The file of `group:name:version:type[:classifier]`, in `folder`; raises Broken."""
    folder.mkdir(parents=True, exist_ok=True)
    run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"], "mvn")
    (file,) = folder.iterdir()
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != sha256:
        raise Broken(f"{file.name} has the digest {found}, not the one that tools/ has written down for {artifact}")
    return file
