"""What the status says when pods do not work: their own words, short, without secrets; and the check that speaks them."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from tests.keystone.service import given
from tests.keystone.service.machine import StubApi, ToStub

from moorage.core.meta import JsonObject
from moorage.keystone.service import database_check, jobs, manifests
from moorage.keystone.service.observe import ABSENT, probe
from moorage.keystone.service.plan import Probe
from moorage.keystone.service.troubles import API, troubles
from moorage.net.sessions import Sessions

ENDED = {
    "terminated": {"exitCode": 1, "message": "Traceback\n  of many lines\nAccess denied for 'keystone', not hunter2\n"}
}


def pod(created: str, job: str = "", **status: object) -> JsonObject:
    labels = {"batch.kubernetes.io/job-name": job} if job else {}
    return {"metadata": {"name": "p", "labels": labels, "creationTimestamp": created}, "status": status}


def test_the_last_line_of_the_newest_pod_speaks_for_each_job_and_for_the_api() -> None:
    """One line each, secrets blotted out; a container that waits in CrashLoopBackOff tells what it ended with."""
    restarting = {"lastState": ENDED, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}}
    found = troubles(
        [
            pod("2026-01-01", "keystone-db-sync", phase="Failed", containerStatuses=[{"state": {"terminated": {"exitCode": 2, "message": "old"}}}]),
            pod("2026-01-02", "keystone-db-sync", phase="Failed", initContainerStatuses=[{"state": ENDED}]),
            pod("2026-01-01", phase="Pending", initContainerStatuses=[restarting]),
        ],
        ["hunter2"],
    )  # fmt: skip
    line = "Access denied for 'keystone', not ***"
    assert found == {"keystone-db-sync": line, API: line}


def test_pods_that_work_or_wait_in_the_ordinary_way_say_nothing() -> None:
    """Ready, ended well, ending, starting; but a missing image and a mount of something missing are told."""
    ready = [{"type": "Ready", "status": "True"}]
    creating = {"state": {"waiting": {"reason": "ContainerCreating"}}}
    ending = pod("2026-01-01", phase="Failed", containerStatuses=[{"state": ENDED}])
    ending["metadata"]["deletionTimestamp"] = "2026-01-01"
    quiet = [
        pod("2026-01-01", conditions=ready, containerStatuses=[{"lastState": ENDED}]),
        pod("2026-01-01", phase="Succeeded", containerStatuses=[{"state": ENDED}]),
        pod("2026-01-01", phase="Pending", containerStatuses=[creating]),
        ending,
    ]
    assert troubles(quiet, []) == {}
    missing = {"state": {"waiting": {"reason": "ImageNotFound", "message": "no recipe"}}}
    assert troubles([pod("2026-01-01", containerStatuses=[missing])], []) == {API: "ImageNotFound: no recipe"}
    unmounted = {"state": {"waiting": {"reason": "ContainerCreating", "message": 'secret "tls" not found'}}}
    found = troubles([pod("2026-01-01", containerStatuses=[unmounted])], [])
    assert found == {API: 'FailedMount: secret "tls" not found'}


@pytest.mark.parametrize("kind", ["Failed", "Running"])
def test_a_job_that_fails_says_what_its_pod_said(kind: str) -> None:
    """While it is tried again, and once it has failed for good."""
    condition = {"type": "Failed", "status": "True", "lastTransitionTime": given.NOW}
    status = {"conditions": [condition]} if kind == "Failed" else {"failed": 1}
    case = {
        "keystone": {"metadata": {"name": "keystone"}, "spec": given.keystone().spec.to_wire()},
        "world": "settled",
        "live": [{"kind": "Job", "name": "keystone-db-sync", "merge": {"status": {"conditions": [], **status}}}],
    }
    seen = given.replace(given.snapshot(case), troubles={"keystone-db-sync": "database db:3306: Access denied"})
    job = manifests.db_sync(seen.keystone, seen.wanted.mounts.config)
    answer = jobs.job_step(seen, "Database", job, ("DBSyncInProgress", "DBSyncFailed", 30))
    assert isinstance(answer, jobs.Waiting)
    assert "database db:3306: Access denied" in answer.message
    assert answer.reason == ("DBSyncFailed" if kind == "Failed" else "DBSyncInProgress")


def _check(folder: Path, url: str, driver: str) -> subprocess.CompletedProcess[str]:
    """Run the check with a driver of the test's own: what it is asked, and how it answers, stand in `driver`."""
    impatient = "import time\ntime.sleep = lambda seconds: print('again')\n"
    for name in ("pymysql", "psycopg2"):
        (folder / f"{name}.py").write_text(impatient + driver)
    command = [sys.executable, *database_check.COMMAND[1:]]
    environment = {**os.environ, "PYTHONPATH": str(folder), "OS_DATABASE__CONNECTION": url}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_check_logs_in_with_the_decoded_account(tmp_path: Path) -> None:
    """Percent-encoded parts reach the driver as they were meant."""
    url = manifests.connection_url(
        given.keystone({"database": {"host": "::1", "database": "ks", "secretRef": {"name": "x"}}}), "k@y", "p:w/d %"
    )
    driver = "import types\ndef connect(**who):\n    print(who)\n    return types.SimpleNamespace(close=lambda: None)\n"
    done = _check(tmp_path, url, driver)
    assert done.returncode == 0, done.stderr
    for part in ("'host': '::1'", "'port': 3306", "'user': 'k@y'", "'password': 'p:w/d %'", "'database': 'ks'"):
        assert part in done.stdout


@pytest.mark.parametrize(
    ("scheme", "error", "attempts"),
    [
        ("mysql+pymysql", "(1045, \"Access denied for user 'keystone'\")", 0),
        ("mysql+pymysql", '(2003, "Can\'t connect")', 20),
        ("postgresql+psycopg2", '("FATAL:  password authentication failed\\n",)', 0),
        ("postgresql+psycopg2", '("connection refused",)', 20),
    ],
)
def test_a_refusal_is_said_at_once_and_a_dead_server_is_asked_for_a_while(
    tmp_path: Path, scheme: str, error: str, attempts: int
) -> None:
    """The last line names the server and holds no password."""
    driver = f"def connect(**who):\n    raise RuntimeError(*{error})\n"
    done = _check(tmp_path, f"{scheme}://keystone:hunter2@db.acme.test:3306/keystone", driver)
    assert (done.returncode, done.stdout.count("again")) == (1, attempts)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("database db.acme.test:3306: ")
    assert "hunter2" not in done.stderr


async def test_the_health_look_asks_a_question_that_needs_the_database() -> None:
    """A 404 that the database gave is health; a dropped connection is not, and the sentence names the database."""
    stub = StubApi()
    await stub.start()
    try:
        async with Sessions(resolver=ToStub(stub.port)) as http:
            world = types.SimpleNamespace(http=http, now=lambda: given.time(given.NOW))
            ask = Probe("http://keystone.openstack.svc.cluster.local:5000/v3", "MySQL at db:3306")
            assert (await probe(world, ask)).ok  # type: ignore[arg-type]
            stub.drops = ABSENT
            found = await probe(world, ask)  # type: ignore[arg-type]
    finally:
        await stub.stop()
    assert (found.ok, found.reason) == (False, "DatabaseUnavailable")
    assert found.message == "Keystone answers, but nothing that needs its database (MySQL at db:3306)"
