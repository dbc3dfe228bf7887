"""Which siblings admission looks at: an index brings together those that a rule may speak of, and no rule misses another."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any

import pytest
from tests.keystone import folders
from tests.keystone.folders import CASES

from moorage.core.meta import JsonObject
from moorage.schema import Review

from .test_admission import BY_KIND, NOW, PLACES, complete

ROOMS = {place: place.removeprefix("pocketid-").replace("client", "oidcclient") for place in PLACES}


def declared(place: str) -> list[JsonObject]:
    """All objects of the kind's corpus that their schema admits, in one namespace; as they are called there, and once more by names of their own."""
    admission, found = BY_KIND[PLACES[place]], []
    for number, folder in enumerate(folders.cases(CASES / place / "admission")):
        case = folders.plain(folder.values[0] / "given.yaml")
        for at, obj in enumerate((case["object"], *case.get("siblings", ()))):
            whole = complete(admission, obj)
            if admission.kind.structural.validate(whole, None).ok:
                meta = {"name": whole["metadata"]["name"], "namespace": "apps"}
                found.append({**whole, "metadata": meta})
                found.append({**whole, "metadata": {**meta, "name": f"x{number}-{at}"}})
    return found


@pytest.mark.parametrize("place", PLACES)
def test_whoever_is_complained_of_is_met(place: str) -> None:
    """Every pair of the corpus: what is said of two objects is said of two that share a value."""
    admission = BY_KIND[PLACES[place]]
    rules: Any = import_module(f"moorage.pocketid.{ROOMS[place]}.admission")
    meets = admission.meets
    assert meets is not None
    known = [(obj, admission.kind.parse(obj), frozenset(meets(obj))) for obj in declared(place)]
    spoken = 0
    for (mine, parsed, met), (theirs, _, others_met) in itertools.permutations(known, 2):
        if list(rules.siblings(parsed, Review("CREATE", mine, None, (theirs,), NOW))):
            spoken += 1
            assert met & others_met, (mine, theirs)
    assert spoken


def test_clients_of_other_names_are_not_looked_at() -> None:
    """Thousands of clients of a namespace cost a review nothing."""
    meets = BY_KIND["PocketIDOIDCClient"].meets
    assert meets is not None

    def of(called: str, **spec: str) -> frozenset[str]:
        return frozenset(meets({"metadata": {"name": called}, "spec": spec}))

    assert not of("one") & of("two")
    assert of("one", name="Wiki") & of("two", name="Wiki")
    assert of("one", clientID="wiki") & of("two", clientID="wiki")
