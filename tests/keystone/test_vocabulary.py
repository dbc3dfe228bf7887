"""Every word that a case shows is a word that the reference lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from moorage.keystone.backend import report as backend
from moorage.keystone.service import report as service

CASES = Path(__file__).parent.parent / "cases"


@pytest.mark.parametrize(("folder", "report"), [("keystone-backend", backend), ("keystone-service", service)])
def test_reasons_and_events_of_all_cases_are_listed(folder: str, report: ModuleType) -> None:
    """`REASONS` and `EVENTS` of report.py feed the reference; a case that shows another word found a gap."""
    strange = set()
    for path in (CASES / folder).rglob("want/*.yaml"):
        for shown in yaml.safe_load_all(path.read_text()):
            strange |= set(_unlisted(shown, report, path.parent.parent.name)) if isinstance(shown, dict) else set()
    assert not strange


def _unlisted(shown: dict[str, Any], report: ModuleType, case: str) -> Iterator[str]:
    for item in shown.get("conditions") or ():
        if isinstance(item, dict) and item["reason"] not in report.REASONS.get(item["type"], ()):
            yield f"{item['type']}={item['reason']} in {case}"
    for event in shown.get("events") or ():
        if isinstance(event, dict) and event["reason"] not in report.EVENTS:
            yield f"event {event['reason']} in {case}"
