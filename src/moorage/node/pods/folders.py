"""Files and folders inside volumes, made and owned without ever following a link that a pod planted.

Enters: a root folder that the node made, a relative path, an owner. Leaves: what was missing.
It must not leave the root. Source: path_resolution(7); the subPath races of Kubernetes (CVE-2017-1002101, CVE-2021-25741).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_below(root: Path, relative: Path, owner: int | None, *, is_file: bool = False, mode: int = 0o755) -> None:
    """Makes what is missing of `root/relative`; `owner`: user and group of what is made (None: ourselves).

    Raises:
        OSError: a part on the way is a link or a file, or the disk refused.
    """
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *parents, last = relative.parts
        for name in parents if is_file else [*parents, last]:
            there = _folder(name, here, owner, mode)
            os.close(here)
            here = there
        if is_file:
            _file(last, here, owner)
    finally:
        os.close(here)


def _folder(name: str, parent: int, owner: int | None, mode: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        os.mkdir(name, mode, dir_fd=parent)
    made = os.open(name, _FOLDER, dir_fd=parent)
    os.fchmod(made, mode)
    if owner is not None:
        os.fchown(made, owner, owner)
    return made


def _file(name: str, parent: int, owner: int | None) -> None:
    try:
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=parent)
    except FileExistsError:
        return
    if owner is not None:
        os.fchown(made, owner, owner)
    os.close(made)


def remove(folder: Path, root: Path) -> None:
    """Deletes a folder below `root`, and those above it that are empty then, `root` apart."""
    shutil.rmtree(folder, ignore_errors=True)
    for above in folder.parents:
        if above == root:
            return
        try:
            above.rmdir()
        except OSError:
            return


def give(root: Path, owner: int | None) -> None:
    """Makes `owner` the user and group of a whole tree, unless its root is theirs already; links are not followed."""
    if owner is None or root.lstat().st_uid == owner:
        return
    for _, folders, files, here in os.fwalk(root):
        for name in [*folders, *files]:
            os.chown(name, owner, owner, dir_fd=here, follow_symlinks=False)
    os.chown(root, owner, owner, follow_symlinks=False)
