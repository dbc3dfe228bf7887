"""Which secret is the stored one, which may go, and when: one test for each behaviour of spec/pocketid.md 7.1, S."""

from __future__ import annotations

from datetime import timedelta

import pytest

from moorage.core.secret import SecretText
from moorage.pocketid.oidcclient import secrets as plans
from moorage.pocketid.oidcclient.secrets import Delete, Discard, Impossible, Made, Retired, Trigger
from moorage.pocketid.rest_types import MadeSecret

from .secret_model import NOW, row

VALUE = SecretText("abcd-the-stored-value")
HOUR = timedelta(hours=1)


def resolved(*rows: plans.ClientSecret, value: SecretText = VALUE) -> str | None:
    found = plans.resolve(value, rows, NOW)
    return found.id if found else None


@pytest.mark.case("PIDS1")
def test_one_prefix_match_wins_over_secrets_without_prefix() -> None:
    assert resolved(row("old", ""), row("mine", "abcd"), row("other", "wxyz")) == "mine"


@pytest.mark.case("PIDS2")
def test_two_prefix_matches_are_unknown() -> None:
    assert resolved(row("a", "abcd"), row("b", "abcd"), row("old", "")) is None


@pytest.mark.case("PIDS3")
def test_a_lone_secret_without_prefix_is_claimed_and_two_are_not() -> None:
    assert resolved(row("old", ""), row("other", "wxyz")) == "old"
    assert resolved(row("old", ""), row("older", "")) is None


@pytest.mark.case("PIDS4")
def test_expired_secrets_never_match() -> None:
    assert resolved(row("gone", "abcd", expired=True)) is None
    assert resolved(row("gone", "", expired=True)) is None
    assert resolved(row("gone", "abcd", expired=True), row("mine", "abcd")) == "mine"


@pytest.mark.case("PIDS5")
@pytest.mark.parametrize("text", ["abcd", "abc", "a"])
def test_a_value_of_at_most_four_characters_matches_no_prefix(text: str) -> None:
    assert resolved(row("a", text), value=SecretText(text)) is None
    assert resolved(row("a", text), row("old", ""), value=SecretText(text)) == "old"


@pytest.mark.case("PIDX11")
@pytest.mark.parametrize("text", ["abcd-the-stored-value\n", "abcd\ufffd\ufffd", "", "abcdé-value"])
def test_garbage_that_no_server_would_take_is_held_by_nothing(text: str) -> None:
    assert not plans.present(SecretText(text), [row("a", "abcd"), row("old", "")], NOW)


@pytest.mark.case("PIDS17")
def test_ambiguity_is_presence() -> None:
    assert plans.present(VALUE, [row("a", "abcd"), row("b", "abcd")], NOW)


@pytest.mark.case("PIDS6", "PIDS8")
def test_a_mint_that_begins_like_a_living_secret_is_discarded() -> None:
    made = Made(MadeSecret(row("new", "abcd", 0), VALUE), Trigger.INITIAL)
    assert plans.mint_plan(made, [row("a", "abcd"), row("new", "abcd", 0)], NOW) == Discard("new")
    assert plans.mint_plan(made, [row("a", "abcd", expired=True), row("new", "abcd", 0)], NOW) is None
    assert plans.mint_plan(made, [row("old", ""), row("new", "abcd", 0)], NOW) is None


@pytest.mark.case("PIDS9", "PIDS11")
def test_retirement_takes_all_but_the_current_one_oldest_first() -> None:
    current = row("mine", "abcd", 10)
    held = [row("foreign", "zzzz", 1), current, row("old", "", 300), row("gone", "abcd", 200, expired=True)]
    assert plans.retirement_plan(current, held, timedelta(0), NOW) == Delete(
        ("old", "gone", "foreign"), Retired.SUPERSEDED
    )
    assert plans.retirement_plan(current, [current], timedelta(0), NOW) is None


@pytest.mark.case("PIDS10")
@pytest.mark.parametrize(("late", "retires"), [(timedelta(microseconds=-1), False), (timedelta(0), True), (HOUR, True)])
def test_the_overlap_counts_from_the_creation_of_the_current_one(late: timedelta, retires: bool) -> None:
    current = row("mine", "abcd", 0)
    plan = plans.retirement_plan(current, [row("old", "wxyz", 9999), current], HOUR, NOW + HOUR + late)
    assert (plan is not None) == retires


