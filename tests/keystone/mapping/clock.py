"""The time of all reviews here."""

from __future__ import annotations

from datetime import UTC, datetime

NOW = datetime(2026, 11, 30, tzinfo=UTC)
