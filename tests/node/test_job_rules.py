"""Decisions of the Job and CronJob controllers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject
from moorage.node.controllers import cron_rules
from moorage.node.controllers.job_rules import finished, judge

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def job(**spec: Any) -> JsonObject:
    full = {"completions": 1, "parallelism": 1, "backoffLimit": 2, "template": {"spec": {}}, **spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-29T11:00:00Z"},
        "spec": full,
    }


def pod(phase: str, ago: float = 0, **more: Any) -> JsonObject:
    ended = (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {
        "phase": phase,
        "containerStatuses": [{"state": {"terminated": {"finishedAt": ended}}, "restartCount": 0}],
    }
    return {"metadata": {"name": phase, **more}, "spec": {"restartPolicy": "Never"}, "status": status}


def ended(verdict_status: JsonObject) -> tuple[str, str]:
    found = finished({"status": verdict_status})
    assert found is not None
    return found["type"], found["reason"]


def test_a_new_job_makes_its_first_pods() -> None:
    assert judge(job(completions=5, parallelism=3), [], NOW).make == 3


def test_no_more_pods_than_completions_are_missing() -> None:
    pods = [pod("Succeeded"), pod("Succeeded"), pod("Running")]
    assert judge(job(completions=4, parallelism=3), pods, NOW).make == 1


def test_enough_successes_complete_the_job() -> None:
    verdict = judge(job(completions=2), [pod("Succeeded"), pod("Succeeded")], NOW)
    assert ended(verdict.status) == ("Complete", "CompletionsReached")
    assert verdict.status["succeeded"] == 2
    assert verdict.status["completionTime"] == "2026-11-29T12:00:00Z"


def test_without_completions_one_success_is_enough_once_all_have_ended() -> None:
    spec = {"completions": None, "parallelism": 2}
    assert judge(job(**spec), [pod("Succeeded"), pod("Running")], NOW).make == 0
    assert ended(judge(job(**spec), [pod("Succeeded"), pod("Failed")], NOW).status)[0] == "Complete"


def test_failures_wait_ever_longer_before_the_next_pod() -> None:
    assert judge(job(), [pod("Failed", ago=9)], NOW).make == 0
    assert judge(job(), [pod("Failed", ago=11)], NOW).make == 1
    second = judge(job(), [pod("Failed", ago=11), pod("Failed", ago=11)], NOW)
    assert (second.make, second.after) == (0, pytest.approx(9))


def test_one_failure_too_many_fails_the_job_and_ends_its_pods() -> None:
    running = pod("Running")
    verdict = judge(job(backoffLimit=1, parallelism=2, completions=2), [pod("Failed"), pod("Failed"), running], NOW)
    assert ended(verdict.status) == ("Failed", "BackoffLimitExceeded")
    assert verdict.delete == (running,)
    assert "active" not in verdict.status


def test_restarts_in_place_count_as_failures() -> None:
    restless = pod("Running")
    restless["spec"]["restartPolicy"] = "OnFailure"
    restless["status"]["containerStatuses"][0]["restartCount"] = 3
    assert ended(judge(job(), [restless], NOW).status) == ("Failed", "BackoffLimitExceeded")


def test_what_was_counted_stays_counted_when_pods_are_deleted() -> None:
    known = job(completions=2, backoffLimit=3)
    known["status"] = {"succeeded": 1, "failed": 2}
    verdict = judge(known, [], NOW)
    assert (verdict.status["succeeded"], verdict.status["failed"], verdict.make) == (1, 2, 1)


def test_the_deadline_ends_a_job_whatever_runs() -> None:
    late = job(activeDeadlineSeconds=60)
    late["status"] = {"startTime": "2026-11-29T11:58:00Z"}
    assert ended(judge(late, [pod("Running")], NOW).status) == ("Failed", "DeadlineExceeded")


def test_a_suspended_job_keeps_no_pods_and_says_so() -> None:
    verdict = judge(job(suspend=True), [pod("Running")], NOW)
    assert len(verdict.delete) == 1
    assert verdict.status["conditions"][0]["type"] == "Suspended"
    assert "startTime" not in verdict.status


def test_an_ended_job_is_left_alone_until_its_ttl_is_over() -> None:
    done = job(ttlSecondsAfterFinished=30)
    done["status"] = judge(done, [pod("Succeeded")], NOW).status
    assert judge(done, [], NOW + timedelta(seconds=29)).delete_job is False
    assert judge(done, [], NOW + timedelta(seconds=30)).delete_job is True
    assert judge(done, [], NOW).status == done["status"]


def test_indexed_jobs_count_each_index_once() -> None:
    note = "batch.kubernetes.io/job-completion-index"
    pods = [pod("Succeeded", annotations={note: text}) for text in ("0", "0", "1", "3")]
    verdict = judge(job(completions=5, completionMode="Indexed", parallelism=9), pods, NOW)
    assert verdict.status["completedIndexes"] == "0-1,3"
    assert verdict.make == 2


def cron(schedule: str = "0 * * * *", **spec: Any) -> JsonObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-29T10:30:00Z"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {}}, **spec},
        "status": {},
    }


def run(name: str, type_: str = "", created: str = "2026-11-29T11:00:00Z") -> JsonObject:
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": created}] if type_ else []
    meta = {"name": name, "namespace": "n", "uid": name, "creationTimestamp": created}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {}, "status": {"conditions": conditions}}


def test_of_missed_times_only_the_last_is_served() -> None:
    verdict = cron_rules.judge(cron(), [], NOW + timedelta(minutes=5))
    assert verdict.run_for == NOW
    assert verdict.after == pytest.approx(55 * 60)


def test_a_time_that_was_served_is_not_served_again() -> None:
    served = cron()
    served["status"] = {"lastScheduleTime": "2026-11-29T12:00:00Z"}
    assert cron_rules.judge(served, [], NOW + timedelta(minutes=5)).run_for is None


def test_a_time_past_its_starting_deadline_is_missed() -> None:
    assert cron_rules.judge(cron(startingDeadlineSeconds=60), [], NOW + timedelta(minutes=5)).run_for is None
    assert cron_rules.judge(cron(startingDeadlineSeconds=600), [], NOW + timedelta(minutes=5)).run_for == NOW


def test_forbid_waits_for_the_running_job_and_replace_takes_its_place() -> None:
    running = run("r")
    assert cron_rules.judge(cron(concurrencyPolicy="Forbid"), [running], NOW).run_for is None
    verdict = cron_rules.judge(cron(concurrencyPolicy="Replace"), [running], NOW)
    assert (verdict.run_for, verdict.delete) == (NOW, (running,))
    assert cron_rules.judge(cron(), [running], NOW).status["active"][0]["name"] == "r"


def test_a_suspended_cron_job_starts_nothing() -> None:
    assert cron_rules.judge(cron(suspend=True), [], NOW).run_for is None


def test_history_limits_keep_the_newest() -> None:
    jobs = [run(f"s{hour}", "Complete", f"2026-11-29T0{hour}:00:00Z") for hour in range(5)]
    jobs += [run("f1", "Failed", "2026-11-29T01:00:00Z"), run("f2", "Failed", "2026-11-29T02:00:00Z")]
    gone = cron_rules.judge(cron(suspend=True), jobs, NOW).delete
    assert [item["metadata"]["name"] for item in gone] == ["s0", "s1", "f1"]


def test_the_schedule_is_read_in_its_time_zone() -> None:
    """Noon in Berlin is 11:00 UTC in winter."""
    verdict = cron_rules.judge(cron("0 12 * * *", timeZone="Europe/Berlin"), [], NOW)
    assert verdict.run_for == NOW - timedelta(hours=1)


def test_the_night_of_the_winter_change_runs_a_nightly_job_once() -> None:
    nightly = cron("30 2 * * *", timeZone="Europe/Berlin")
    nightly["metadata"]["creationTimestamp"] = "2026-10-24T12:00:00Z"
    runs = set()
    at = datetime(2026, 10, 24, 20, tzinfo=UTC)
    while at < datetime(2026, 10, 25, 12, tzinfo=UTC):
        if due := cron_rules.judge(nightly, [], at).run_for:
            runs.add(due)
            nightly["status"] = cron_rules.scheduled({}, due)
        at += timedelta(minutes=10)
    assert len(runs) == 1


def test_a_schedule_that_cannot_be_read_is_refused_with_its_text() -> None:
    with pytest.raises(InputError, match="every day"):
        cron_rules.judge(cron("every day"), [], NOW)


def test_one_scheduled_time_gives_one_job_name() -> None:
    assert cron_rules.job_name(cron(), NOW) == f"c-{int(NOW.timestamp()) // 60}"


def test_very_many_missed_times_are_said_and_the_last_is_served() -> None:
    verdict = cron_rules.judge(cron("* * * * *"), [], NOW + timedelta(days=1))
    assert verdict.run_for == NOW + timedelta(days=1)
    assert verdict.events[0].reason == "TooManyMissedTimes"
