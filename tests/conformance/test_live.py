"""Both servers play each area now; what the real one answers is recorded anew. Needs tools/conformance.py to have been run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import pytest
from tests.conformance.compare import Difference, compare, record
from tests.conformance.conftest import PLAYED, PROPERTY
from tests.conformance.play import Record, Target, transcript
from tests.conformance.scenario import Area, areas

pytestmark = [pytest.mark.conformance, pytest.mark.e2e, pytest.mark.timeout(900)]
AREAS = areas()


@pytest.mark.parametrize("area", AREAS, ids=[area.name for area in AREAS])
def test_both_servers_answer_alike(
    area: Area, real: Target, ours: Target, record_property: Callable[[str, object], None]
) -> None:
    """All cases of one area, on the real server and on ours; the record is renewed on the way."""
    truth: dict[str, list[Record]] = {}
    found: list[Difference] = []
    for case in area.cases:
        truth[case.name] = transcript(case, real)
        found += compare(case, truth[case.name], transcript(case, ours))
        record_property(PLAYED, case.id)
    record(area.name, truth)
    for difference in found:
        record_property(PROPERTY, json.dumps(asdict(difference)))
    unexplained = [difference for difference in found if not difference.accepted]
    assert not unexplained, f"{len(unexplained)} unexplained differences, see the table at the end"
