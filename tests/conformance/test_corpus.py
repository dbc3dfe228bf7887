"""The corpus of 44 in the order of spec/keystone.md 5.1, one after the other onto one server, as a person would apply the files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance import verdicts
from tests.conformance.play import Target
from tests.conformance.verdicts import ROOT, Court
from tests.keystone.folders import plain

from moorage.keystone import ADMISSIONS
from moorage.keystone.backend.types import KIND
from moorage.runtime.offline import lint

ACCEPTED = {9, 18, 31}
NUMBERS = [*range(18), *range(19, 26), 18, *range(26, 44)]
"""18 comes after 19 to 25, 29 and 30 after 28, 31 before 32 to 43."""


def corpus() -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Number, asserted words, object, in order."""
    for number in NUMBERS:
        (folder,) = (ROOT / "keystone-backend" / "admission").glob(f"{number:02}-*")
        given = plain(folder / "given.yaml")
        yield number, given["asserts"], given["object"]


def test_files_are_admitted_and_refused_without_a_server() -> None:
    """What was admitted is the sibling of what comes later; three are valid, 41 are refused with the asserted words."""
    result = lint([(f"{number:02}", 1, obj) for number, _, obj in corpus()], (), ADMISSIONS)
    for number, words, _ in corpus():
        errors = [item.message for item in result.findings if item.file == f"{number:02}" and item.severity == "error"]
        assert bool(errors) == (number not in ACCEPTED), (number, errors)
        assert any(words in message for message in errors) or not words, (number, errors)


@pytest.fixture
def our_court(ours: Target) -> Iterator[Court]:
    with verdicts.court(ours) as session:
        yield session


def test_files_are_admitted_and_refused_by_the_embedded_server(our_court: Court) -> None:
    """The same, applied with all webhooks at work."""
    for number, words, obj in corpus():
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        our_court.ask(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        path = KIND.resource.path(namespace)
        stored = our_court.ask("GET", f"{path}/{name}")
        if stored.status == 200:
            version = {"resourceVersion": stored.body["metadata"]["resourceVersion"]}
            answer = our_court.ask("PUT", f"{path}/{name}", {**obj, "metadata": obj["metadata"] | version})
        else:
            answer = our_court.ask("POST", path, obj)
        assert (answer.status < 300) == (number in ACCEPTED), (number, answer.text)
        assert answer.status < 300 or words in answer.body["message"], (number, answer.text)
    our_court.must("DELETE", KIND.resource.path(namespace))
