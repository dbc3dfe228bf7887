"""Keystone's own rule processor, one process for a test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.real.fixtures import real_keystone
from tests.real.ruleprocessor import RuleProcessor, rule_processor

__all__ = ["real_keystone", "truth"]


@pytest.fixture(scope="session")
def truth() -> Iterator[RuleProcessor]:
    """Keystone 30's RuleProcessor and mapping schema."""
    with rule_processor() as found:
        yield found
