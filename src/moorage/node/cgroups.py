"""Resource limits through cgroup v2, where this machine lets us.

Enters: the limits of a container. Leaves: a cgroup folder to start it in, or the reason why there is none. A machine
without a writable cgroup v2 tree costs limits, never a pod. Source: kernel documentation, cgroup-v2.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity

_PERIOD = 100_000
_PROCESSES = 4096
_CONTROLLERS = ("cpu", "memory", "pids")


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The tree below which pods get their cgroups. `reason` says why there is none when `base` is None."""

    base: Path | None
    reason: str = ""

    @classmethod
    def detect(cls, root: Path = Path("/sys/fs/cgroup"), name: str = "moorage") -> Cgroups:
        """Looks whether limits can be set, and prepares the tree."""
        controllers = root / "cgroup.controllers"
        if not controllers.exists():
            return cls(None, f"{root} is not a cgroup v2 hierarchy")
        missing = {"cpu", "memory"} - set(controllers.read_text().split())
        if missing:
            return cls(None, f"cgroup v2 lacks the controllers {', '.join(sorted(missing))}")
        base = root / name
        try:
            base.mkdir(exist_ok=True)
            for folder in (root, base):
                _enable(folder)
        except OSError as error:
            return cls(None, f"{base}: {error.strerror}")
        return cls(base)

    def make(self, pod_uid: str, container: str, limits: JsonObject) -> Path | None:
        """The cgroup of a container with these limits; None where limits cannot be set.

        Raises:
            OSError: the kernel refused.
        """
        if self.base is None:
            return None
        pod = self.base / pod_uid
        pod.mkdir(exist_ok=True)
        _enable(pod)
        folder = pod / container
        folder.mkdir(exist_ok=True)
        memory = int(parse_quantity(limits["memory"])) if "memory" in limits else None
        cpu = int(parse_quantity(limits["cpu"]) * _PERIOD) if "cpu" in limits else None
        _write(folder / "memory.max", str(memory) if memory else "max")
        _write(folder / "memory.oom.group", "1")
        if (folder / "pids.max").exists():
            _write(folder / "pids.max", str(_PROCESSES))
        _write(folder / "cpu.max", f"{max(cpu, 1000) if cpu else 'max'} {_PERIOD}")
        return folder

    def remove(self, pod_uid: str) -> None:
        """Takes away a pod's cgroups, all processes of which have ended."""
        if self.base is None:
            return
        pod = self.base / pod_uid
        for folder in [*pod.glob("*/"), pod]:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _enable(folder: Path) -> None:
    have = set((folder / "cgroup.controllers").read_text().split())
    wanted = " ".join(f"+{name}" for name in _CONTROLLERS if name in have)
    (folder / "cgroup.subtree_control").write_text(wanted)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
