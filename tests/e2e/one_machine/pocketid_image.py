"""The fake Pocket-ID as images for one-machine mode: folders with an `image.toml`, as anybody would bring the real one.

Enters: a folder, a version. Leaves: the folder of a recipe. The fake's sources stand in the recipe, what they import is laid in by uv from our locks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAME = "pocket-id"
PACKAGES = (
    "aiohappyeyeballs", "aiohttp", "aiosignal", "attrs", "cffi", "cryptography", "frozenlist", "idna", "multidict", "propcache", "pycparser",
    "typing-extensions", "yarl",
)  # fmt: skip
SITE, SOURCES = "/opt/site", "/opt/fake"


def recipe(folder: Path, version: str) -> Path:
    """The recipe of the fake that says it is this version."""
    place = folder / version
    place.mkdir(parents=True)
    (place / "requirements.txt").write_text("\n".join(_pinned()) + "\n")
    head = {"name": NAME, "tag": f"v{version}", "kind": "host", "user": "pocketid", "working_directory": "/app"}
    lines = [f"{key} = {_text(value)}" for key, value in head.items()]
    lines += ['entrypoint = ["/usr/bin/python3", "-m", "tests.fakes.pocketid.deployed"]', 'directories = ["/app/data"]']
    python = {"version": "3.11", "requirements": "requirements.txt", "target": SITE}
    variables = {"PYTHONPATH": f"{SOURCES}:{SITE}", "PYTHONDONTWRITEBYTECODE": "1", "FAKE_POCKETID_VERSION": version}
    user = '[[users]]\nname = "pocketid"\nuid = 1000\ngid = 1000\nhome = "/app"'
    parts = [
        "\n".join(lines),
        _table("python", python),
        user,
        _table("environment", variables),
        _table("files", dict(_files())),
    ]
    (place / "image.toml").write_text("\n\n".join(parts) + "\n")
    return place


def _pinned() -> Iterator[str]:
    """Their lines of the lock, hashes and all."""
    lock = (ROOT / "locks" / "dev.txt").read_text()
    for block in re.findall(r"^[a-z0-9][^\n]*(?:\n    [^\n]*)*", lock, re.MULTILINE):
        if re.match(r"[a-z0-9-]+", block)[0] in PACKAGES:  # type: ignore[index]
            yield block


def _files() -> Iterator[tuple[str, str]]:
    """The fake, and the one module of another that it uses."""
    fakes = ROOT / "tests" / "fakes"
    for path in (fakes / "__init__.py", *sorted((fakes / "pocketid").glob("*.py")), fakes / "idp" / "keys.py"):
        yield f"{SOURCES}/{path.relative_to(ROOT)}", path.read_text()


def _table(name: str, values: dict[str, str]) -> str:
    return "\n".join([f"[{name}]", *(f"{_text(key)} = {_text(value)}" for key, value in values.items())])


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
