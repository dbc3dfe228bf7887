"""What of the kernel's own files a sandbox sees: settings read-only, secrets and doors covered.

Enters: nothing but which of them this kernel has. Leaves: bubblewrap arguments for after `--proc /proc`.
It must not decide anything about pods. The kernel asks for its own user 0, not for a capability, when settings below
/proc/sys are written: so a read-only /proc/sys is what holds where a sandbox runs as a user that owns them.
Source: proc(5); OCI runtime specification, default maskedPaths and readonlyPaths.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from moorage.node.pods.source import Source

READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/mtrr")
COVERED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg",
    "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
    "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
)  # fmt: skip


def covers() -> Iterator[str]:
    """The arguments; files become /dev/null, folders become empty and read-only."""
    for path in READ_ONLY:
        if os.path.exists(path):
            yield from ("--ro-bind", Source(path), path)
    for path in COVERED:
        if os.path.isdir(path):
            yield from ("--perms", "0555", "--tmpfs", path, "--remount-ro", path)
        elif os.path.exists(path):
            yield from ("--dev-bind", Source("/dev/null"), path)
