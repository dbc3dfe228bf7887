"""The whole suite: `--update-cases` writes the `want/` folders of the cases anew, to be reviewed as a diff; files with real servers run first.

Examples of property tests have no deadline: a busy machine takes as long as it takes. They are drawn from the test itself, so that one commit has one
verdict wherever it runs; `MOORAGE_EXAMPLES=random` draws others each time, for whoever looks for what nobody thought of.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("settled", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile(os.environ.get("MOORAGE_EXAMPLES", "settled"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-cases", action="store_true", help="write want/ of the case folders anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with real servers first: one of them takes a minute or two, and must not be what a single worker ends with."""
    slow = {item.path for item in items if item.get_closest_marker("e2e")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def update_cases(request: pytest.FixtureRequest) -> bool:
    """Whether the golden files are written instead of compared."""
    return bool(request.config.getoption("--update-cases"))
