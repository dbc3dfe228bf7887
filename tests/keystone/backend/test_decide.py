"""What a backend does next, and what its status says, for each snapshot that matters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import get_args

import pytest

from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.keystone.backend.decide import decide
from moorage.keystone.backend.report import EVENTS, REASONS, report
from moorage.keystone.backend.seen import Seen, domain_id_of, own_ids
from moorage.keystone.backend.types import KIND

from . import folders
from .snapshots import OWN, UID, shown, snapshot

CASES = folders.cases("decide")


@pytest.mark.parametrize("folder", CASES)
def test_a_snapshot_leads_to_this_step_and_this_status(folder: Path, update_cases: bool) -> None:
    """The next plan, or the outcome with conditions, status fields and events."""
    seen = snapshot(folders.given(folder))
    answer = decide(seen)
    files = {"decision.yaml": folders.text(shown(answer))}
    if isinstance(answer, get_args(Outcome)):
        files["report.yaml"] = folders.text(_report(seen, answer))
    folders.compare(folder, files, update=update_cases)


def _report(seen: Seen, outcome: Outcome) -> dict[str, object]:
    said = report(seen, outcome)
    return {
        "conditions": [{k: v for k, v in asdict(item).items() if v} for item in said.conditions],
        "status": said.status,
        "events": [f"{event.type} {event.reason}: {event.message}" for event in said.events],
    }


def _reports() -> list[tuple[str, dict[str, object]]]:
    found = []
    for param in CASES:
        seen = snapshot(folders.given(param.values[0]))
        answer = decide(seen)
        if isinstance(answer, get_args(Outcome)):
            found.append((param.id, report(seen, answer)))
    return found  # type: ignore[return-value]


def test_every_reason_is_declared_and_shown_by_a_case() -> None:
    """The reference is made from REASONS and EVENTS, so nothing else may be said, and nothing in them may be dead."""
    said = {(c.type, c.reason) for _, item in _reports() for c in item.conditions}  # type: ignore[attr-defined]
    declared = {(type_, reason) for type_, reasons in REASONS.items() for reason in reasons}
    assert said <= declared
    probe_only = {"AddressUnreachable", "TLSFailed", "BaseDNNotFound", "SearchFailed"}
    assert {pair for pair in declared - said if pair[1] not in probe_only} == set()
    events = {event.reason for _, item in _reports() for event in item.events}  # type: ignore[attr-defined]
    assert events <= set(EVENTS)


@pytest.mark.case("P3")
@pytest.mark.parametrize(
    "hidden",
    [
        {"keystone": {"api_ready": False}},
        {"adminFault": "admin Secret keystone-admin does not exist"},
        {"lookup": {"unknown": "Keystone did not answer in time"}},
        {"failure": "Keystone answered 500"},
        {"keystone": {"terminating": True}},
    ],
)
def test_a_failed_look_never_demotes(hidden: dict[str, object]) -> None:
    """DomainReady stays True with its own message and generation, Ready stays True, and an event tells."""
    seen = snapshot(hidden)
    answer = decide(seen)
    assert isinstance(answer, Waiting | Failed)
    said = report(seen, answer)
    kept = next(item for item in said.conditions if item.type == "DomainReady")
    assert (kept.status, kept.observed_generation) == ("True", 1)
    assert next(item for item in said.conditions if item.type == "Ready").status == "True"
    assert [event.type for event in said.events] == ["Warning"]


@pytest.mark.case("K5", "C3")
def test_ownership_needs_no_status() -> None:
    """A backend restored without status recognises its domain by the id made from its uid."""
    restored = KIND.parse({**_stored(), "status": {}})
    assert own_ids(restored) == (domain_id_of(UID),)
    assert isinstance(decide(snapshot({"domainID": ""})), Done)


def test_a_recorded_id_counts_as_well_as_the_uid() -> None:
    """Domains of an older installation keep their id."""
    recorded = KIND.parse({**_stored(), "status": {"domainID": "f" * 32}})
    assert own_ids(recorded) == ("f" * 32, domain_id_of(UID))


def _stored() -> dict[str, object]:
    from .snapshots import backend_of

    return backend_of({})


@pytest.mark.case("B11")
def test_deletion_never_enables_a_domain() -> None:
    """Whatever the snapshot, a terminating backend plans nothing but disabling and deleting."""
    for own in (
        {"enabled": False},
        {"enabled": True},
        {"enabled": False, "description": "drifted"},
        {"name": "renamed"},
    ):
        case = {"domain": {"deletionPolicy": "Delete", "description": "x"}, "lookup": {"own": own}}
        gone = {"carries": False, "current": False}
        seen = snapshot({**case, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "mount": gone})
        assert type(decide(seen)).__name__ == ("DeleteDomain" if own.get("enabled", True) is False else "DisableDomain")


def test_a_foreign_domain_is_never_deleted() -> None:
    """Deletion looks at ids that prove ownership; a namesake is nobody's business."""
    case = {
        "domain": {"deletionPolicy": "Delete"},
        "lookup": {"own": None, "named": {"id": "foreign"}},
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "mount": {"carries": False, "current": False},
    }
    assert type(decide(snapshot(case))).__name__ == "Released"


def test_stalled_says_how_a_person_mends_it() -> None:
    """A dead end names the way out."""
    answer = decide(snapshot({"lookup": {"own": None, "named": {"id": "foreign"}}}))
    assert isinstance(answer, Stalled)
    assert "mode Adopt" in answer.message


def test_ids_are_what_keystone_accepts() -> None:
    """explicit_domain_id is 32 hex digits."""
    assert len(OWN["id"]) == 32
    assert int(OWN["id"], 16)
