"""The operator as a whole, on the embedded API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.crashpoints import Fence
from tests.kube.tcpproxy import tcp_proxy

from moorage.apiserver.server import Server
from moorage.core.backoff import Backoff
from moorage.core.errors import EnvironmentError_
from moorage.core.meta import JsonObject, Key
from moorage.core.outcome import Done, Failed, Outcome, Waiting
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import Conflict, Invalid
from moorage.kube.resources import (
    CONFIG_MAPS,
    CORE_EVENTS,
    CRDS,
    LEASES,
    MUTATING_WEBHOOKS,
    SERVICES,
    VALIDATING_WEBHOOKS,
)
from moorage.kube.transport import Limits
from moorage.runtime.admission_server import Files
from moorage.runtime.controller import Pace
from moorage.runtime.health import app
from moorage.runtime.lease import NotLeading, Terms
from moorage.runtime.operator import Leadership, Operator, Options, WebhookServing
from moorage.runtime.room import Index, Report, Room, Watch, by_index
from moorage.runtime.serving import Listener
from moorage.serving.certificates import issue, make_authority

from .conftest import find, served, until
from .test_admission import ADMISSION, colored, review, trusting, write
from .widget import KIND, ROOM, WIDGETS, widget

QUICK = Pace(backoff=Backoff(base=0.01, cap=0.05))


@contextlib.asynccontextmanager
async def operating(
    client: Client, rooms: Sequence[Room[Any, Any]] = (ROOM,), options: Options | None = None
) -> AsyncIterator[Operator]:
    operator, stop = Operator(rooms, client, options or Options(pace=QUICK)), asyncio.Event()
    task = asyncio.create_task(operator.run(stop))
    try:
        await until(lambda: operator.working.is_set() or task.done())
        yield operator
    finally:
        stop.set()
        await task


async def ready(client: Client, name: str) -> bool:
    conditions = ((await client.get(WIDGETS, Key("default", name))).get("status") or {}).get("conditions") or []
    return any(item["status"] == "True" for item in conditions)


async def test_many_objects_become_ready_and_go(client: Client) -> None:
    """Attach and detach, with events; what is left is nothing."""
    names = [f"w{number}" for number in range(20)]
    async with operating(client):
        await asyncio.gather(*(client.create(WIDGETS, widget(name)) for name in names))
        for name in names:
            await until(lambda: ready(client, name))  # noqa: B023
        await asyncio.gather(*(client.delete(WIDGETS, Key("default", name)) for name in names))
        await until(lambda: _none_left(client))
    assert not [obj for obj in (await client.list(CONFIG_MAPS)).items if obj["metadata"]["name"].endswith("-child")]


async def _none_left(client: Client) -> bool:
    return not (await client.list(WIDGETS)).items


async def test_requests_per_converged_object_are_finalizer_child_and_status(client: Client) -> None:
    """Nothing else is written, Events apart."""
    async with operating(client) as operator:
        await client.create(WIDGETS, widget("w"))
        await until(lambda: ready(client, "w"))
        await until(lambda: not operator.controllers["widget"].queue.working())
    writes = {call: count for call, count in client.calls.items() if call[0] not in ("GET", "WATCH")}
    assert writes.pop(("POST", "events")) == 1
    assert writes == {
        ("POST", "widgets"): 1,
        ("PATCH", "widgets"): 1,
        ("PATCH", "configmaps"): 1,
        ("PATCH", "widgets/status"): 1,
    }


async def test_a_deleted_child_comes_back(client: Client) -> None:
    """The watch on children wakes the owner."""
    async with operating(client):
        await client.create(WIDGETS, widget("w"))
        await until(lambda: ready(client, "w"))
        await client.delete(CONFIG_MAPS, Key("default", "w-child"))
        await until(lambda: find(client, CONFIG_MAPS, "w-child"))


async def test_a_secondary_watch_wakes_through_an_index(client: Client) -> None:
    """An object that somebody names wakes those that name it, and nobody else."""
    passes: list[str] = []

    async def observe(world: Any, key: Key) -> str | None:
        passes.append(key.name)
        return key.name

    def decide(_seen: str) -> Outcome:
        return Done()

    async def apply(_world: Any, seen: str, _plan: Any) -> str:
        return seen

    index = Index(WIDGETS, "by-color", lambda obj: [obj["spec"].get("color", "")])
    watch = Watch(CONFIG_MAPS, by_index(WIDGETS, "by-color", lambda obj: str(obj["metadata"]["name"])))
    room: Room[str, Any] = replace(
        ROOM, observe=observe, decide=decide, apply=apply, report=_nothing, watches=(watch,), indices=(index,)
    )
    for name, color in (("a", "red"), ("b", "blue")):
        obj = widget(name)
        obj["spec"]["color"] = color
        await client.create(WIDGETS, obj)
    async with operating(client, [room]) as operator:
        await until(lambda: {"a", "b"} <= set(passes))
        await until(lambda: not operator.controllers["widget"].queue.working())
        passes.clear()
        await client.create(CONFIG_MAPS, {"metadata": {"name": "red", "namespace": "default"}})
        await until(lambda: passes)
        assert set(passes) == {"a"}


def _nothing(_seen: Any, _outcome: Outcome) -> Any:
    return Report()


async def test_a_bug_in_one_object_backs_off_and_harms_no_sibling(client: Client) -> None:
    """Exceptions become a metric, a log line and back-off: no condition, no crash."""
    async with operating(client) as operator:
        await client.create(WIDGETS, widget("bad", "bug"))
        await client.create(WIDGETS, widget("good"))
        await until(lambda: ready(client, "good"))
        await until(lambda: operator.controllers["widget"].queue.failures(Key("default", "bad")) >= 3)
        text = operator.metrics.text().decode()
        assert 'controller_runtime_reconcile_errors_total{controller="widget"}' in text
        assert 'workqueue_retries_total{name="widget"}' in text
        assert "conditions" not in ((await client.get(WIDGETS, Key("default", "bad"))).get("status") or {})


async def test_waiting_comes_again_after_its_time(client: Client) -> None:
    """`Waiting(after=...)` is a promise of the queue."""
    async with operating(client) as operator:
        await client.create(WIDGETS, widget("w", "wait"))
        await until(lambda: 'result="requeue_after"} 3' in operator.metrics.text().decode())


async def test_resync_looks_at_everything_again(client: Client) -> None:
    """Without any event."""
    await client.create(WIDGETS, widget("w", "stall"))
    async with operating(client, options=Options(pace=replace(QUICK, resync=0.05))) as operator:
        await until(lambda: _successes(operator) >= 5)


def _successes(operator: Operator) -> float:
    metric = operator.metrics.reconciles.labels("widget", "success")
    return float(metric._value.get())


def leading(name: str, quick: bool = True) -> Options:
    terms = Terms(duration=3.0, deadline=2.0, retry=0.1) if quick else Terms()
    return Options(pace=QUICK, leadership=Leadership(Key("default", "moorage"), name, terms), grace=5)


async def test_of_two_operators_one_works_and_the_other_follows_it(client: Client) -> None:
    """A graceful stop hands leadership over; the follower goes on with what is new."""
    # Terms as in production: on a busy machine a quick one can run out, and who has lost the lease has none to give back.
    async with operating(client, options=leading("first", quick=False)):
        follower, stop = Operator([ROOM], client, leading("second", quick=False)), asyncio.Event()
        task = asyncio.create_task(follower.run(stop))
        await client.create(WIDGETS, widget("w"))
        await until(lambda: ready(client, "w"))
        assert not follower.working.is_set()
        assert b'leader_election_master_status{name="moorage"} 0.0' in follower.metrics.text()
    await client.create(WIDGETS, widget("x"))
    await until(lambda: ready(client, "x"))
    assert follower.working.is_set()
    stop.set()
    await task
    assert (await client.get(LEASES, Key("default", "moorage")))["spec"].get("holderIdentity", "") == ""


@pytest.mark.case("B76")
async def test_a_killed_operator_is_replaced_by_the_next_one(client: Client) -> None:
    """Killed between two writes: the next process ends what was begun."""
    fence = Fence(1)
    await client.create(WIDGETS, widget("w"))
    doomed = asyncio.create_task(Operator([ROOM], client.fenced(fence), Options(pace=QUICK)).run(asyncio.Event()))
    await fence.killed.wait()
    doomed.cancel()
    await asyncio.gather(doomed, return_exceptions=True)
    assert await find(client, CONFIG_MAPS, "w-child") is None
    async with operating(client):
        await until(lambda: ready(client, "w"))


async def test_a_leader_cut_off_from_the_server_stops_before_another_one_starts(client: Client) -> None:
    """Its connections fall silent: it gives up at its deadline, and stays down when they come back."""
    host, port = client.connection.server.removeprefix("https://").rsplit(":", 1)
    async with tcp_proxy(host, int(port)) as proxy:
        connection = replace(client.connection, server=f"https://127.0.0.1:{proxy.port}")
        async with Client(connection, limits=Limits(timeout=0.5)) as far:
            first, second = Operator([ROOM], far, leading("first")), Operator([ROOM], client, leading("second"))
            stop = asyncio.Event()
            one = asyncio.create_task(first.run(stop))
            await until(first.working.is_set)
            two = asyncio.create_task(second.run(stop))
            proxy.silence()
            await until(second.working.is_set)
            with pytest.raises(NotLeading):  # from the moment the second works, the first may not write ...
                first.world.leading()
            await until(lambda: not first.working.is_set())  # ... and its controllers end
            await client.create(WIDGETS, widget("w"))
            await until(lambda: ready(client, "w"))
            proxy.resume()
            with pytest.raises(NotLeading):
                await first.world.create(CONFIG_MAPS, {"metadata": {"name": "late", "namespace": "default"}})
            stop.set()
            await asyncio.gather(one, two)
    assert await find(client, CONFIG_MAPS, "late") is None


async def test_stop_lets_a_pass_end(client: Client) -> None:
    """What a worker holds is finished; what waits is left for the next process."""
    began, go = asyncio.Event(), asyncio.Event()

    async def observe(world: Any, key: Key) -> Any:
        began.set()
        await go.wait()
        return await ROOM.observe(world, key)

    slow = replace(ROOM, observe=observe)
    await client.create(WIDGETS, widget("w"))
    operator, stop = Operator([slow], client, Options(pace=QUICK)), asyncio.Event()
    task = asyncio.create_task(operator.run(stop))
    await began.wait()
    stop.set()
    asyncio.get_running_loop().call_later(0.05, go.set)
    await task
    assert await ready(client, "w")


async def test_health_and_metrics_answer(client: Client) -> None:
    """healthz, readyz and metrics, with the names that controller-runtime users know."""
    options = Options(pace=QUICK, health_bind="127.0.0.1:0", metrics_bind="127.0.0.1:0")
    operator = Operator([ROOM], client, options)
    [listener] = operator._listeners()
    await listener.start()
    base = f"http://127.0.0.1:{listener.port}"
    async with aiohttp.ClientSession() as session:
        assert await _get(session, f"{base}/healthz") == (200, "ok\n")
        status, text = await _get(session, f"{base}/readyz")
        assert status == 500
        assert "widgets.test.moorage.internal" in text
        assert (await _get(session, f"{base}/metrics"))[0] == 200
        assert (await _get(session, f"{base}/nothing"))[0] == 404
    await listener.stop()
    async with operating(client) as working:
        text = working.metrics.text().decode()
    for name in (
        "controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_time_seconds", "controller_runtime_active_workers",
        "controller_runtime_max_concurrent_reconciles", "workqueue_depth", "workqueue_adds_total",
        "workqueue_queue_duration_seconds", "workqueue_work_duration_seconds", "workqueue_retries_total",
        "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds", "rest_client_requests_total",
        "leader_election_master_status",
    ):  # fmt: skip
        assert f"# TYPE {name} " in text, name


async def _get(session: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with session.get(url) as response:
        return response.status, await response.text()


async def test_services_resolve_in_one_machine_mode(client: Client) -> None:
    """`<service>.<namespace>.svc` is the Service's ClusterIP, in our own HTTP sessions too."""
    made: JsonObject = await client.create(
        SERVICES, {"metadata": {"name": "keystone", "namespace": "default"}, "spec": {"ports": [{"port": 5000}]}}
    )
    try:
        async with operating(client, options=Options(pace=QUICK, local=True)) as operator:
            await until(lambda: operator._cluster_ip("default", "keystone"))
            assert operator._cluster_ip("default", "keystone") == made["spec"]["clusterIP"]
            assert operator._cluster_ip("default", "other") is None
    finally:
        await client.delete(SERVICES, Key("default", "keystone"))


