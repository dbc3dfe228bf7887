"""Conditions are merged as Kubernetes users expect."""

from __future__ import annotations

from moorage.core.conditions import aggregate, false, find, from_wire, merge, true

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_a_status_that_stays_keeps_its_transition_time():
    stored = merge((), (false("DomainReady", "A"),), generation=1, now=THEN)
    merged = merge(stored, (false("DomainReady", "B", "other words"),), generation=2, now=NOW)
    assert (merged[0].last_transition_time, merged[0].reason, merged[0].observed_generation) == (THEN, "B", 2)


def test_a_status_that_flips_gets_the_present_time():
    stored = merge((), (false("DomainReady", "A"),), generation=1, now=THEN)
    assert merge(stored, (true("DomainReady", "B"),), generation=1, now=NOW)[0].last_transition_time == NOW


def test_order_is_kept_and_unwanted_types_are_dropped():
    stored = merge((), (true("A", "x"), true("B", "x"), true("C", "x")), generation=1, now=THEN)
    merged = merge(stored, (true("D", "x"), true("C", "x"), true("A", "x")), generation=1, now=NOW)
    assert [item.type for item in merged] == ["A", "C", "D"]


def test_merging_what_is_stored_changes_nothing():
    stored = merge((), (true("A", "x", "m"), false("B", "y")), generation=3, now=THEN)
    assert merge(stored, stored, generation=4, now=NOW) == stored


def test_the_wire_form_reads_back_as_it_was():
    stored = merge((), (true("A", "x", "m"),), generation=3, now=THEN)
    assert from_wire([item.to_wire() for item in stored]) == stored


def test_ready_names_the_first_cause():
    ready = aggregate((true("A", "x"), false("B", "Broken", "the disk is full")), ("A", "B", "C"))
    assert (ready.status, ready.reason, ready.message) == ("False", "NotAllReady", "B: Broken: the disk is full")


def test_ready_needs_every_required_condition_to_be_present():
    assert aggregate((true("A", "x"),), ("A", "B")).message == "B is not known yet"
    assert aggregate((true("A", "x"), true("B", "x")), ("A", "B")).is_true
    assert find((), "A") is None
