"""The bubblewrap arguments of one container.

Enters: an image, mounts, identity. Leaves: the argument list, in the one order that works. It must not start anything.

A mount point that is missing below a read-only folder cannot be made, so such folders are "opened": rebuilt on the
sandbox's own tmpfs root from single binds, and that root is made read-only at the end. Source: spec/testbed.md.
Users: the sandbox has a user namespace with one mapping, the pod's uid inside to the host user that starts bubblewrap
(users.py); so files that are given to that user belong to the pod's user, and a process of the pod has no capability
outside. Source: bwrap(1), user_namespaces(7).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from moorage.core.errors import InputError
from moorage.node.images.rootfs import RootFs
from moorage.node.pods.proc import covers
from moorage.node.pods.source import Source

POD_FOLDER = "/etc/.pod"
"""Where the folder with hosts and hostname is bound; `/etc/hosts` links into it, so a rename refreshes it at once."""
_LINKED = ("hosts", "hostname")
_OWN = ("/proc", "/dev", "/sys", "/tmp", "/run")  # noqa: S108 - of the sandbox
_SCRATCH = ("/tmp", "/run", "/var/tmp")  # noqa: S108 - of the sandbox
_KERNELS = ("/proc", "/sys", "/dev")
_ALLOWED = ("/dev/shm", "/dev/termination-log")  # noqa: S108 - of the sandbox


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine, without symlinks on the way, at an absolute path of the sandbox."""

    source: Path
    target: str
    read_only: bool = False
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """One container's sandbox. `pod_folder`: the folder that holds `hosts` and `hostname`."""

    rootfs: RootFs
    mounts: Sequence[Mount]
    pod_folder: Path
    hostname: str
    uid: int
    gid: int
    working_directory: str = "/"


def arguments(box: Box) -> list[str]:
    """What bwrap is told before the command; environment excluded. Paths of this machine are of type `Source`.

    Raises:
        InputError: a mount would cover the root or a folder of the kernel.
    """
    mounts = _placed(box)
    opened = _opened(box.rootfs, mounts)
    return [
        *(
            "--unshare-user",
            "--disable-userns",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ),
        *("--uid", str(box.uid), "--gid", str(box.gid), "--hostname", box.hostname[:63]),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1"),
        *_folder(box.rootfs, "/", opened, frozenset(mount.target for mount in mounts)),
        *("--proc", "/proc", *covers(), "--dev", "/dev", "--dir", "/sys"),
        *_mount_arguments(box.rootfs, mounts, opened),
        *("--remount-ro", "/", "--chdir", box.working_directory),
    ]


def nested(box: Box) -> Iterator[tuple[Path, Path, bool]]:
    """Mount points that must exist inside the source of another mount, as (that source, path in it, is file)."""
    mounts = _placed(box)
    for mount in mounts:
        outer = _outer(mount.target, mounts)
        if outer is not None and not isinstance(outer, _Scratch) and not outer.is_file:
            yield outer.source, Path(mount.target).relative_to(outer.target), mount.is_file


@dataclass(frozen=True, slots=True)
class _Scratch(Mount):
    """A private, empty, writable folder."""


def _placed(box: Box) -> list[Mount]:
    """All mounts at their real places in the image, outer ones first; a mount of the pod replaces one of ours."""
    wanted = {_allowed(box.rootfs.resolve(mount.target), mount): mount for mount in box.mounts}
    asked = [_at(mount, target) for target, mount in wanted.items()]
    ours: list[Mount] = [_Scratch(Path(), path) for path in _SCRATCH]
    ours.append(Mount(box.pod_folder, POD_FOLDER, read_only=True))
    ours.append(Mount(Path("/etc/resolv.conf").resolve(), "/etc/resolv.conf", read_only=True, is_file=True))
    places = [_at(mount, box.rootfs.resolve(mount.target)) for mount in ours]
    kept = [mount for mount in places if mount.target not in wanted and _outer(mount.target, asked) is None]
    return sorted([*asked, *kept], key=lambda mount: PurePosixPath(mount.target).parts)