async def test_events_of_a_pass_are_written_with_a_count(client: Client) -> None:
    """One Event for one message; telling it again counts up, after a restart too."""
    for _ in range(2):
        async with operating(client):
            await client.create(WIDGETS, widget("w"))
            await until(lambda: ready(client, "w"))
            await client.delete(WIDGETS, Key("default", "w"))
            await until(lambda: _none_left(client))
    events = [obj for obj in (await client.list(CORE_EVENTS, "default")).items if obj["involvedObject"]["name"] == "w"]
    assert sorted(obj["reason"] for obj in events) == ["Applied", "Applied", "Removed", "Removed"]
    assert {obj["count"] for obj in events} == {1}


@pytest.mark.case("B76")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of the server that was stopped
async def test_an_operator_lives_through_a_restart_of_the_server(tmp_path: Path) -> None:
    """What was declared just before and after the restart becomes ready; no pass is lost in it."""
    server = Server(tmp_path / "data")
    await server.start()
    server.kubeconfig(tmp_path / "kubeconfig")
    connection = load_kubeconfig(tmp_path / "kubeconfig")
    port = int(connection.server.rsplit(":", 1)[1])
    async with Client(connection) as client:
        await client.create(CRDS, KIND.crd())
        await until(lambda: served(client))
        async with operating(client):
            await asyncio.gather(*(client.create(WIDGETS, widget(f"before-{number}")) for number in range(10)))
            await server.stop()
            server = Server(tmp_path / "data", port=port)
            await server.start()
            await client.create(WIDGETS, widget("after"))
            for name in ("after", *(f"before-{number}" for number in range(10))):
                await until(lambda: ready(client, name))  # noqa: B023
    await server.stop()


