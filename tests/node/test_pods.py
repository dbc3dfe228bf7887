"""Pods as sandboxes of this machine: what they see, how they start, restart and end."""

from __future__ import annotations

import json
import uuid

import pytest

from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS
from moorage.node.cgroups import Cgroups

from .conftest import PYTHON, Machine, eventually, is_ready, phase, pod

FOREVER = ("/bin/sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 600 & wait; done")
"""Ends at its stop signal from its first millisecond on; Python, as the first process of a pod, does not hear one before it has started."""


def sleep_of_this_test(seconds: int) -> tuple[str, str]:
    """A command of a length that nobody else on the machine sleeps: the tests beside this one have pods that sleep, too."""
    return ("/usr/bin/sleep", f"{seconds}.{uuid.uuid4().int % 10**15:015d}")


def state(found: JsonObject, index: int = 0) -> JsonObject:
    statuses = (found.get("status") or {}).get("containerStatuses") or [{}]
    return statuses[index]


async def test_a_pod_that_ends_well_has_succeeded_and_its_log_is_kept(machine: Machine) -> None:
    await machine.client.create(PODS, pod("once", "/bin/sh", "-c", "echo out; echo err >&2", restartPolicy="Never"))
    found = await machine.until(PODS, "once", phase("Succeeded"))
    assert state(found)["state"]["terminated"]["exitCode"] == 0
    assert state(found)["state"]["terminated"]["reason"] == "Completed"
    assert sorted(machine.log("once")) == ["err", "out"]


async def test_a_pod_sees_its_own_processes_a_read_only_root_and_its_user(machine: Machine) -> None:
    script = (
        "import os, json\n"
        "def tries(path):\n"
        "    try: open(path, 'w').close(); return True\n"
        "    except OSError: return False\n"
        "print(json.dumps({'pids': sum(name.isdigit() for name in os.listdir('/proc')), 'uid': os.getuid(), 'gid': os.getgid(),"
        " 'root': tries('/usr/x'), 'slash': tries('/x'), 'tmp': tries('/tmp/x'), 'host': os.path.exists('/root/.bashrc'),"
        " 'new': 'NoNewPrivs:\\t1' in open('/proc/self/status').read(), 'name': os.uname().nodename}))"
    )
    context = {"runAsUser": 42424, "runAsGroup": 42425}
    await machine.client.create(
        PODS, pod("inside", PYTHON, "-c", script, restartPolicy="Never", securityContext=context)
    )
    await machine.until(PODS, "inside", phase("Succeeded"))
    assert json.loads(machine.log("inside")[0]) == {
        "pids": 1, "uid": 42424, "gid": 42425, "root": False, "slash": False, "tmp": True, "host": False, "new": True,
        "name": "inside",
    }  # fmt: skip


async def test_environment_comes_from_values_fields_secrets_and_config_maps(machine: Machine) -> None:
    await machine.client.create(SECRETS, _object("Secret", "s", stringData={"password": "p$(X)"}))
    await machine.client.create(CONFIG_MAPS, _object("ConfigMap", "c", data={"A": "1", "B": "2"}))
    env = [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
        {"name": "BOTH", "value": "$(A)-$(NAME)-$$(NAME)-$(NOBODY)"},
    ]
    container = {"env": env, "envFrom": [{"configMapRef": {"name": "c"}}], "args": ["$(BOTH)", "$(PASSWORD)"]}
    script = "import os, sys, json; print(json.dumps([sys.argv[1:], os.environ['IP'], os.environ['B']]))"
    await machine.client.create(PODS, pod("env", PYTHON, "-c", script, restartPolicy="Never", container=container))
    found = await machine.until(PODS, "env", phase("Succeeded"))
    words = ["1-env-$(NAME)-$(NOBODY)", "p$(X)"]
    assert json.loads(machine.log("env")[0]) == [words, found["status"]["podIP"], "2"]


async def test_a_secret_in_the_environment_is_in_no_process_list(machine: Machine) -> None:
    await machine.client.create(SECRETS, _object("Secret", "s", stringData={"password": "hunter2-unseen"}))
    env = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]
    await machine.client.create(PODS, pod("quiet", *FOREVER, container={"env": env}))
    await machine.until(PODS, "quiet", is_ready)
    assert b"hunter2-unseen" not in _all_command_lines()


