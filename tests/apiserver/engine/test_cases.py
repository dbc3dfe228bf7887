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
        kinds = Kinds()
        stored: dict[str, Any] = {}
        for number, step in enumerate(json.loads(file.read_text())):
            where = location(step["do"].split(" ", 1)[1])[0]
            answer = step["answer"]
            created = step["do"].startswith("POST")
            old = None if created else stored.get(where)
            if (
                step.get("check", True)
                and not where.endswith("/scale")
                and not step["do"].startswith(("GET", "TABLE", "DELETE"))
            ):
                found.append(pytest.param(kinds, step, old, id=f"{file.stem}-{number}"))
            if step["code"] < 300 and "metadata" in answer and answer.get("kind") != "Scale":
                key = f"{where}/{answer['metadata']['name']}" if created else where
                stored[key] = answer
                if answer.get("kind") == "CustomResourceDefinition":
                    kinds.crds[answer["spec"]["group"], answer["spec"]["names"]["plural"]] = answer
    return found


def shown(causes: Any) -> list[tuple[str, str, str]]:
    """Causes without values of objects, which Kubernetes prints as Go structs."""
    rows = ((cause["field"], cause["reason"], cause["message"]) for cause in causes)
    return sorted(
        (field, reason, "" if "{" in message or "uid-" in message else message) for field, reason, message in rows
    )


def same_refusal(refused: Refused, step: Any) -> bool:
    """Validation: the same causes; everything else: the same sentence."""
    answer = step["answer"]
    if refused.causes:
        return shown(refused.causes) == shown(answer["details"]["causes"])
    return bool(str(refused) == step.get("ours", answer["message"]))


def outcome(kinds: Kinds, step: Any, old: Any) -> Any:
    """The object that the engine leaves, or its refusal."""
    try:
        return Engine(kinds, step, old).run()
    except Refused as refused:
        return refused


@pytest.mark.parametrize(("kinds", "step", "old"), steps())
def test_a_step_answers_as_kubernetes_did(kinds: Kinds, step: Any, old: Any) -> None:
    got = outcome(kinds, step, old)
    if step.get("differs"):
        assert (step["code"] >= 400) != isinstance(got, Refused), "a declared difference is none any more"
    elif isinstance(got, Refused):
        assert step["code"] >= 400, got
        assert same_refusal(got, step), (str(got), got.causes)
    else:
        assert step["code"] < 300, step["answer"]["message"]
        assert comparable(got) == comparable(step["answer"])
