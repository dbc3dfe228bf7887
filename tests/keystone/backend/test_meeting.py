"""Which siblings admission looks at: an index brings together those that a rule may speak of, and no rule misses another."""

from __future__ import annotations

import itertools
from typing import Any

from moorage.keystone.backend import siblings
from moorage.keystone.backend.types import KIND

from . import folders
from .test_admission import complete


def declared() -> list[dict[str, Any]]:
    """All backends of the corpus that their schema admits, each with a name of its own."""
    found = []
    for number, folder in enumerate(folders.cases("admission")):
        case = folders.given(folder.values[0])
        for place, obj in enumerate((case["object"], *case.get("siblings", ()))):
            whole = complete(obj)
            if KIND.structural.validate(whole, None).ok:
                found.append({**whole, "metadata": {"name": f"b{number}-{place}", "namespace": "identity"}})
    return found


def test_whoever_is_complained_of_is_met() -> None:
    """Every pair of the corpus: what is said of two backends is said of two that share a value."""
    backends = declared()
    known = [(obj, KIND.parse(obj), frozenset(siblings.meets(obj))) for obj in backends]
    spoken = 0
    for (mine, parsed, met), (theirs, _, others_met) in itertools.permutations(known, 2):
        if list(siblings.check(parsed, siblings.others(mine, [theirs]))):
            spoken += 1
            assert met & others_met, (mine, theirs)
    assert spoken > len(backends)


def test_directories_of_other_domains_are_not_looked_at() -> None:
    """Thousands of LDAP backends of one Keystone cost a review nothing; letter case of a domain does not part them."""
    ldap = complete(folders.given(folders.ROOT / "admission" / "09-immutable-base")["object"])

    def named(domain: str) -> frozenset[str]:
        return frozenset(siblings.meets({**ldap, "spec": {**ldap["spec"], "domain": {"name": domain}}}))

    assert not named("one") & named("two")
    assert named("One") == named("oNE")
