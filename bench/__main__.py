"""`python -m bench [question ...]`: measures, prints one table, writes docs/benchmarks.md when all questions were asked."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bench import machine
from bench.plan import Plan
from bench.table import Row, markdown, plain

QUESTIONS = {
    "requests": "requests for each converged backend, and in a steady pass",
    "converge": "Ready per CPU-second, against a kopf operator",
    "pocketid": "OIDC clients Ready per CPU-second, against a kopf operator; their steady minute",
    "store": "durable creates, writes a sync, watchers, start",
    "memory": "resident memory, idle and with 20,000 objects",
    "admission": "reviews per second over TLS",
    "startup": "moorage --help and moorage lint",
    "render": "CPU of the sidecar's files for 50 backends",
    "federation": "protected requests through the sidecar, against open ones",
}
"""Question -> what it asks; each is a module of this package with a function `measure`."""
DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def main() -> None:
    """Ask the questions in order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    given = _arguments()
    plan = Plan(
        Path(), given.seconds, given.repetitions, given.scale, given.peer_url, given.peer_token, given.peer_command
    )
    rows: list[Row] = []
    failed: list[str] = []
    for name in given.questions or QUESTIONS:
        try:
            rows += _asked(name, plan, given.scratch)
        except Exception:  # noqa: BLE001  the other questions are answered all the same
            traceback.print_exc()
            failed.append(name)
    sys.stdout.write(f"\n{plain(rows)}\n")
    if failed:
        sys.exit(f"no answer to: {', '.join(failed)}; docs/benchmarks.md is left as it was")
    if given.write or (not given.questions and given.scale == 1):
        DOCUMENT.write_text(document(rows, given.questions or QUESTIONS))
        sys.stdout.write(f"\nwritten to {DOCUMENT}\n")


def _asked(name: str, plan: Plan, scratch: str) -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix=f"moorage-bench-{name}-", dir=scratch or None))
    began = time.monotonic()
    sys.stderr.write(f"{name}: {QUESTIONS[name]} ...\n")
    try:
        found: list[Row] = import_module(f"bench.{name}").measure(replace(plan, folder=folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.write(f"{plain(found)}\n{name}: {time.monotonic() - began:.0f} s\n\n")
    return found


def _arguments() -> argparse.Namespace:
    lines = "\n".join(f"  {name:10} {text}" for name, text in QUESTIONS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=f"Questions:\n{lines}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("questions", nargs="*", choices=[*QUESTIONS, []], help="default: all")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one run under load")
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each side, in turn")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the numbers of objects, for a quick look")
    parser.add_argument(
        "--scratch", default="", help="folder on the disk to measure; default: the system's temporary one"
    )
    parser.add_argument("--peer-url", default="", help="a kube-apiserver that runs already; default: one is started")
    parser.add_argument("--peer-token", default="", help="bearer token of an administrator there")
    parser.add_argument(
        "--peer-command", default="", help="starts the kopf operator; {namespace} and {file} are filled in"
    )
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md also after a partial run")
    return parser.parse_args()


def document(rows: list[Row], asked: Iterable[str]) -> str:
    """docs/benchmarks.md."""
    facts = "\n".join(f"- {line}" for line in machine.facts(Path(tempfile.gettempdir())))
    command = " ".join(["python -m bench", *sys.argv[1:]])
    return f"""# Benchmarks

Ratios and counts, not promises. Both sides ran on the same machine in the same run, in turn, several times; the table quotes medians
(of ratios: the median of the pairs). `make bench` measures again and writes this file.

{facts}
- Command: `{command}`
- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC

{markdown(rows)}

## What is measured

{chr(10).join(_explained(name) for name in asked)}
"""


def _explained(name: str) -> str:
    """A question in the words of its module."""
    text = " ".join((import_module(f"bench.{name}").__doc__ or "").split())
    return f"- [`bench/{name}.py`](../bench/{name}.py) {text}"


if __name__ == "__main__":
    main()