def _allowed(target: str, mount: Mount) -> str:
    """The target, if a volume may be mounted there."""
    inside = any(target == folder or _is_below(target, folder) for folder in _KERNELS)
    if target == "/" or (inside and not any(target == path or _is_below(target, path) for path in _ALLOWED)):
        fix = "Mount it elsewhere; below /dev only /dev/shm can be mounted"
        raise InputError(f"mountPath {mount.target!r}", "would cover the root or a folder of the kernel", fix)
    return target


def _at(mount: Mount, target: str) -> Mount:
    if isinstance(mount, _Scratch):
        return _Scratch(Path(), target)
    return Mount(mount.source, target, mount.read_only, mount.is_file)


def _outer(target: str, mounts: Sequence[Mount]) -> Mount | None:
    """The innermost mount that holds `target`."""
    holders = [mount for mount in mounts if _is_below(target, mount.target)]
    return max(holders, key=lambda mount: len(mount.target), default=None)


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _opened(rootfs: RootFs, mounts: Sequence[Mount]) -> frozenset[str]:
    """Folders that are rebuilt from single binds."""
    opened = {"/", "/etc"}
    for mount in mounts:
        if _outer(mount.target, mounts) is None and not _fits(rootfs, mount):
            opened.update(str(parent) for parent in PurePosixPath(mount.target).parents)
    return frozenset(opened)


def _fits(rootfs: RootFs, mount: Mount) -> bool:
    mode = rootfs.mode(mount.target)
    if mode is None:
        return False
    return stat.S_ISREG(mode) if mount.is_file else stat.S_ISDIR(mode)


def _folder(rootfs: RootFs, path: str, opened: frozenset[str], taken: frozenset[str]) -> Iterator[str]:
    """Rebuilds an opened folder: subfolders that are opened too, links, and binds of the rest."""
    if path != "/":
        yield from ("--perms", "0755", "--dir", path)
    for name in rootfs.children(path):
        child = f"{path.rstrip('/')}/{name}"
        if child in _OWN or (path == "/etc" and name in _LINKED) or (child in taken and child not in opened):
            continue
        if child in opened and rootfs.is_folder(child):
            yield from _folder(rootfs, child, opened, taken)
        else:
            yield from _entry(rootfs, child)
    if path == "/etc":
        for name in _LINKED:
            if f"/etc/{name}" not in taken:
                yield from ("--symlink", f".pod/{name}", f"/etc/{name}")


def _entry(rootfs: RootFs, path: str) -> Iterator[str]:
    source = rootfs.source(path)
    mode = rootfs.mode(path)
    if mode is not None and stat.S_ISLNK(mode):
        yield from ("--symlink", str(source.readlink()), path)
    elif mode is not None and (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        yield from ("--ro-bind", Source(os.path.realpath(source)), path)


def _mount_arguments(rootfs: RootFs, mounts: Sequence[Mount], opened: frozenset[str]) -> Iterator[str]:
    made: set[str] = set()
    for mount in mounts:
        outer = _outer(mount.target, mounts)
        for parent in map(str, reversed(PurePosixPath(mount.target).parents)):
            if outer is None:
                missing = parent in opened and not rootfs.is_folder(parent)
            else:
                missing = isinstance(outer, _Scratch) and _is_below(parent, outer.target)
            if missing and parent not in made:
                made.add(parent)
                yield from ("--perms", "0755", "--dir", parent)
        yield from _one_mount(mount)


def _one_mount(mount: Mount) -> tuple[str, ...]:
    if isinstance(mount, _Scratch):
        return ("--perms", "1777", "--tmpfs", mount.target)
    flag = "--ro-bind" if mount.read_only else "--bind"
    if mount.is_file and mount.target == "/etc/resolv.conf":
        flag = "--ro-bind-try"
    return (flag, Source(mount.source), mount.target)
