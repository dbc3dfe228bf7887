"""The fake answers what a real Pocket-ID answered: every recorded exchange, replayed over HTTP, no difference left that is not named."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

import pytest
import yaml
from tests.pocketid.contract import facts_apis, facts_clients, facts_flows, facts_people
from tests.pocketid.contract.replay import RECORDED, replay

FILES = sorted(path.stem for path in RECORDED.glob("*.jsonl"))
ACCEPTED = yaml.safe_load((Path(__file__).parent / "accepted.yaml").read_text())
SCRIPTS = (facts_apis, facts_clients, facts_flows, facts_people)


def judged(file: str, found: list[str], accepted: list[dict[str, str]]) -> tuple[list[str], list[str]]:
    """Differences that nobody accepted, and accepted ones that are none any more."""
    ours = [entry["where"] for entry in accepted if entry["where"].split()[0] == file]
    stale = [where for where in ours if not fnmatch.filter(found, where)]
    return [line for line in found if not any(fnmatch.fnmatchcase(line, where) for where in ours)], stale


@pytest.mark.parametrize("file", FILES)
async def test_the_fake_answers_as_the_recorded_server_did(file: str) -> None:
    try:
        found = await replay(file)
    finally:
        await facts_flows.stop_issuers()
    assert judged(file, found, ACCEPTED) == ([], [])


def test_a_difference_is_accepted_by_name_only_and_for_as_long_as_it_is_one() -> None:
    entry = {"where": "01-common 5: status*", "because": "for the test"}
    assert judged("01-common", ["01-common 5: status: other"], [entry]) == ([], [])
    assert judged("01-common", ["01-common 6: status: other"], [entry]) == (
        ["01-common 6: status: other"],
        [entry["where"]],
    )


def test_all_25_files_are_replayed() -> None:
    lines = sum(len((RECORDED / f"{file}.jsonl").read_text().splitlines()) for file in FILES)
    assert (len(FILES), lines) == (25, 923)


def test_every_accepted_difference_names_a_file_and_a_reason() -> None:
    for entry in ACCEPTED:
        assert entry["where"].split()[0] in FILES, json.dumps(entry)
        assert entry["because"]
