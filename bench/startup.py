"""Wall time of `moorage --help` and of `moorage lint` on one file, as a person meets them: whole processes, warm files; and the CPU time
of `moorage lint` on the corpus of 44."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.conformance.test_corpus import corpus

from bench import children
from bench.plan import Plan
from bench.table import Row, spread

CORPUS_AIM = 1000
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
    return [*rows, _corpus_row(plan, environment)]


def _corpus_row(plan: Plan, environment: dict[str, str]) -> Row:
    """All 44 files of the corpus in one call: three are admitted, so the command ends with 1."""
    folder = plan.folder / "corpus"
    folder.mkdir()
    for _, _, obj in corpus():
        (folder / f"{len(list(folder.iterdir())):02}.json").write_text(json.dumps(obj))
    command = (sys.executable, "-m", "moorage.cli", "lint", str(folder))
    runs = [_timed(command, environment, ends=1) for _ in range(3 * plan.repetitions)]
    wall, cpu = (spread([run[at] for run in runs], "ms") for at in (0, 1))
    result = f"{wall} wall, {cpu} CPU"
    return Row(
        "moorage lint of the corpus of 44, median CPU", str(cpu), "", result, f"< {CORPUS_AIM} ms",
        cpu.median < CORPUS_AIM, {"wall": wall, "CPU": cpu},
    )  # fmt: skip


def _environment(folder: Path) -> dict[str, str]:
    """As a person has it: bytecode is written and read; here in a folder of the bench."""
    kept = {name: value for name, value in children.ENVIRONMENT.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def _timed(command: tuple[str, ...], environment: dict[str, str], ends: int = 0) -> tuple[float, float]:
    """Wall and CPU milliseconds of one run, which ends with this code."""
    began = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != ends:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}")
    return wall * 1000, (used.ru_utime + used.ru_stime) * 1000
