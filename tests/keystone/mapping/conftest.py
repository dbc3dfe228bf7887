"""Keystone's own rule processor, one process for a test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.real.ruleprocessor import RuleProcessor, rule_processor


@pytest.fixture(scope="session")
def truth() -> Iterator[RuleProcessor]:
    """Keystone 30's RuleProcessor and mapping schema."""
    with rule_processor() as found:
        yield found