async def test_the_embedded_server_asks_our_rules_in_process(tmp_path: Path) -> None:
    """One-machine mode: the same reviews, without TLS, with siblings from the operator's cache."""
    operators: list[Operator] = []

    async def handle(path: str, body: JsonObject) -> JsonObject:
        return await operators[0].handlers()[path](body)

    paths = (ADMISSION.mutate_path, ADMISSION.validate_path)
    server = Server(tmp_path / "data", in_process={path: partial(handle, path) for path in paths})
    await server.start()
    server.kubeconfig(tmp_path / "kubeconfig")
    async with Client(load_kubeconfig(tmp_path / "kubeconfig")) as client:
        await client.create(CRDS, KIND.crd())
        await until(lambda: served(client))
        async with operating(client, options=Options(pace=QUICK, admissions=[ADMISSION])) as operator:
            operators.append(operator)
            for rt, path in ((MUTATING_WEBHOOKS, paths[0]), (VALIDATING_WEBHOOKS, paths[1])):
                await client.create(rt, _in_process(path))
            first = widget("first")
            first["spec"]["color"] = "red"
            await client.create(WIDGETS, first)
            await until(lambda: operator.siblings(WIDGETS, "default"))
            second = widget("second", "bad")
            second["spec"]["color"] = "red"
            with pytest.raises(Invalid) as refused:
                await client.create(WIDGETS, second)
            assert [cause["field"] for cause in refused.value.causes] == ["spec.text", "spec.color"]
            assert (await client.create(WIDGETS, widget("third")))["spec"]["color"] == "grey"
    await server.stop()


