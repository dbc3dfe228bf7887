"""Facts about this machine and about processes, from /proc and package metadata.

Enters: process ids, paths. Leaves: numbers and sentences.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from moorage import __version__

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process with all its threads, user and system, until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_mib(pid: int) -> float:
    """Resident memory of one process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def facts(folder: Path) -> list[str]:
    """What a reader needs to judge the figures; `folder` tells which disk was written to."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?"
    )
    memory = int(next(line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")).split()[1]) / 1024**2
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    packages = ", ".join(
        f"{name} {_version(name)}" for name in ("aiohttp", "httptools", "uvloop", "pydantic-core", "kopf")
    )
    return [
        f"Machine: {os.cpu_count()} cores of {model}, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"{_filesystem(folder)}; load at the end {load} (1, 5, 15 minutes)",
        f"Versions: moorage {__version__} ({_commit()}), Python {platform.python_version()}, {packages}",
        "Peers: kube-apiserver 1.36.3 with etcd 3.5.21 (fsync on, same disk), kopf",
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(elsewhere)"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _filesystem(folder: Path) -> str:
    done = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False)
    return f"filesystem {done.stdout.strip() or 'unknown'}"


def _commit() -> str:
    root = Path(__file__).parents[1]
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return f"commit {done.stdout.strip() or 'unknown'}"
