"""One command inside a running sandbox, as one of its own processes: exec probes and preStop hooks.

Enters: argv: process number and start ticks of the sandbox's first process, user and group inside, working folder, then
the command; its environment is the command's. Leaves: the command's exit code. It must not import anything of ours: it
runs by `python -I -S`. Everything that entering a namespace brought, capabilities above all, is given up before the command.
Source: setns(2), user_namespaces(7), ioctl_ns(2), capabilities(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import sys

_SPACES = ("mnt", "pid", "ipc", "uts", "cgroup")
_NS_GET_USERNS = 0xB701
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_LAST_CAPABILITY = 63
_NOT_FOUND, _NOT_STARTED = 127, 126
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    pid, ticks, uid, gid = map(int, sys.argv[1:5])
    folder, command = sys.argv[5], sys.argv[6:]
    spaces = {name: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("user", *_SPACES)}
    with open(f"/proc/{pid}/stat", "rb") as stat:
        if int(stat.read().rpartition(b")")[2].split()[19]) != ticks:
            raise OSError(0, "the container does not run")
    if os.geteuid() == 0:
        os.setgroups([])
    _enter(spaces)
    child = os.fork()
    if child == 0:
        _command(uid, gid, folder, command)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256


def _enter(spaces: dict[str, int]) -> None:
    """First the user namespace that owns the mounts, then all others, then the one that the processes live in."""
    owner = fcntl.ioctl(spaces["mnt"], _NS_GET_USERNS)
    _join(owner)
    for name in _SPACES:
        _join(spaces[name])
    if os.fstat(owner).st_ino != os.fstat(spaces["user"]).st_ino:
        _join(spaces["user"])
    for descriptor in (owner, *spaces.values()):
        os.close(descriptor)


def _join(descriptor: int) -> None:
    if _libc.setns(descriptor, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "setns")


def _command(uid: int, gid: int, folder: str, command: list[str]) -> None:
    try:
        for number in range(_LAST_CAPABILITY + 1):
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        os.umask(0o022)
        with contextlib.suppress(OSError):
            os.chdir(folder)
        _become(command)
    except FileNotFoundError:
        os.write(2, f"exec: {command[0]!r}: no such file or directory\n".encode())
        os._exit(_NOT_FOUND)
    except OSError as error:
        os.write(2, f"exec: {command[0]!r}: {error.strerror}\n".encode())
    os._exit(_NOT_STARTED)


def _become(command: list[str]) -> None:
    """Run the command in our place, found by PATH unless it names a folder.

    Not `os.execvp`: it loads a module when it searches, and the container's root holds no Python of ours.
    """
    places = [""] if "/" in command[0] else [f"{place}/" for place in os.environ.get("PATH", os.defpath).split(":")]
    refusal: OSError = FileNotFoundError()
    for place in places:
        try:
            os.execv(f"{place}{command[0]}", command)  # noqa: S606 - no shell is wanted
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = error
    raise refusal


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(f"cannot enter the container: {error.strerror}")