async def test_a_review_is_given_the_siblings_that_share_a_value(client: Client) -> None:
    """An index brings them, as they are now; without values all of the namespace come."""
    by_color = replace(ADMISSION, meets=lambda obj: [obj["spec"]["color"]] if "color" in obj["spec"] else [])
    async with operating(client, options=Options(pace=QUICK, admissions=[by_color])) as operator:
        for name, color in (("rose", "red"), ("brick", "red"), ("sky", "blue")):
            await client.create(WIDGETS, colored(name, color=color))
        await client.create(WIDGETS, widget("glass"))
        await until(lambda: len(operator.siblings(WIDGETS, "default")) == 4)

        def shown(*values: str, namespace: str = "default") -> list[str]:
            return sorted(obj["metadata"]["name"] for obj in operator.siblings(WIDGETS, namespace, values))

        assert shown("red") == ["brick", "rose"]
        assert shown("red", "blue") == ["brick", "rose", "sky"]
        assert shown() == shown("red", namespace="elsewhere") == []
        await client.patch(WIDGETS, Key("default", "brick"), {"spec": {"color": "blue"}})
        await until(lambda: shown("blue") == ["brick", "sky"])
        assert shown("red") == ["rose"]


def _in_process(path: str) -> JsonObject:
    service = {"namespace": "moorage-system", "name": "moorage-webhook", "path": path}
    rule = {
        "apiGroups": [KIND.group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["widgets"],
    }
    hook = {
        "name": "w.moorage.internal", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
    }  # fmt: skip
    return {"metadata": {"name": "moorage"}, "webhooks": [hook]}


async def test_failures_stay_in_the_queue_with_back_off_and_conflicts_are_no_errors(client: Client) -> None:
    """Failed is retried and counted as an error; a conflict is only looked at again."""
    outcomes: list[Outcome | Exception] = [Failed("Down", "the other server is down"), Conflict(409, "Conflict", "old")]

    def decide(_seen: Any) -> Outcome:
        found = outcomes.pop(0) if outcomes else Done()
        if isinstance(found, Exception):
            raise found
        return found

    await client.create(WIDGETS, widget("w"))
    async with operating(client, [replace(ROOM, decide=decide)]) as operator:
        await until(lambda: _successes(operator) == 1)
        text = operator.metrics.text().decode()
    assert 'controller_runtime_reconcile_total{controller="widget",result="error"} 1.0' in text
    assert 'controller_runtime_reconcile_total{controller="widget",result="requeue"} 1.0' in text


async def test_a_pass_that_asks_again_at_once_for_ever_leaves_others_their_turn(client: Client) -> None:
    """It comes back after its back-off, longer each time; the loop goes on."""
    passes: list[Key] = []

    async def counted(world: Any, key: Key) -> Any:
        passes.append(key)
        return await ROOM.observe(world, key)

    room = replace(
        ROOM,
        observe=counted,
        decide=lambda seen: Waiting("Soon", "at once", after=0.0) if "spins" in str(passes[-1]) else ROOM.decide(seen),
    )
    await client.create(WIDGETS, widget("spins"))
    await client.create(WIDGETS, widget("w"))
    async with operating(client, [room], Options(pace=Pace(workers=1, backoff=Backoff(base=3600, cap=3600)))):
        await until(lambda: ready(client, "w"))
    assert 1 <= passes.count(Key("default", "spins")) <= 4


async def test_the_operator_serves_webhooks_and_is_ready_when_they_are(client: Client, tmp_path: Path) -> None:
    """Certificates that come later are waited for; until then readyz says so."""
    serving = WebhookServing("127.0.0.1:0", Files(tmp_path / "tls"), period=0.02)
    options = Options(pace=QUICK, admissions=[ADMISSION], webhooks=serving)
    async with operating(client, options=options) as operator:
        assert operator._webhooks_ready() == "no certificate yet"
        authority = make_authority("test", datetime.now(UTC))
        write(tmp_path / "tls", issue(authority, ["localhost"], datetime.now(UTC)))
        await until(lambda: not operator._webhooks_ready())
        assert operator._admission is not None
        url = f"https://localhost:{operator._admission.listener.port}{ADMISSION.validate_path}"
        async with trusting(authority) as session, session.post(url, json=review(colored("w", "bad"))) as response:
            assert not (await response.json())["response"]["allowed"]
        assert "controller_runtime_webhook_requests_total" in operator.metrics.text().decode()


async def test_a_taken_port_is_an_error_and_not_an_exit(client: Client) -> None:
    """The sentence names the address."""
    listener = Listener(app(ready={}), "127.0.0.1:0")
    await listener.start()
    taken = Options(health_bind=f"127.0.0.1:{listener.port}")
    with pytest.raises(EnvironmentError_, match="cannot listen"):
        await Operator([ROOM], client, taken).run(asyncio.Event())
    await listener.stop()


async def test_something_besides_the_api_server_wakes_a_key(client: Client) -> None:
    """A room that looks elsewhere in the background says which object is to be looked at, now or later."""
    passes: list[Key] = []

    async def counted(world: Any, key: Key) -> Any:
        passes.append(key)
        return await ROOM.observe(world, key)

    async with operating(client, [replace(ROOM, observe=counted)]) as operator:
        operator.world.wake(CONFIG_MAPS, Key("default", "nobody-works-on-this"))
        operator.world.wake(WIDGETS, Key("default", "gone"))
        operator.world.wake(WIDGETS, Key("default", "later"), 3600.0)
        await client.create(WIDGETS, widget("w"))
        await until(lambda: ready(client, "w"))
        await until(lambda: operator.controllers[ROOM.name].queue.working() == {})
        before = len(passes)
        operator.world.counting(lambda: None).wake(WIDGETS, Key("default", "w"))
        await until(lambda: len(passes) > before)
    operator.world.wake(WIDGETS, Key("default", "w"))