async def test_a_secret_in_the_environment_or_in_an_argument_is_never_on_the_disk(machine: Machine) -> None:
    """S17: the bootstrap password stayed in the folder of the finished pod. A node that takes over still knows it, for probes."""
    await machine.client.create(SECRETS, _object("Secret", "s", stringData={"password": "hunter2-unseen"}))
    env = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]
    asked = machine.data.parent / "asked"
    asked.write_text("hunter2-unseen")
    probe = {"exec": {"command": ["/bin/sh", "-c", 'test "$PASSWORD" = "$(cat /asked)"']}, "failureThreshold": 1}
    mounts = {"volumeMounts": [{"name": "asked", "mountPath": "/asked"}]}
    told = {"env": env, "readinessProbe": {**probe, "periodSeconds": 1}, **mounts}
    volumes = {"volumes": [{"name": "asked", "hostPath": {"path": str(asked)}}]}
    await machine.stop()
    await machine.start(leave_pods=True)
    await machine.client.create(PODS, pod("keeps", *FOREVER, "$(PASSWORD)", container=told, **volumes))
    await machine.client.create(PODS, pod("ends", "/bin/true", restartPolicy="Never", container={"env": env}))
    await machine.until(PODS, "keeps", is_ready)
    await machine.until(PODS, "ends", phase("Succeeded"))
    await machine.stop()
    await machine.start()
    asked.write_text("another")
    await machine.until(PODS, "keeps", lambda found: not is_ready(found))
    asked.write_text("hunter2-unseen")
    await machine.until(PODS, "keeps", is_ready)
    files = [path for path in (machine.data / "node").rglob("*") if path.is_file()]
    assert not [path for path in files if b"hunter2-unseen" in path.read_bytes()]


async def test_a_missing_secret_holds_the_pod_back_and_its_arrival_starts_it(machine: Machine) -> None:
    env = [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "late", "key": "p"}}}]
    await machine.client.create(PODS, pod("waits", *FOREVER, container={"env": env}))
    found = await machine.until(
        PODS, "waits", lambda item: (state(item).get("state") or {}).get("waiting", {}).get("message")
    )
    assert state(found)["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": 'secret "late" not found',
    }
    await machine.client.create(SECRETS, _object("Secret", "late", stringData={"p": "x"}))
    await machine.until(PODS, "waits", is_ready)


async def test_an_unknown_image_is_pending_and_says_how_to_provide_it(machine: Machine) -> None:
    await machine.client.create(PODS, pod("nobody", "x", container={"image": "example/unknown:1"}))
    found = await machine.until(PODS, "nobody", lambda item: "ImageNotFound" in json.dumps(item.get("status")))
    assert found["status"]["phase"] == "Pending"
    assert "image.toml" in state(found)["state"]["waiting"]["message"]


async def test_a_failing_container_backs_off_and_keeps_its_previous_log(machine: Machine) -> None:
    await machine.client.create(PODS, pod("fails", "/bin/sh", "-c", "echo run; exit 3"))
    found = await machine.until(PODS, "fails", lambda item: state(item).get("restartCount", 0) >= 2)
    assert state(found)["lastState"]["terminated"]["exitCode"] == 3
    await machine.until(PODS, "fails", lambda item: "CrashLoopBackOff" in json.dumps(item["status"]))
    assert found["status"]["phase"] == "Running"


