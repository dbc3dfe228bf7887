"""Waits that a server asks for: whatever stands in the header, a number of seconds that a clock can be set to, or none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.backoff import parse_retry_after

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None), ("", None), ("soon", None), ("-1", None), ("²", None), ("٣", 3.0), ("7", 7.0), ("0\x1f", 0.0), ("9" * 400, 86400.0), ("86401", 86400.0),
        ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0), ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 86400.0),
        ("30 Nov 99999999999999 20:00:00 GMT", None),
    ],
)  # fmt: skip
def test_a_wait_is_a_day_at_most(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds


@given(st.text(max_size=60))
def test_no_header_raises(header: str) -> None:
    assert 0.0 <= (parse_retry_after(header, NOW) or 0.0) <= 86400.0
