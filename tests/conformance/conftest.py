"""Servers of the suite (one of each for a whole run of one worker), and the table of differences at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import servers
from tests.conformance.compare import Difference, table, unused
from tests.conformance.play import Target
from tests.conformance.scenario import areas

PROPERTY = "conformance-difference"
PLAYED = "conformance-case"


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
    """Print the open differences and the agreements that none needs, and write all differences into the cache folder of pytest."""
    found = _differences(terminalreporter)
    if not found:
        return
    file = Path(config.cache.mkdir("conformance")) / "differences.txt" if config.cache else None
    terminalreporter.section("differences between kube-apiserver and the embedded server")
    open_ones = [difference for difference in found if not difference.accepted]
    for line in table(open_ones):
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{len(open_ones)} unexplained, {len(found) - len(open_ones)} agreed (accepted.yaml)")
    for entry in _superfluous(terminalreporter):
        terminalreporter.write_line(f"accepted.yaml: no difference needs this any more, take it out: {entry}")
    if file:
        file.write_text("\n".join(table(found, width=100_000)) + "\n")
        terminalreporter.write_line(f"all of them: {file}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A whole run fails when accepted.yaml explains more than there is."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.exitstatus == pytest.ExitCode.OK and _superfluous(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _told(reporter: Any, wanted: str) -> list[str]:
    """The values of one property, of all tests that ran."""
    reports = [report for kind in ("passed", "failed") for report in reporter.stats.get(kind, [])]
    return [value for report in reports for name, value in report.user_properties if name == wanted]


def _differences(reporter: Any) -> list[Difference]:
    return [Difference(**json.loads(value)) for value in _told(reporter, PROPERTY)]


def _superfluous(reporter: Any) -> list[str]:
    """Entries of accepted.yaml that no difference needs; none are named unless every case was played."""
    every = {case.id for area in areas() for case in area.cases}
    return unused(_differences(reporter)) if every == set(_told(reporter, PLAYED)) else []
