"""Between the supervisor's fork and bubblewrap: another user of the machine, with only the sandbox's sources in sight.

Enters, in the child: the sources of the sandbox and a user id of this machine. Leaves: a process of that user without
groups or capabilities, in a mount namespace of its own in which source N lies at `STAGE/N`; so the sandbox is built by
somebody who may read nothing of root's, and folders that only root may pass (data, image cache) still serve as sources.
It must not import anything of ours: shim.py loads it by path, with the standard library only.
Source: user_namespaces(7), mount(2), path_resolution(7), session-keyring(7).
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import stat
from collections.abc import Iterable
from typing import Any

STAGE = "/tmp"  # noqa: S108 - covered by a private tmpfs
PROCESSES = 4096
"""How many processes and threads one pod's user may have, where no cgroup counts them."""
_CLONE_NEWNS = 0x20000
_NOSUID, _NODEV, _BIND, _REC, _PRIVATE = 2, 4, 4096, 16384, 1 << 18
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION_KEYRING = 1
_libc = ctypes.CDLL(None, use_errno=True)


def enter(sources: Iterable[tuple[str, str, bool]], user: int) -> None:
    """Lays out the sources and becomes `user`, for good.

    Args:
        sources: (name on the stage, absolute path without symlinks, whether it may be missing).

    Raises:
        OSError: a source is missing, has become a link, or the kernel refused.
    """
    _checked("unshare", _libc.unshare(_CLONE_NEWNS))
    _mount(None, "/", None, _REC | _PRIVATE, None)
    found = [(name, descriptor) for name, path, optional in sources if (descriptor := _open(path, optional)) >= 0]
    _mount(b"stage", STAGE, b"tmpfs", _NOSUID | _NODEV, b"mode=0755,size=4m")
    for name, descriptor in found:
        _lay(descriptor, f"{STAGE}/{name}")
    os.umask(0o022)
    _become(user)


def _become(user: int) -> None:
    if number := _KEYCTL.get(platform.machine()):
        _libc.syscall(number, _JOIN_SESSION_KEYRING, None)  # a new one: root's keys are not the pod's
    resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _open(path: str, optional: bool) -> int:
    """The path, walked without following links: what was checked by the node cannot have been swapped since."""
    here = os.open("/", os.O_PATH)
    try:
        for part in filter(None, path.split("/")):
            there = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = there
            if stat.S_ISLNK(os.fstat(here).st_mode):
                raise OSError(0, "has become a link", path)
    except OSError as error:
        os.close(here)
        if optional and isinstance(error, FileNotFoundError):
            return -1
        raise OSError(error.errno, error.strerror, path) from error
    return here


def _lay(descriptor: int, place: str) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    _mount(f"/proc/self/fd/{descriptor}".encode(), place, None, _BIND | _REC, None)
    os.close(descriptor)


def _mount(source: bytes | None, target: str, type_: bytes | None, flags: int, data: bytes | None) -> None:
    arguments: tuple[Any, ...] = (source, target.encode(), type_, ctypes.c_ulong(flags), data)
    _checked(target, _libc.mount(*arguments))


def _checked(what: str, answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
