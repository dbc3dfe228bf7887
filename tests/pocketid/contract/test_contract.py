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


@pytest.mark.parametrize("file", FILES)
async def test_the_fake_answers_as_the_recorded_server_did(file: str) -> None:
    try:
        found = await replay(file)
    finally:
        await facts_flows.stop_issuers()
    ours = [entry for entry in ACCEPTED if entry["where"].startswith(file)]
    stale = [entry["where"] for entry in ours if not fnmatch.filter(found, entry["where"])]
    left = [line for line in found if not any(fnmatch.fnmatch(line, entry["where"]) for entry in ours)]
    assert (left, stale) == ([], [])


def test_all_25_files_are_replayed() -> None:
    lines = sum(len((RECORDED / f"{file}.jsonl").read_text().splitlines()) for file in FILES)
    assert (len(FILES), lines) == (25, 923)


def test_every_accepted_difference_names_a_file_and_a_reason() -> None:
    for entry in ACCEPTED:
        assert entry["where"].split()[0] in FILES, json.dumps(entry)
        assert entry["because"]
