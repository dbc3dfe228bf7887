"""An image's recipe, read from `image.toml`.

Enters: the folder of a recipe. Leaves: a frozen `Loaded` and the digest by which its root filesystem is cached.
It must not build anything.

Kinds of recipes:
  debian   a root filesystem made by mmdebstrap (packages) and uv (a locked requirements file)
  host     the machine's own `/usr`, bound read-only, with small `/etc` files of its own; for tests and the demo
"""

from __future__ import annotations

import platform
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic_core import ValidationError

from moorage.core.digest import json_digest
from moorage.core.errors import InputError
from moorage.schema.declared import Structure, declare

_BUILDER_VERSION = 1
"""Part of every digest: raise it when the builder makes a different tree from the same recipe."""


_SHAPES = {
    "name": re.compile(r"[a-z0-9]+([._:/-][a-z0-9]+)*"),
    "tag": re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}"),
}


class _Part(Structure):
    unknown = "forbid"


class PythonPart(_Part):
    """Wheels of a hash-pinned requirements file, laid into `target`; their scripts into `scripts`."""

    version: str
    requirements: str
    target: str
    scripts: str = "/usr/local/bin"


class UserPart(_Part):
    """One line of passwd and of group."""

    name: str
    uid: int
    gid: int
    home: str = "/"


class RecipeFile(_Part):
    """`image.toml` as it stands."""

    name: str
    tag: str
    kind: Literal["debian", "host"] = "debian"
    suite: str = "bookworm"
    packages: tuple[str, ...] = ()
    python: PythonPart | None = None
    user: str = "root"
    users: tuple[UserPart, ...] = ()
    working_directory: str = "/"
    entrypoint: tuple[str, ...] = ()
    environment: dict[str, str] = declare(factory=dict)
    files: dict[str, str] = declare(factory=dict)
    directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A recipe and where it lives. `digest`: sixteen hex digits over everything that shapes the tree."""

    file: RecipeFile
    folder: Path
    digest: str
    requirements: str = field(default="", repr=False)

    @property
    def reference(self) -> str:
        """`name:tag`, as a pod spec writes it."""
        return f"{self.file.name}:{self.file.tag}"

    @property
    def folder_name(self) -> str:
        """The folder below the image cache: `<name>-<digest>`, slashes turned into dashes."""
        return f"{self.file.name.replace('/', '-')}-{self.digest}"


def load(folder: Path) -> Loaded:
    """The recipe of `folder/image.toml`.

    Raises:
        InputError: the file is missing, is not TOML, or has an unknown or wrong field.
    """
    path = folder / "image.toml"
    try:
        parsed = RecipeFile.model_validate(tomllib.loads(path.read_text()))
        requirements = (folder / parsed.python.requirements).read_text() if parsed.python else ""
    except OSError as error:
        raise InputError(str(error.filename), error.strerror or "cannot be read") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(str(path), str(error)) from error
    except ValidationError as error:
        raise InputError(str(path), _complaints(error)) from error
    for name, shape in _SHAPES.items():
        if not shape.fullmatch(getattr(parsed, name)):
            raise InputError(str(path), f"{name}: does not match {shape.pattern}")
    return Loaded(parsed, folder, _digest(parsed, requirements), requirements)


def _digest(parsed: RecipeFile, requirements: str) -> str:
    facts: Mapping[str, Any] = {
        "builder": _BUILDER_VERSION,
        "machine": platform.machine(),
        "recipe": parsed.model_dump(),
        "requirements": requirements,
    }
    return json_digest(facts)


def _complaints(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