@pytest.mark.case("PIDS10", "PIDS13")
def test_each_overlap_counts_from_its_own_replacement() -> None:
    """With rotations as often as the overlap is long, the second last is due when the last one is made."""
    held = [row("first", "aaaa", 125), row("second", "bbbb", 62), row("third", "cccc", 2)]
    assert plans.retirement_plan(held[2], held, HOUR, NOW) == Delete(("first",), Retired.SUPERSEDED)
    assert plans.retirement_plan(held[2], held, HOUR, NOW + HOUR) == Delete(("first", "second"), Retired.SUPERSEDED)


@pytest.mark.case("PIDS9")
def test_what_is_younger_than_the_current_one_was_never_stored_and_has_no_overlap() -> None:
    held = [row("mine", "aaaa", 100), row("stray", "bbbb", -1)]
    assert plans.retirement_plan(held[0], held, HOUR, NOW) == Delete(("stray",), Retired.SUPERSEDED)


@pytest.mark.case("PIDX10")
def test_without_overlap_the_old_one_goes_at_once_whatever_the_clocks_say() -> None:
    """The Date header has whole seconds, createdAt has nanoseconds; a mint may seem to lie ahead."""
    current = row("mine", "abcd", -5)
    assert plans.retirement_plan(current, [row("old", "wxyz"), current], timedelta(0), NOW) is not None


@pytest.mark.case("PIDS13")
def test_at_the_cap_the_oldest_that_cannot_hold_the_stored_value_goes_and_expired_ones_count() -> None:
    held = [row(f"x{n}", "wxyz", 100 - n) for n in range(17)] + [row("mine", "abcd", 900), row("old", "", 800)]
    assert plans.cap_plan(held, VALUE, NOW) is None
    held.append(row("gone", "abcd", 700, expired=True))
    assert plans.cap_plan(held, VALUE, NOW) == Delete(("gone",), Retired.CAP)


@pytest.mark.case("PIDS14")
def test_at_the_cap_with_every_secret_possible_nothing_is_deleted() -> None:
    plan = plans.cap_plan([row(f"x{n}", "abcd") for n in range(20)], VALUE, NOW)
    assert isinstance(plan, Impossible)
    assert "abcd" not in plan.message


@pytest.mark.case("PIDS15")
def test_a_declared_push_may_evict_possible_holders_after_all_others() -> None:
    held = [row(f"x{n}", "abcd", 100 + n) for n in range(20)]
    assert plans.cap_plan(held, VALUE, NOW, declared=VALUE) == Delete(("x19",), Retired.CAP)
    held[3] = row("other", "wxyz", 1)
    assert plans.cap_plan(held, VALUE, NOW, declared=VALUE) == Delete(("other",), Retired.CAP)


@pytest.mark.case("PIDS15")
def test_a_declared_push_evicts_what_could_be_stored_or_is_known_last_however_old_it_is() -> None:
    """The credentials Secret could not be written for a while: what stands in it goes on working."""
    declared = SecretText("wxyz-declared-value")
    held = [row("stored", "abcd", 900), row("known", "efgh", 800), *(row(f"x{n}", "wxyz", 100 + n) for n in range(18))]
    assert plans.cap_plan(held, VALUE, NOW, declared=declared, known="known") == Delete(("x17",), Retired.CAP)


@pytest.mark.case("PIDD4")
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0123456789abcdef", None),
        ("                ", None),
        ("0123456789abcde", "fewer than 16"),
        ("0123456789abcdef\n", "printable ASCII"),
        ("0123456789abcdéf", "printable ASCII"),
        ("0123456789abcde\x7f", "printable ASCII"),
    ],
)
def test_a_declared_value_is_sixteen_printable_characters(text: str, fault: str | None) -> None:
    found = plans.declared_fault(SecretText(text), "source/key", "source", "own")
    assert (found is None) if fault is None else (fault in str(found))
    assert text not in str(found)


@pytest.mark.case("PIDD5")
def test_a_declared_value_never_comes_from_the_credentials_secret() -> None:
    found = plans.declared_fault(SecretText("0123456789abcdef"), "own/client_secret", "own", "own")
    assert "refer to another Secret" in str(found)


def test_a_declared_value_that_is_missing_is_an_error() -> None:
    assert "does not exist" in str(plans.declared_fault(None, "source/key", "source", "own"))


@pytest.mark.case("PIDD1")
def test_a_revision_is_named_by_secret_key_and_version() -> None:
    assert plans.source_version("source", "key", "42") == "source/key@42"


@pytest.mark.case("P2")
def test_no_plan_prints_a_value_or_the_first_characters_of_one() -> None:
    made = Made(MadeSecret(row("new", "abcd"), VALUE), Trigger.INITIAL)
    push = plans.Push(VALUE)
    shown = repr((made, push, plans.Store(VALUE, Trigger.DRIFT), row("a", "abcd"), made.made))
    assert "abcd" not in shown
    assert "stored-value" not in shown
