"""Names of exported manifests: valid, unlike each other, the same whatever else is there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.cli.pocketid_names import LONGEST, names_of, plain
from moorage.core.names import dns1123_label, dns1123_subdomain

CALLED = st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=300), max_size=12)
TAKEN = st.sets(st.sampled_from(["client", "a", "wiki", "a-b"]))


@given(CALLED, TAKEN)
def test_names_are_valid_and_no_two_are_alike(called: dict[str, str], taken: set[str]) -> None:
    """Also with what is appended for the credentials Secret."""
    found = names_of(called, taken, "client")
    assert found.keys() == called.keys()
    assert len(set(found.values()) | taken) == len(called) + len(taken)
    assert [name for name in found.values() if dns1123_label(name)] == []
    assert [name for name in found.values() if dns1123_subdomain(f"{name}-oidc-credentials")] == []


@given(CALLED, st.text(min_size=1), st.text())
def test_who_was_alone_keeps_the_name_unless_another_comes_that_shares_it(
    called: dict[str, str], id: str, text: str
) -> None:
    """One more object renames nobody else."""
    before, after = names_of(called, (), "client"), names_of({**called, id: text}, (), "client")
    shared = plain(text, "client")
    others = called.keys() - {id}
    assert all(before[item] == after[item] for item in others if not before[item].startswith(shared))


def test_letters_lose_their_marks_and_the_rest_becomes_dashes() -> None:
    """As a person would write it."""
    assert plain("Café  Größe_2", "client") == "cafe-gro-e-2".replace("gro-e", "groe")
    assert plain("  --  ", "client") == "client"
    assert plain("x" * 80, "client") == "x" * LONGEST
