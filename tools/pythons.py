"""Runs a part of the suite on every Python that pyproject.toml promises and that this machine does not have.

Enters: builds of CPython that Maven Central holds, `locks/dev.txt`. Leaves: `~/.cache/moorage/python-<version>` with the interpreter and a
virtual environment for each state of the lock; a build that breaks leaves nothing behind. Then types and tests of this checkout run on it; what
mypy found of files that did not change since is kept there, too, whatever checkout they are in.

Use: `python3 tools/pythons.py [PYTEST ARGUMENT...]`, by default the tests of `SELECTION`; exit 1 when one fails or cannot be had.
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
from dataclasses import dataclass
from pathlib import Path

from maven import CACHE, Broken, fetch, run

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "locks" / "dev.txt"
UV = ROOT / ".tools" / "bin" / "uv"
INSIDE = Path("org", "bytedeco", "cpython", "linux-x86_64")
ROOMS = ("core", "kube", "apiserver/test_store.py", "apiserver/test_watch.py", "cli/test_online.py", "cli/test_up.py")
SELECTION = tuple(f"tests/{name}" for name in ROOMS)
CHECKOUT = "moorage-checkout.pth"
"""Names the sources of the checkout that was checked last; programs that tests start see them, too."""


@dataclass(frozen=True)
class Python:
    """One interpreter: the artifact's version begins with its own."""

    artifact: str
    sha256: str

    @property
    def version(self) -> str:
        """Such as `3.12.1`."""
        return self.artifact.partition("-")[0]

    @property
    def minor(self) -> str:
        """Such as `3.12`."""
        return self.version.rpartition(".")[0]

    @property
    def home(self) -> Path:
        """Where the interpreter stands."""
        return CACHE / f"python-{self.version}"

    @property
    def program(self) -> Path:
        """The interpreter."""
        return self.home / "bin" / f"python{self.minor}"

    @property
    def venv(self) -> Path:
        """The environment of this state of the lock."""
        return self.home / f"venv-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"


PYTHONS = (
    Python("3.12.1-1.5.10", "a135fcf4dc01adebf7ea439252276fc3196db80f7e0dd3da0b61f1ec489b68bd"),
    Python("3.13.5-1.5.12", "50ad91aa0baa57f0235bb666b87d8bf2a44e215d28c250de1030502906af143b"),
)


def build(python: Python) -> None:
    """Fetch and unpack an interpreter; its extension modules find the one library that it brings along beside them. Raises Broken."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=".python-") as name:
        folder = Path(name)
        artifact = f"org.bytedeco:cpython:{python.artifact}:jar:linux-x86_64"
        with zipfile.ZipFile(fetch(artifact, python.sha256, folder / "fetched")) as archive:
            archive.extractall(folder)
        made = folder / INSIDE
        for program in (made / "bin").iterdir():
            program.chmod(0o755)
        for library in made.glob("libffi.so.*"):
            library.rename(made / "lib" / f"python{python.minor}" / "lib-dynload" / library.name)
        made.rename(python.home)


def equip(python: Python) -> None:
    """Make the virtual environment from the lock, every file's digest checked; older ones go. Raises Broken."""
    for old in python.home.glob("venv-*"):
        shutil.rmtree(old)
    half = python.home / f"half-{os.getpid()}"
    try:
        run([str(UV), "venv", "-q", "--python", str(python.program), "--relocatable", str(half)], "uv venv")
        where = ["--python", str(half), "--compile-bytecode"]
        run([str(UV), "pip", "sync", "-q", *where, "--require-hashes", str(LOCK)], "uv pip sync")
        half.rename(python.venv)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def check(python: Python, arguments: list[str]) -> bool:
    """Run types and tests; whether all passed."""
    interpreter = str(python.venv / "bin" / "python")
    (python.venv / "lib" / f"python{python.minor}" / "site-packages" / CHECKOUT).write_text(f"{ROOT / 'src'}\n")
    tests = arguments or ["-n", os.environ.get("JOBS", "2"), "--dist", "loadfile", "-m", "not conformance", *SELECTION]
    types = ["mypy", "--no-error-summary", "--python-version", python.minor, "--cache-dir", str(python.home / "types")]
    words = (types, ["pytest", *tests])
    return all(subprocess.run([interpreter, "-m", *word], cwd=ROOT, check=False).returncode == 0 for word in words)


def main(arguments: list[str]) -> int:
    """Each Python in turn; returns the exit status."""
    failed = 0
    for python in PYTHONS:
        label = f"python {python.version}"
        try:
            if not python.home.exists():
                print(f"{label}: fetching", flush=True)
                build(python)
            if not python.venv.exists():
                print(f"{label}: installing from {LOCK.relative_to(ROOT)}", flush=True)
                equip(python)
        except Broken as error:
            print(f"{label}: {error}", file=sys.stderr)
            return 1
        began = time.monotonic()
        passed = check(python, arguments)
        print(f"{label}: {'passed' if passed else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
        failed += not passed
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
