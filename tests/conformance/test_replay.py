"""The embedded server answers each scenario as the real one did when it was recorded. Needs no Go."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import pytest
from tests.conformance.compare import compare, recorded
from tests.conformance.conftest import PLAYED, PROPERTY
from tests.conformance.play import Target, transcript
from tests.conformance.scenario import Case, areas

CASES = [case for area in areas() for case in area.cases]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_the_embedded_server_answers_as_recorded(
    case: Case, ours: Target, record_property: Callable[[str, object], None]
) -> None:
    """No difference that accepted.yaml does not explain."""
    truth = recorded(case)
    assert truth, f"{case.id} has never been recorded; run `make conformance`"
    found = compare(case, truth, transcript(case, ours))
    for difference in found:
        record_property(PROPERTY, json.dumps(asdict(difference)))
    unexplained = [difference for difference in found if not difference.accepted]
    record_property(PLAYED, case.id)
    assert not unexplained, f"{len(unexplained)} unexplained differences, see the table at the end"
