"""Keystone 30's own rule processor, and its LDAP driver, as one long-lived process, out of the local image, speaking JSON lines.

Enters: mapping rules and claims, files of domains. Leaves: what Keystone says. No server, no database; the process ends with its standard input.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.real.keystone import image

INSIDE = Path(__file__).with_name("ruleprocessor_inside.py")


class RuleProcessor:
    """One conversation with the process."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def process(self, cases: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Results of RuleProcessor, or `{"raised": class, "text": text}`, one for each pair of rules and claims."""
        return self._ask({"process": cases})

    def refusals(self, rules: Sequence[Any]) -> list[str | None]:
        """Why the mapping schema refuses each list of rules; None where it accepts it."""
        return self._ask({"schema": rules})

    def load_faults(self, files: Sequence[str]) -> list[str | None]:
        """Why Keystone cannot load each file of an LDAP domain; None where it can."""
        return self._ask({"domains": files})

    def _ask(self, question: Any) -> list[Any]:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(json.dumps(question) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, "Keystone's rule processor ended"
        answer: list[Any] = json.loads(line)
        return answer


@contextmanager
def rule_processor() -> Iterator[RuleProcessor]:
    """Start the process; it ends with the `with`."""
    root = image()
    command = [
        *("bwrap", "--ro-bind", str(root.root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *("--ro-bind", str(INSIDE), "/tmp/inside.py", "--unshare-user", "--unshare-pid", "--unshare-net"),
        *("--die-with-parent", "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"),
        *("python3", "-W", "ignore", "/tmp/inside.py"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield RuleProcessor(child)
        assert child.stdin
        child.stdin.close()
        child.wait(timeout=30)
