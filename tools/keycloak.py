"""Fetches the real Keycloak that the federation tests and the demo log in at; once, kept outside the checkout.

Enters: Maven's own client, which knows where its artifacts come from. Leaves: a distribution that is built for a start without
further work, in `~/.cache/moorage/keycloak-<version>`, where tests/real/keycloak.py looks for it. A build that breaks leaves nothing behind.

Use: `python3 tools/keycloak.py`; exit 1 with a sentence when it cannot be had.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from maven import CACHE, Broken, fetch, run

VERSION = "26.7.3"
ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
HOME = CACHE / f"keycloak-{VERSION}"


def build() -> None:
    """Fetch, unpack and build for dev-file with health, in a folder that is moved into place at the end; raises Broken."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=".keycloak-") as name:
        folder = Path(name)
        with zipfile.ZipFile(fetch(ARTIFACT, SHA256, folder / "fetched")) as archive:
            archive.extractall(folder)
        made = folder / f"keycloak-{VERSION}"
        program = made / "bin" / "kc.sh"
        program.chmod(0o755)
        run([str(program), "build", "--db=dev-file", "--health-enabled=true"], "kc.sh build")
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
