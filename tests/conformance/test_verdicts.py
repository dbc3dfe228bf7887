"""Our kinds on both servers: the definitions are taken, and the whole admission corpus gets the same verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance import verdicts
from tests.conformance.play import Target
from tests.conformance.verdicts import FOLDERS, Court, name_of
from tests.keystone.folders import plain

BY_NAME = [name_of(folder) for folder in FOLDERS]


@pytest.fixture(scope="module")
def our_court(ours: Target) -> Iterator[Court]:
    with verdicts.court(ours) as session:
        yield session


@pytest.fixture(scope="module")
def real_court(real: Target) -> Iterator[Court]:
    with verdicts.court(real) as session:
        yield session


@pytest.mark.parametrize("folder", FOLDERS, ids=BY_NAME)
def test_the_embedded_server_judges_as_recorded(folder: Path, our_court: Court) -> None:
    """Admitted or refused, with the same status and the same field paths as the real server said."""
    truth = verdicts.recorded().get(name_of(folder))
    assert truth, f"{name_of(folder)} has never been recorded; run `make conformance`"
    found = our_court.judge(folder)
    assert (found.status, found.fields) == (truth.status, truth.fields), (found.message, truth.message)


@pytest.mark.parametrize("folder", FOLDERS, ids=BY_NAME)
def test_the_record_agrees_with_the_golden_verdict(folder: Path) -> None:
    """What the real server admits and refuses is what the case's `want` says, field by field."""
    truth = verdicts.recorded()[name_of(folder)]
    want = plain(folder / "want" / "verdict.yaml")
    assert (truth.status >= 300) == bool(want["errors"]), truth.message
    paths = {error.split(": ", 1)[0] for error in want["errors"]}
    assert {field for field in truth.fields if field != "<nil>"} <= paths | {""}, truth.message


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_both_servers_judge_the_whole_corpus_alike(real_court: Court, our_court: Court) -> None:
    """The definitions are established on both (the fixtures wait for that); every object is sent to both; the record is renewed."""
    truth = {name_of(folder): real_court.judge(folder) for folder in FOLDERS}
    verdicts.record(truth)
    found = {name_of(folder): our_court.judge(folder) for folder in FOLDERS}
    unlike = {
        name for name in truth if (truth[name].status, truth[name].fields) != (found[name].status, found[name].fields)
    }
    assert not unlike, "\n".join(f"{name}\n  real {truth[name]}\n  ours {found[name]}" for name in sorted(unlike))
