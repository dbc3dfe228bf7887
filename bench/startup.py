"""Wall time of `moorage --help` and of `moorage lint` on one file, as a person meets them: whole processes, warm files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench import children
from bench.plan import Plan
from bench.table import Row, spread

FILE = Path(__file__).parents[1] / "examples" / "keystone-ldap" / "30-backend.yaml"
BARE = (sys.executable, "-c", "pass")
COMMANDS = {
    "moorage --help": ((sys.executable, "-m", "moorage.cli", "--help"), 150),
    "moorage lint of one file": ((sys.executable, "-m", "moorage.cli", "lint", str(FILE)), 300),
}


def measure(plan: Plan) -> list[Row]:
    """In turn with an interpreter that does nothing, so that a reader sees what the machine adds."""
    environment = _environment(plan.folder)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in ("bare", *COMMANDS)}
    for round_ in range(-1, 3 * plan.repetitions):  # round -1 writes bytecode and is not counted
        for name in runs:
            found = _timed(BARE if name == "bare" else COMMANDS[name][0], environment)
            if round_ >= 0:
                runs[name].append(found)
    bare = spread([wall for wall, _ in runs["bare"]], "ms")
    rows = []
    for name, (_, aim) in COMMANDS.items():
        wall, cpu = (spread([run[at] for run in runs[name]], "ms") for at in (0, 1))
        raw = {"wall": wall, "CPU": cpu, "wall of python -c pass": bare}
        result = f"{wall} wall, {cpu} CPU"
        rows.append(
            Row(
                f"{name}, median wall",
                str(wall),
                f"{bare} (python -c pass)",
                result,
                f"< {aim} ms",
                wall.median < aim,
                raw,
            )
        )
    return rows


def _environment(folder: Path) -> dict[str, str]:
    """As a person has it: bytecode is written and read; here in a folder of the bench."""
    kept = {name: value for name, value in children.ENVIRONMENT.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def _timed(command: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU milliseconds of one run."""
    began = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}")
    return wall * 1000, (used.ru_utime + used.ru_stime) * 1000
