"""Options of the whole suite: `--update-cases` writes the `want/` folders of the cases anew, to be reviewed as a diff."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-cases", action="store_true", help="write want/ of the case folders anew")


@pytest.fixture
def update_cases(request: pytest.FixtureRequest) -> bool:
    """Whether the golden files are written instead of compared."""
    return bool(request.config.getoption("--update-cases"))
