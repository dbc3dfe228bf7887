"""The case folders of tests/cases/pocketid-instance/decide: a snapshot goes in, the next plan or the report comes out.

A case says what differs from a server that runs well: `spec` over the smallest one, `status`, `annotations`, `without` names of children that are
missing, `change` values laid over a live child by `Kind/name`, `sources` Secrets that people brought, `look` what the server said.
"""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.keystone import folders
from tests.keystone.folders import CASES
from tests.pocketid.test_admission import complete

from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.core.secret import SecretText
from moorage.pocketid.instance import pods, render
from moorage.pocketid.instance.admission import ADMISSION
from moorage.pocketid.instance.decide import decide
from moorage.pocketid.instance.environment import secrets
from moorage.pocketid.instance.plan import Ensure, MakeApiKey, MakeEncryptionKey, Plan, Remove
from moorage.pocketid.instance.report import report
from moorage.pocketid.instance.seen import Deployed, Refusal, Seen, Trouble, Unknown
from moorage.pocketid.instance.types import KIND, PocketIDInstance
from moorage.pocketid.rest_version import Version

KEY, API = "the-encryption-key-of-the-case", "the-api-key-of-the-case-of-length"
SPEC = {"encryptionKey": {"value": KEY}, "image": "pocket-id:v2.14.0", "appUrl": "https://id.example.org"}
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUNS = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}


def instance(case: dict[str, Any]) -> PocketIDInstance:
    """The declared instance with its status."""
    spec = {key: value for key, value in {**SPEC, **case.get("spec", {})}.items() if value is not None}
    meta = {"name": "main", "namespace": "pocket-id", "uid": "the-uid", "generation": 1} | case.get("metadata", {})
    meta["annotations"] = case.get("annotations", {})
    body = {"apiVersion": KIND.resource.api_version, "kind": KIND.kind, "metadata": meta, "spec": spec}
    return KIND.parse({**complete(ADMISSION, body), "status": case.get("status", {})})


def snapshot(case: dict[str, Any]) -> Seen:
    """The world of a case."""
    found = instance(case)
    brought = case.get("sources", {})
    sources = {name: {"data": {key: _encoded(text) for key, text in data.items()}} for name, data in brought.items()}
    values = secrets(found.spec, lambda secret, key: brought.get(secret, {}).get(key, ""))
    keys = pods.Keys(SecretText(KEY), SecretText(API), values)
    made = [
        render.encryption_key(found, SecretText(KEY)),
        render.api_key(found, SecretText(API)),
        render.settings(found, values),
        render.volume_claim(found),
        render.service(found),
        {**render.workload(found, found.spec.image or "", keys), "status": RUNS},
    ]
    live = {}
    for item in [copy.deepcopy(item) for item in made if item is not None]:
        item["metadata"]["generation"] = 1
        name = f"{item['kind']}/{item['metadata']['name']}"
        _lay(item, case.get("change", {}).get(name, {}))
        if name not in case.get("without", ()):
            live[item["kind"], item["metadata"]["name"]] = item
    here = Deployed(found.spec.image or "", live, sources, case.get("trouble", ""))
    return Seen(found, render.address(found), "", _look(case.get("look", "2.14.0")), 120.0, NOW, _refused(here, case))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _lay(item: dict[str, Any], change: dict[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(item.get(key), dict):
            _lay(item[key], value)
        else:
            item[key] = value


def _look(text: str | None) -> Version | Unknown | None:
    if text is None:
        return None
    return Version.of(text) if text[0].isdigit() else Unknown(Trouble.UNREACHABLE, text)


def _refused(here: Deployed, case: dict[str, Any]) -> Deployed:
    refusal = case.get("refused")
    return replace(here, refusal=Refusal(*refusal)) if refusal else here


def settle(seen: Seen) -> tuple[Seen, Plan | Outcome]:
    """The first answer that would change something: what is as wanted already is passed over, as the API server would be asked nothing."""
    for _ in range(20):
        answer = decide(seen)
        here = seen.deployed
        if not isinstance(answer, Ensure) or here is None:
            return seen, answer
        kind, name = answer.manifest["kind"], answer.manifest["metadata"]["name"]
        live = here.child(kind, name)
        if live is None or any(live.get(part) != answer.manifest.get(part) for part in ("spec", "data", "immutable")):
            return seen, answer
        seen = replace(seen, deployed=here.after(answer.step, kind, name, live))
    raise AssertionError("no end")


def told(seen: Seen, answer: Plan | Outcome) -> dict[str, Any]:
    """What a person would read of it."""
    match answer:
        case MakeEncryptionKey(key):
            return {"plan": "MakeEncryptionKey", "key": "given" if key is not None else "fresh"}
        case MakeApiKey(live):
            return {"plan": "MakeApiKey", "replaces": live is not None}
        case Ensure(step, manifest) | Remove(step, manifest):
            name = f"{manifest['kind']}/{manifest['metadata']['name']}"
            return {"plan": type(answer).__name__, "step": step, "object": name}
        case Done() | Waiting() | Stalled() | Failed():
            said = report(seen, answer)
            return {
                "outcome": type(answer).__name__,
                "after": getattr(answer, "after", None),
                "ready": [f"{item.status} {item.reason}: {item.message}" for item in said.conditions],
                "status": said.status,
                "events": [f"{item.type} {item.reason}: {item.message}" for item in said.events],
            }


@pytest.mark.parametrize("folder", folders.cases(CASES / "pocketid-instance" / "decide"))
def test_decide_and_report(folder: Path, update_cases: bool) -> None:
    """One answer; no key is in it."""
    got = folders.text(told(*settle(snapshot(folders.plain(folder / "given.yaml")))))
    assert [text for text in (KEY, API, "hunter2") if text in got] == []
    folders.compare(folder, {"answer.yaml": got}, update=update_cases)
