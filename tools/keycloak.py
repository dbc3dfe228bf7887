"""Fetches the real Keycloak that the federation tests and the demo log in at; once, kept outside the checkout.

Enters: Maven's own client, which knows where its artifacts come from. Leaves: a distribution that is built for a start without
further work, in `~/.cache/moorage/keycloak-<version>`, where tests/real/keycloak.py looks for it. A build that breaks leaves nothing behind.

Use: `python3 tools/keycloak.py`; exit 1 with a sentence when it cannot be had.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

VERSION = "26.7.3"
ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
CACHE = Path(os.environ.get("MOORAGE_CACHE", Path.home() / ".cache" / "moorage"))
HOME = CACHE / f"keycloak-{VERSION}"


class Broken(Exception):
    """Keycloak cannot be had; the sentence says why."""


def _run(argv: list[str], what: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"{what} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _fetch(folder: Path) -> Path:
    """The distribution's archive, its digest checked."""
    _run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"], "mvn")
    (archive,) = folder.glob("*.zip")
    with archive.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != SHA256:
        raise Broken(f"{archive.name} has the digest {found}, not the one that is written in tools/keycloak.py")
    return archive


def build() -> None:
    """Fetch, unpack and build for dev-file with health, in a folder that is moved into place at the end; raises Broken."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=".keycloak-") as name:
        folder = Path(name)
        with zipfile.ZipFile(_fetch(folder)) as archive:
            archive.extractall(folder)
        made = folder / f"keycloak-{VERSION}"
        program = made / "bin" / "kc.sh"
        program.chmod(0o755)
        _run([str(program), "build", "--db=dev-file", "--health-enabled=true"], "kc.sh build")
        shutil.rmtree(HOME, ignore_errors=True)
        made.rename(HOME)


def main() -> int:
    """Build it when it is missing; returns the exit status."""
    label = f"keycloak {VERSION}"
    if HOME.exists():
        print(f"{label}: present")
        return 0
    if missing := [name for name in ("mvn", "java") if not shutil.which(name)]:
        package = {"mvn": "maven", "java": "default-jre-headless"}
        wanted = " ".join(package[name] for name in missing)
        print(f"{label}: {', '.join(missing)} not on PATH. Run `tools/debian-packages {wanted}`", file=sys.stderr)
        return 1
    print(f"{label}: fetching and building, this takes a minute", flush=True)
    began = time.monotonic()
    try:
        build()
    except Broken as error:
        print(f"{label}: {error}", file=sys.stderr)
        return 1
    print(f"{label}: built in {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
