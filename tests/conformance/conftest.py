"""Servers of the suite (one of each for a whole run of one worker), and the table of differences at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import servers
from tests.conformance.compare import Difference, table
from tests.conformance.play import Target

PROPERTY = "conformance-difference"


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The embedded server."""
    with servers.ours(tmp_path_factory.mktemp("ours")) as target:
        yield target


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The real kube-apiserver."""
    with servers.real(tmp_path_factory.mktemp("real")) as target:
        yield target


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the open differences and write all of them into the cache folder of pytest."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    found = [
        Difference(**json.loads(value))
        for report in reports
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if not found:
        return
    file = Path(config.cache.mkdir("conformance")) / "differences.txt" if config.cache else None
    terminalreporter.section("differences between kube-apiserver and the embedded server")
    open_ones = [difference for difference in found if not difference.accepted]
    for line in table(open_ones):
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{len(open_ones)} unexplained, {len(found) - len(open_ones)} agreed (accepted.yaml)")
    if file:
        file.write_text("\n".join(table(found, width=100_000)) + "\n")
        terminalreporter.write_line(f"all of them: {file}")
