"""Decisions of the Deployment controller: sizes, revisions, history, status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.meta import JsonObject
from moorage.node.controllers import progress, rollout, scaling
from moorage.node.controllers.rollout import Sets

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def deployment(replicas: int = 3, **spec: Any) -> JsonObject:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:2"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "uid": "u", "generation": 1, "annotations": {"note": "x"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }


def replica_set(
    name: str, size: int, available: int | None = None, revision: int = 1, image: str = "i:1"
) -> JsonObject:
    up = size if available is None else available
    template = {
        "metadata": {"labels": {"app": "a", "pod-template-hash": name}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "n",
            "creationTimestamp": f"2026-11-29T00:00:{revision:02d}Z",
            "annotations": {rollout.REVISION: str(revision)},
        },
        "spec": {"replicas": size, "template": template},
        "status": {"replicas": size, "readyReplicas": up, "availableReplicas": up},
    }


def test_the_set_of_the_present_template_is_found_whatever_its_hash_label() -> None:
    new, old = replica_set("new", 1, image="i:2"), replica_set("old", 3)
    assert rollout.sort_out(deployment(), [new, old]) == Sets(new, (old,))


def test_equal_templates_give_equal_names() -> None:
    first = rollout.new_replica_set(deployment(), Sets(None, ()))
    assert first["metadata"]["name"] == rollout.new_replica_set(deployment(), Sets(None, ()))["metadata"]["name"]
    label = first["metadata"]["labels"]["pod-template-hash"]
    assert first["spec"]["selector"]["matchLabels"] == {"app": "a", "pod-template-hash": label}
    assert first["metadata"]["annotations"]["note"] == "x"


def test_the_first_set_starts_at_full_size() -> None:
    assert rollout.new_replica_set(deployment(3), Sets(None, ()))["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("surge", "unavailable", "bounds"),
    [("25%", "25%", (1, 0)), (1, 0, (1, 0)), ("100%", 0, (3, 0)), (0, 0, (0, 1)), (0, "50%", (0, 1)), (0, 9, (0, 3))],
)
def test_bounds_round_surge_up_and_unavailable_down(surge: Any, unavailable: Any, bounds: tuple[int, int]) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    assert rollout.bounds(deployment(3, strategy=strategy)) == bounds


def test_a_rolling_update_goes_one_step_at_a_time() -> None:
    old, new = replica_set("old", 3), replica_set("new", 0, image="i:2")
    assert rollout.new_size(deployment(), Sets(new, (old,)), ()) == 1
    assert rollout.old_sizes(deployment(), Sets(new, (old,))) == []
    half = replica_set("new", 1, image="i:2")
    assert rollout.old_sizes(deployment(), Sets(half, (old,))) == [(old, 2)]


def test_pods_that_serve_nobody_go_first() -> None:
    broken = replica_set("broken", 1, available=0, revision=2)
    good = replica_set("good", 3, revision=1)
    new = replica_set("new", 0, image="i:2", revision=3)
    assert rollout.old_sizes(deployment(), Sets(new, (good, broken))) == [(broken, 0)]


def test_recreate_waits_for_the_last_old_pod() -> None:
    wanted = deployment(strategy={"type": "Recreate"})
    old, new = replica_set("old", 3), replica_set("new", 0, image="i:2")
    assert rollout.old_sizes(wanted, Sets(new, (old,))) == [(old, 0)]
    empty = replica_set("old", 0)
    ending = {"metadata": {"deletionTimestamp": "2026-11-29T12:00:00Z"}, "status": {"phase": "Running"}}
    assert rollout.new_size(wanted, Sets(new, (empty,)), [ending]) == 0
    assert rollout.new_size(wanted, Sets(new, (empty,)), []) == 3


def test_a_rollback_gets_a_new_revision() -> None:
    back, newest = replica_set("back", 0, revision=1, image="i:2"), replica_set("newest", 3, revision=5)
    assert rollout.next_revision(Sets(back, (newest,))) == 6
    assert rollout.next_revision(Sets(replica_set("n", 3, revision=7), (newest,))) == 7


def test_history_beyond_the_limit_goes_lowest_revision_first() -> None:
    old = tuple(replica_set(f"r{number}", 0, revision=number) for number in (1, 2, 3))
    new = replica_set("new", 3, image="i:2", revision=4)
    gone = rollout.superfluous(deployment(revisionHistoryLimit=1), Sets(new, old))
    assert [item["metadata"]["name"] for item in gone] == ["r1", "r2"]


@given(
    replicas=st.integers(1, 8),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    lag=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_any_rollout_ends_within_its_bounds(replicas: int, surge: int, unavailable: int, lag: list[bool]) -> None:
    """However slowly new pods become available, sizes never leave the bounds, and the rollout ends."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    wanted = deployment(replicas, strategy=strategy)
    most, down = rollout.bounds(wanted)
    old, new = replicas, 0
    ready = 0
    for slow in [*lag, *[False] * 60]:
        sets = Sets(replica_set("new", new, ready, 2, "i:2"), (replica_set("old", old),))
        new = rollout.new_size(wanted, sets, ())
        sets = Sets(replica_set("new", new, ready, 2, "i:2"), (replica_set("old", old),))
        for _, smaller in rollout.old_sizes(wanted, sets):
            old = smaller
        assert old + new <= replicas + most
        assert old + ready >= replicas - down
        ready = ready if slow else new
    assert (old, new) == (0, replicas)


