"""The case folders of tests/cases/keystone-service, door by door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.keystone.service import given
from tests.keystone.service.folders import cases, compare, text

from moorage.core.outcome import Outcome
from moorage.keystone.service import manifests
from moorage.keystone.service.admission import ADMISSION
from moorage.keystone.service.decide import decide
from moorage.keystone.service.network import network_policy
from moorage.keystone.service.plan import Plan, Project
from moorage.keystone.service.render import base_children, bundles, wanted, workload
from moorage.keystone.service.report import report
from moorage.keystone.service.types import KIND
from moorage.render.bundle import Bundle
from moorage.schema.review import Review


@pytest.mark.parametrize("folder", cases("admission"))
def test_admission(folder: Path, update_cases: bool) -> None:
    """Schema, CEL and rules together: all complaints and warnings of one object."""
    case = given.load(folder / "given.yaml")
    whole = given.completed(case["object"])
    old = given.completed(case["old"]) if "old" in case else None
    structure = KIND.structural.validate(whole, old)
    errors, warnings = [*structure.errors], [*structure.warnings]
    if not errors:
        found = KIND.structural.validate_rules(whole, old)
        errors, warnings = [*errors, *found.errors], [*warnings, *found.warnings]
        review = Review("UPDATE" if old else "CREATE", whole, old, (), given.time(given.NOW))
        verdict = ADMISSION.judge(review)
        errors, warnings = [*errors, *verdict.errors], [*warnings, *verdict.warnings]
    got = {"admitted": not errors, "errors": [error.message for error in errors], "warnings": warnings}
    compare(folder, {"verdict.yaml": text(got)}, update=update_cases)


@pytest.mark.parametrize("folder", cases("render"))
def test_render(folder: Path, update_cases: bool) -> None:
    """Configuration, domain files, and every child that is made from them."""
    found = given.inputs(given.load(folder / "given.yaml"))
    keystone, made = found.keystone, wanted(found)
    got: dict[str, str] = {}
    if not isinstance(made.config, Bundle):
        got["fault.yaml"] = text({"config": str(made.config)})
    else:
        got = {name: content.decode() for name, content in made.config.data.items()}
        got |= {name: content.decode() for name, content in made.domains.files.items()}
        got["children.yaml"] = "---\n".join(text(item) for item in _children(keystone, found, made))
    compare(folder, got, update=update_cases)


def _children(keystone: Any, found: Any, made: Any) -> list[Any]:
    config = made.mounts.config
    objects = [item.manifest for item in (*base_children(keystone, made), *workload(keystone, made))]
    objects += [_without_data(item) for item in bundles(keystone, made)]
    objects += [manifests.db_sync(keystone, config), manifests.bootstrap(keystone, config, "uid.7")]
    optional = (network_policy(keystone, found.backends), manifests.trust_flush(keystone, config))
    return [*objects, *(item for item in optional if item is not None)]


def _without_data(item: Project) -> Any:
    """Files are shown as files of the case."""
    return {**item.manifest, "data": sorted(item.manifest["data"])}


@pytest.mark.parametrize("folder", cases("decide"))
def test_decide(folder: Path, update_cases: bool) -> None:
    """The next plan of a snapshot, or its outcome."""
    got = _answer(decide(given.snapshot(given.load(folder / "given.yaml"))))
    compare(folder, {"answer.yaml": text(got)}, update=update_cases)


def _answer(answer: Plan | Outcome) -> Any:
    if isinstance(answer, Plan):
        return given.described(answer)
    fields = {name: getattr(answer, name) for name in ("reason", "message", "after") if hasattr(answer, name)}
    return {"outcome": type(answer).__name__, **fields}


@pytest.mark.parametrize("folder", cases("report"))
def test_report(folder: Path, update_cases: bool) -> None:
    """Conditions, status and events once nothing is left to do now."""
    seen, outcome = given.settle(given.snapshot(given.load(folder / "given.yaml")))
    said = report(seen, outcome)
    got = {
        "conditions": {
            c.type: f"{c.status} {c.reason}" + (f": {c.message}" if c.message else "") for c in said.conditions
        },
        "status": said.status,
        "events": [f"{event.type} {event.reason}: {event.message}" for event in said.events],
    }
    compare(folder, {"report.yaml": text(got)}, update=update_cases)