async def test_a_command_that_does_not_exist_is_a_start_error(machine: Machine) -> None:
    await machine.client.create(PODS, pod("typo", "/no/such/program", restartPolicy="Never"))
    found = await machine.until(PODS, "typo", phase("Failed"))
    ended = state(found)["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert "/no/such/program" in ended["message"]


async def test_init_containers_run_one_after_the_other_before_the_rest(machine: Machine) -> None:
    volume = {"volumes": [{"name": "work", "emptyDir": {}}]}
    mounts = {"volumeMounts": [{"name": "work", "mountPath": "/work/here"}]}
    first = {"name": "a", "image": "moorage/host", "command": ["/bin/sh", "-c", "echo a > /work/here/order"], **mounts}
    second = {
        "name": "b",
        "image": "moorage/host",
        "command": ["/bin/sh", "-c", "echo b >> /work/here/order"],
        **mounts,
    }
    wanted = pod(
        "inits",
        "/bin/cat",
        "/work/here/order",
        restartPolicy="Never",
        container=mounts,
        initContainers=[first, second],
        **volume,
    )
    await machine.client.create(PODS, wanted)
    await machine.until(PODS, "inits", phase("Succeeded"))
    assert machine.log("inits") == ["a", "b"]


async def test_a_failing_init_container_fails_a_pod_that_never_restarts(machine: Machine) -> None:
    init = {"name": "bad", "image": "moorage/host", "command": ["/bin/false"]}
    await machine.client.create(PODS, pod("badinit", "/bin/true", restartPolicy="Never", initContainers=[init]))
    found = await machine.until(PODS, "badinit", phase("Failed"))
    assert "PodInitializing" in json.dumps(state(found)["state"])


async def test_a_sidecar_runs_beside_the_others_and_ends_after_them(machine: Machine) -> None:
    sidecar = {"name": "side", "image": "moorage/host", "command": [*FOREVER], "restartPolicy": "Always"}
    await machine.client.create(PODS, pod("helped", "/bin/true", restartPolicy="Never", initContainers=[sidecar]))
    found = await machine.until(PODS, "helped", phase("Succeeded"))
    assert found["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_a_deleted_pod_gets_its_stop_signal_and_leaves_nothing(machine: Machine) -> None:
    await machine.client.create(PODS, pod("goes", *FOREVER))
    found = await machine.until(PODS, "goes", is_ready)
    await eventually(lambda: _true(machine.log("goes") == ["up"]))
    await machine.client.delete(PODS, Key("default", "goes"))
    await machine.gone(PODS, "goes")
    assert not (machine.data / "node" / "pods" / found["metadata"]["uid"]).exists()
    assert not (machine.data / "logs" / "default" / "goes").exists()


async def test_a_pod_that_ignores_its_stop_signal_is_killed_when_the_grace_is_over(machine: Machine) -> None:
    long = sleep_of_this_test(600)
    await machine.client.create(PODS, pod("stubborn", *long, terminationGracePeriodSeconds=1))
    await machine.until(PODS, "stubborn", is_ready)
    await machine.client.delete(PODS, Key("default", "stubborn"))
    await machine.gone(PODS, "stubborn")
    assert not _runs_somewhere(long)


async def test_a_shorter_grace_asked_for_later_is_honoured_even_while_a_hook_runs(machine: Machine) -> None:
    """The first deletion would take ten minutes, its hook five."""
    long, hook = sleep_of_this_test(600), sleep_of_this_test(300)
    container = {"lifecycle": {"preStop": {"exec": {"command": [*hook]}}}}
    wanted = pod("patient", *long, container=container, terminationGracePeriodSeconds=600)
    await machine.client.create(PODS, wanted)
    await machine.until(PODS, "patient", is_ready)
    await machine.client.delete(PODS, Key("default", "patient"))
    await eventually(lambda: _true(_runs_somewhere(hook)))
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 1}
    await machine.client.raw("DELETE", PODS.path("default", "patient"), body=body)
    await machine.gone(PODS, "patient")
    assert not _runs_somewhere(long)
    assert not _runs_somewhere(hook)


async def test_a_stop_of_the_whole_machine_skips_hooks_that_only_wait_and_runs_all_others(machine: Machine) -> None:
    place = machine.data.parent / "shared"
    place.mkdir()
    place.chmod(0o777)
    mounts = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    volumes = [{"name": "shared", "hostPath": {"path": str(place)}}]
    hooks: dict[str, JsonObject] = {
        "waits": {"sleep": {"seconds": 300}},
        "sleeps": {"exec": {"command": ["sleep", "300"]}},
        "works": {"exec": {"command": ["/bin/sh", "-c", "echo done $POD_DRAINED > /shared/hook"]}},
    }
    for name, hook in hooks.items():
        container = {"lifecycle": {"preStop": hook}, **mounts}
        wanted = pod(name, *FOREVER, container=container, volumes=volumes, terminationGracePeriodSeconds=600)
        await machine.client.create(PODS, wanted)
        await machine.until(PODS, name, is_ready)
        await eventually(lambda name=name: _true(machine.log(name) == ["up"]))  # type: ignore[misc]
    await machine.stop()
    assert (place / "hook").read_text() == "done 1\n", "it knows that nobody sends anything any more"


async def test_a_machine_without_bubblewrap_says_so_and_counts_no_restarts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    await machine.client.create(PODS, pod("lacks", *FOREVER))
    found = await machine.until(PODS, "lacks", lambda item: "bwrap" in json.dumps(item.get("status")))
    assert state(found)["state"]["waiting"]["reason"] == "CreateContainerError"
    assert "apt-get install bubblewrap" in state(found)["state"]["waiting"]["message"]
    monkeypatch.undo()
    assert machine.node is not None
    machine.node.wake_all()
    found = await machine.until(PODS, "lacks", is_ready)
    assert state(found)["restartCount"] == 0


async def test_a_pre_stop_hook_runs_in_the_container_before_the_signal(machine: Machine) -> None:
    place = machine.data.parent / "shared"
    place.mkdir()
    place.chmod(0o777)  # a hostPath stays under the machine's own permissions
    hook = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "echo stopped by $HOOK$POD_DRAINED > /shared/hook"]}}}
    container = {
        "lifecycle": hook,
        "env": [{"name": "HOOK", "value": "hand"}],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    volumes = [{"name": "shared", "hostPath": {"path": str(place)}}]
    await machine.client.create(PODS, pod("hooked", *FOREVER, container=container, volumes=volumes))
    await machine.until(PODS, "hooked", is_ready)
    await machine.client.delete(PODS, Key("default", "hooked"))
    await machine.gone(PODS, "hooked")
    assert (place / "hook").read_text() == "stopped by hand\n"


async def test_a_hook_that_names_no_folder_is_found_by_path_and_one_that_fails_is_told(machine: Machine) -> None:
    """Both hooks run: one leaves its mark by a program that PATH finds, the other's failure becomes an Event; both pods end."""
    place = machine.data.parent / "shared"
    place.mkdir()
    place.chmod(0o777)
    mounts = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    volumes = [{"name": "shared", "hostPath": {"path": str(place)}}]
    for name, command in (("plain", ["touch", "/shared/hook"]), ("strange", ["no-such-program"])):
        container = {"lifecycle": {"preStop": {"exec": {"command": command}}}, **mounts}
        await machine.client.create(PODS, pod(name, *FOREVER, container=container, volumes=volumes))
        await machine.until(PODS, name, is_ready)
        await machine.client.delete(PODS, Key("default", name))
        await machine.gone(PODS, name)
    await eventually(lambda: _true((place / "hook").exists()))

    async def told() -> bool:
        events = (await machine.client.list(EVENTS, "default")).items
        return any(item["reason"] == "FailedPreStopHook" and "no-such-program" in json.dumps(item) for item in events)

    await eventually(told)


async def test_the_termination_message_is_shown(machine: Machine) -> None:
    await machine.client.create(
        PODS, pod("says", "/bin/sh", "-c", "echo why > /dev/termination-log; exit 4", restartPolicy="Never")
    )
    found = await machine.until(PODS, "says", phase("Failed"))
    assert state(found)["state"]["terminated"]["message"] == "why\n"


async def test_a_pod_is_failed_when_its_active_deadline_is_over(machine: Machine) -> None:
    await machine.client.create(PODS, pod("late", *FOREVER, activeDeadlineSeconds=1))
    found = await machine.until(PODS, "late", phase("Failed"))
    assert found["status"]["reason"] == "DeadlineExceeded"


async def test_run_as_non_root_refuses_an_image_that_runs_as_root(machine: Machine) -> None:
    await machine.client.create(PODS, pod("rooted", "/bin/true", securityContext={"runAsNonRoot": True}))
    found = await machine.until(PODS, "rooted", lambda item: "runAsNonRoot" in json.dumps(item.get("status")))
    assert state(found)["state"]["waiting"]["reason"] == "CreateContainerConfigError"


async def test_limits_without_a_writable_cgroup_are_said_once_and_block_nothing(machine: Machine) -> None:
    assert machine.node is not None
    container = {"resources": {"limits": {"memory": "64Mi"}}}
    await machine.client.create(PODS, pod("limited", *FOREVER, container=container))
    found = await machine.until(PODS, "limited", is_ready)
    notes = [item for item in found["status"]["conditions"] if item["type"] == "moorage.internal/ResourceLimits"]
    assert len(notes) == (0 if Cgroups.detect().base is not None else 1)


@pytest.mark.parametrize(("probe", "reason"), [("livenessProbe", "liveness"), ("startupProbe", "startup")])
async def test_a_failing_probe_restarts_the_container(machine: Machine, probe: str, reason: str) -> None:
    asked = {"exec": {"command": ["/bin/false"]}, "periodSeconds": 1, "failureThreshold": 1}
    await machine.client.create(PODS, pod(reason, *FOREVER, container={probe: asked}))
    await machine.until(PODS, reason, lambda item: state(item).get("restartCount", 0) >= 1)


async def test_readiness_follows_the_probe_both_ways(machine: Machine) -> None:
    place = machine.data.parent / "shared"
    place.mkdir()
    asked = {"exec": {"command": ["/usr/bin/test", "-e", "/shared/ok"]}, "periodSeconds": 1, "failureThreshold": 1}
    container = {"readinessProbe": asked, "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    volumes = [{"name": "shared", "hostPath": {"path": str(place)}}]
    await machine.client.create(PODS, pod("turns", *FOREVER, container=container, volumes=volumes))
    await machine.until(PODS, "turns", lambda item: state(item).get("started") and not state(item)["ready"])
    (place / "ok").touch()
    await machine.until(PODS, "turns", is_ready)
    (place / "ok").unlink()
    await machine.until(PODS, "turns", lambda item: not is_ready(item))


async def _true(value: bool) -> bool:
    return value


def _object(kind: str, name: str, **parts: object) -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **parts}


def _runs_somewhere(command: tuple[str, ...]) -> bool:
    return "\0".join(command).encode() in _all_command_lines()


def _all_command_lines() -> bytes:
    from pathlib import Path

    found = b""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += entry.read_bytes() + b"\n"
        except OSError:
            continue
    return found
