"""A finished image: its root filesystem and how its processes start.

Enters: a cache folder that the builder finished. Leaves: where each path of the image lies on this machine.
It must not change the image.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from moorage.node.images.recipe import Loaded

_SYMLINK_LIMIT = 40


@dataclass(frozen=True, slots=True)
class RootFs:
    """A root filesystem bound read-only into sandboxes.

    `borrowed`: paths of the image that are folders of this machine (a `host` image borrows `/usr`).
    """

    reference: str
    root: Path
    uid: int
    gid: int
    working_directory: str = "/"
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    borrowed: Mapping[str, Path] = field(default_factory=dict)

    def source(self, path: str) -> Path:
        """Where an absolute path of the image lies on this machine; symlinks of the image are not followed."""
        for prefix, folder in self.borrowed.items():
            if path == prefix or path.startswith(prefix + "/"):
                return folder / path[len(prefix) :].lstrip("/")
        return self.root / path.lstrip("/")

    def resolve(self, path: str) -> str:
        """`path` with the image's symlinks followed, inside the image; missing parts stay as they are."""
        todo, done, followed = list(PurePosixPath(path).parts[1:]), "", 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            here = self.source(f"{done}/{part}")
            if here.is_symlink() and followed < _SYMLINK_LIMIT:
                followed += 1
                target = PurePosixPath(os.readlink(here))
                todo = [*target.parts[1 if target.is_absolute() else 0 :], *todo]
                done = "" if target.is_absolute() else done
            else:
                done = f"{done}/{part}"
        return done or "/"

    def mode(self, path: str) -> int | None:
        """The `st_mode` of a path of the image, symlinks not followed; None when it is missing."""
        try:
            return self.source(path).lstat().st_mode
        except OSError:
            return None

    def is_folder(self, path: str) -> bool:
        mode = self.mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def children(self, path: str) -> list[str]:
        """The names in a folder of the image, sorted; borrowed folders included."""
        try:
            names = set(os.listdir(self.source(path)))
        except OSError:
            names = set()
        return sorted(names)


def finished(recipe: Loaded, folder: Path) -> RootFs:
    """The root filesystem of a recipe that stands finished in `folder`."""
    wanted = recipe.file
    user = next((item for item in wanted.users if item.name == wanted.user), None)
    return RootFs(
        reference=recipe.reference,
        root=folder / "root",
        uid=user.uid if user else 0,
        gid=user.gid if user else 0,
        working_directory=wanted.working_directory,
        entrypoint=wanted.entrypoint,
        environment=dict(wanted.environment),
        borrowed={path: Path(path) for path in ("/usr", "/etc/ld.so.cache")} if wanted.kind == "host" else {},
    )
