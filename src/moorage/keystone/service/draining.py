"""How pods of a Keystone end without losing a request: nobody sends any more, what was sent is answered, then the servers are told to stop.

Enters: a declared Keystone. Leaves: commands of preStop hooks. A server that is told to stop drops whoever waits in its queue: uWSGI lost 16 of 20
logins (measured), and the queue is long where the machine is busy, as it is while pods roll. So a hook ends when nobody waits any more, within a
bound. A node may say that no endpoint leads to the pod any more (POD_DRAINED); everywhere else that takes the declared seconds.
Source: spec/keystone.md 1.3; C19.
"""

from __future__ import annotations

from typing import Final

from .types import KeystoneSpec

SHARED: Final = "/run/keystone"
"""A folder of the pod that both containers of a federated pod see."""
_DRAINING: Final = f"{SHARED}/draining"
"""Locked by the sidecar's hook for as long as that lives: the kernel lets the lock go also when Apache ends first and takes its hook along."""
_PYTHON: Final = ("python3", "-I", "-S", "-c")
_PAUSE: Final = """\
import errno, fcntl, os, socket, sys, time
pause, limit = map(float, sys.argv[1:3])
time.sleep(0 if os.environ.get("POD_DRAINED") else pause)
end = time.monotonic() + limit
"""
_ANSWERED: Final = (
    _PAUSE
    + """\
address = os.environ["POD_IP"]
family, table = (socket.AF_INET6, "tcp6") if ":" in address else (socket.AF_INET, "tcp")
raw = socket.inet_pton(family, address)
words = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4)]
here = "".join(map("{:08X}".format, words)) + f":{int(sys.argv[3]):04X}"
def asked():
    with open(f"/proc/net/{table}") as rows:
        return any(cells[1] == here and cells[3] in ("01", "08") for cells in map(str.split, rows))
while asked() and time.monotonic() < end:
    time.sleep(0.1)
"""
)
"""Connections to this address and port, queued ones among them, as the kernel lists them: established, or ended by the client only."""
_HANDED_OVER: Final = (
    _PAUSE
    + f"""\
def refuses():
    address = os.environ["POD_IP"]
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as link:
        link.settimeout(1)
        return link.connect_ex((address, int(sys.argv[3]))) == errno.ECONNREFUSED
def drained():
    try:
        with open("{_DRAINING}") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return refuses() and not os.path.exists("{_DRAINING}")
    except OSError:
        return False
    return True
while not drained() and time.monotonic() < end:
    time.sleep(0.1)
"""
)
"""A sidecar that never told of its end and refuses connections has handed over all that it will: its pod is ended before it has begun. One whose
queue is full refuses nobody, it does not answer; and one that begins to end between the two looks has told of it by the third."""
_DRAIN: Final = (
    f"rm -f {_DRAINING}; (: >{_DRAINING}.new) && exec 9>{_DRAINING}.new && flock 9 && mv {_DRAINING}.new {_DRAINING}; "
    '[ -n "$POD_DRAINED" ] || sleep "$1"; kill -WINCH 1; '
    'while [ "$(grep -ls "(apache2) [^Z]" /proc/[0-9]*/stat | wc -l)" -gt 1 ]; do sleep 0.1; done'
)
"""First nobody sends any more (endpoints drain), then Apache stops to listen and its workers finish. SIGTERM would cut them off, so
the hook lasts as long as there are workers; one that has ended (Z) waits for Apache's look of once a second, we do not."""
MERCY: Final = 2
"""Seconds for uWSGI's workers at the very end, and as many to spare: what was asked before has been answered by then, or takes too long."""


def seconds(spec: KeystoneSpec) -> int:
    """For how many seconds after the pause a hook waits for answers at most; the rest of the grace is the workers' mercy."""
    return max(0, spec.pods.grace - spec.pods.pre_stop - 2 * MERCY)


def alone(spec: KeystoneSpec, port: int) -> list[str]:
    """Of uWSGI that people reach themselves: until every connection to its port has ended."""
    return [*_PYTHON, _ANSWERED, str(spec.pods.pre_stop), str(seconds(spec)), str(port)]


def behind(spec: KeystoneSpec, port: int) -> list[str]:
    """Of uWSGI behind the sidecar on this port: until that one has handed over its last request. One that cannot say so is waited for a while only."""
    return [*_PYTHON, _HANDED_OVER, str(spec.pods.pre_stop), str(seconds(spec)), str(port)]


def proxy(spec: KeystoneSpec) -> list[str]:
    """Of the sidecar."""
    return ["sh", "-c", _DRAIN, "drain", str(spec.pods.pre_stop)]
