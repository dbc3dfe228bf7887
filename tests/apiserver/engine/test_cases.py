"""Each recorded step, given Kubernetes' stored object, leaves what Kubernetes left or refuses in its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .pipeline import Engine, Kinds, Refused, comparable, location

CASES = Path(__file__).parent / "cases"


def steps() -> list[Any]:
    found = []
    for file in sorted(CASES.glob("*.json")):
        kinds, stored = Kinds(), {}
        for number, step in enumerate(json.loads(file.read_text())):
            where = location(step["do"].split(" ", 1)[1])[0]
            answer = step["answer"]
            created = step["do"].startswith("POST")
            old = None if created else stored.get(where)
            if step.get("check", True) and not where.endswith("/scale") and not step["do"].startswith("GET"):
                found.append(pytest.param(kinds, step, old, id=f"{file.stem}-{number}"))
            if step["code"] < 300 and "metadata" in answer and answer.get("kind") != "Scale":
                key = f"{where}/{answer['metadata']['name']}" if created else where
                stored[key] = answer
                if answer.get("kind") == "CustomResourceDefinition":
                    kinds.crds[answer["spec"]["group"], answer["spec"]["names"]["plural"]] = answer
    return found


@pytest.mark.parametrize(("kinds", "step", "old"), steps())
def test_a_step_answers_as_kubernetes_did(kinds: Kinds, step: Any, old: Any) -> None:
    want = step["answer"]
    try:
        got = Engine(kinds, step, old).run()
    except Refused as refused:
        assert step["code"] >= 400, refused
        assert str(refused) == step.get("ours", want["message"])
        return
    assert step["code"] < 300, want["message"]
    assert comparable(got, step.get("ignore", ())) == comparable(want, step.get("ignore", ()))
