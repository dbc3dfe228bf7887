"""Every word that a case shows is a word that the reference lists."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

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
        shown = yaml.safe_load(path.read_text()) or {}
        if not isinstance(shown, dict):
            continue
        for item in shown.get("conditions") or ():
            if isinstance(item, dict) and item["reason"] not in report.REASONS.get(item["type"], ()):
                strange.add(f"{item['type']}={item['reason']} in {path.parent.parent.name}")
        for event in shown.get("events") or ():
            if isinstance(event, dict) and event["reason"] not in report.EVENTS:
                strange.add(f"event {event['reason']} in {path.parent.parent.name}")
    assert not strange