def test_status_counts_and_says_minimum_availability() -> None:
    new = replica_set("new", 3, available=2, image="i:2")
    status = progress.status_of(deployment(), Sets(new, ()), NOW)
    assert (
        status["replicas"],
        status["updatedReplicas"],
        status["availableReplicas"],
        status["unavailableReplicas"],
    ) == (3, 3, 2, 1)
    assert [(item["type"], item["status"]) for item in status["conditions"]] == [
        ("Available", "False"),
        ("Progressing", "True"),
    ]


def test_a_rollout_that_stands_still_times_out_and_a_step_restarts_its_clock() -> None:
    wanted = deployment(progressDeadlineSeconds=60)
    stuck = Sets(replica_set("new", 3, available=1, image="i:2"), ())
    wanted["status"] = progress.status_of(wanted, stuck, NOW)
    late = NOW + timedelta(seconds=61)
    timed_out = progress.status_of(wanted, stuck, late)["conditions"][1]
    assert (timed_out["status"], timed_out["reason"]) == ("False", "ProgressDeadlineExceeded")
    step = Sets(replica_set("new", 3, available=2, image="i:2"), ())
    wanted["status"] = progress.status_of(wanted, step, NOW + timedelta(seconds=59))
    assert progress.status_of(wanted, step, late)["conditions"][1]["reason"] == "ReplicaSetUpdated"


def test_a_complete_rollout_never_times_out() -> None:
    wanted, done = deployment(), Sets(replica_set("new", 3, image="i:2"), ())
    wanted["status"] = progress.status_of(wanted, done, NOW)
    assert wanted["status"]["conditions"][1]["reason"] == "NewReplicaSetAvailable"
    assert progress.time_left(wanted, NOW) is None
    lost = Sets(replica_set("new", 3, available=1, image="i:2"), ())
    later = progress.status_of(wanted, lost, NOW + timedelta(days=1))
    assert later["conditions"][1]["reason"] == "NewReplicaSetAvailable"


def noted(found: JsonObject, replicas: int, surge: int) -> JsonObject:
    """The same ReplicaSet, sized when the Deployment wanted so many."""
    found["metadata"]["annotations"] |= rollout.size_notes(deployment(replicas, **rolling(surge)))
    return found


def rolling(surge: int, unavailable: int = 2) -> dict[str, Any]:
    return {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


def sized(found: list[tuple[JsonObject, int]]) -> dict[str, int]:
    return {item["metadata"]["name"]: size for item, size in found}


@pytest.mark.parametrize(
    ("wanted", "expected"), [(15, {"old": 11, "new": 7}), (5, {"old": 5, "new": 3}), (0, {"old": 0, "new": 0})]
)
def test_a_scaled_rollout_shares_the_difference_by_size_and_the_largest_takes_the_rest(
    wanted: int, expected: dict[str, int]
) -> None:
    """10 replicas and 3 more during a rollout: 8 of the old, 5 of the new ReplicaSet; the first row is the example of the documentation."""
    sets = Sets(noted(replica_set("new", 5, 0), 10, 3), (noted(replica_set("old", 8), 10, 3),))
    scaled = deployment(wanted, **rolling(3))
    assert scaling.was_scaled(scaled, sets)
    assert sized(scaling.sizes(scaled, sets)) == expected


def test_what_was_not_scaled_is_left_to_the_rollout() -> None:
    sets = Sets(noted(replica_set("new", 5, 0), 10, 3), (noted(replica_set("old", 8), 10, 3),))
    assert not scaling.was_scaled(deployment(10, **rolling(3)), sets)
    assert not scaling.was_scaled(deployment(10), Sets(None, ()))


def test_the_only_replica_set_with_pods_gets_all_even_before_there_is_a_new_one() -> None:
    """A paused Deployment is scaled, too."""
    sets = Sets(None, (noted(replica_set("old", 3), 3, 1), replica_set("older", 0)))
    assert sized(scaling.sizes(deployment(7), sets)) == {"old": 7}


def test_a_recreate_rollout_under_way_shares_nothing_out() -> None:
    sets = Sets(noted(replica_set("new", 2), 3, 1), (noted(replica_set("old", 1), 3, 1),))
    assert scaling.sizes(deployment(7, strategy={"type": "Recreate"}), sets) == []


@given(st.lists(st.integers(1, 20), min_size=2, max_size=5), st.integers(0, 40), st.integers(0, 5))
def test_the_shares_always_add_up(parts: list[int], wanted: int, surge: int) -> None:
    """Whatever the rounding: all pods that are allowed, none more, none fewer, and no negative size."""
    before = max(sum(parts) - surge, 1)
    items = [noted(replica_set(f"s{at}", part, 0, revision=at), before, surge) for at, part in enumerate(parts)]
    scaled = deployment(wanted, **rolling(surge))
    found = sized(scaling.sizes(scaled, Sets(None, tuple(items))))
    assert min(found.values()) >= 0
    assert sum(found.values()) == (wanted + surge if wanted else 0)
