"""What a pod can do to the machine and to other pods, as seen from the machine. Nothing here writes to a kernel setting."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from moorage.core.meta import JsonObject
from moorage.kube.resources import PODS, PVCS, SECRETS
from moorage.node.pods import launch, stage
from moorage.node.pods.folders import give, make_below
from moorage.node.pods.source import Source
from moorage.node.pods.users import FIRST_OF_NAMESPACES, FIRST_OF_PODS, user_of

from .conftest import PYTHON, Machine, is_ready, phase, pod
from .test_pods import FOREVER, state

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run pods under other users")
PROBE = (
    "import errno, json, os, resource\n"
    "def tried(path, flags):\n"
    "    try: os.close(os.open(path, flags)); return 'opened'\n"
    "    except OSError as error: return errno.errorcode[error.errno]\n"
    "def content(path):\n"
    "    try: return len(open(path, 'rb').read(64))\n"
    "    except OSError: return 0\n"
    "settings = ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/vm/swappiness', '/proc/sysrq-trigger']\n"
    "secrets = ['/proc/keys', '/proc/key-users', '/proc/kcore', '/proc/timer_list', '/proc/kmsg', '/proc/vmallocinfo']\n"
    "print(json.dumps({\n"
    "    'written': {path: tried(path, os.O_WRONLY) for path in settings},\n"
    "    'readonly': [bool(os.statvfs(path).f_flag & os.ST_RDONLY) for path in ('/proc/sys', '/proc/irq', '/proc/bus', '/proc/fs')],\n"
    "    'read': sum(content(path) for path in secrets),\n"
    "    'acpi': os.listdir('/proc/acpi') if os.path.exists('/proc/acpi') else [],\n"
    "    'processes': resource.getrlimit(resource.RLIMIT_NPROC)[0],\n"
    "    'stdout': tried('/dev/stdout', os.O_WRONLY), 'uid': os.getuid()}))\n"
)


def of_host(pid: int) -> dict[str, str]:
    """The fields of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def process(machine: Machine, found: JsonObject) -> int:
    """The first process of a pod's container `main`, as the machine numbers it."""
    folder = machine.data / "node" / "pods" / found["metadata"]["uid"] / "containers" / "main"
    (newest,) = sorted(folder.glob("[0-9]*"))[-1:]
    return int(json.loads((newest / "state.json").read_text())["pid"])


def as_user(user: int, *command: str) -> str:
    """What a command says that another user of the machine runs in vain."""
    ran = subprocess.run(command, user=user, group=user, extra_groups=[], capture_output=True, text=True)
    assert ran.returncode != 0
    return ran.stderr


async def running(machine: Machine, name: str, **spec: object) -> tuple[JsonObject, dict[str, str]]:
    await machine.client.create(PODS, pod(name, *FOREVER, **spec))
    found = await machine.until(PODS, name, is_ready)
    return found, of_host(process(machine, found))


@as_root
@pytest.mark.parametrize("context", [{}, {"runAsUser": 0}, {"runAsUser": 42424, "runAsGroup": 1}])
async def test_no_pod_is_root_on_the_machine_whoever_it_is_inside(machine: Machine, context: JsonObject) -> None:
    found, seen = await running(machine, "who", securityContext=context)
    user = user_of(found, found["status"]["podIP"], machine.data)
    assert user is not None
    assert user >= FIRST_OF_PODS
    assert (seen["Uid"], seen["Gid"]) == ("\t".join([str(user)] * 4),) * 2
    assert (seen["Groups"], seen["NoNewPrivs"]) == ("", "1")
    assert {int(seen[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}


async def test_kernel_settings_are_read_only_and_kernel_secrets_are_covered(machine: Machine) -> None:
    """S12: root of the machine by way of core_pattern. The attempt opens for writing and writes nothing."""
    await machine.client.create(PODS, pod("tries", PYTHON, "-c", PROBE, restartPolicy="Never"))
    await machine.until(PODS, "tries", phase("Succeeded"))
    said = json.loads(machine.log("tries")[0])
    assert set(said["written"].values()) <= {"EROFS", "EACCES", "EPERM", "ENOENT"}
    assert said["readonly"] == [True] * 4
    assert (said["read"], said["acpi"], said["stdout"]) == (0, [], "opened")
    assert os.geteuid() != 0 or said["processes"] == stage.PROCESSES


async def test_a_pod_makes_no_further_user_namespace(machine: Machine) -> None:
    script = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"
    await machine.client.create(PODS, pod("deeper", PYTHON, "-c", script, restartPolicy="Never"))
    await machine.until(PODS, "deeper", phase("Succeeded"))
    assert machine.log("deeper") == ["-1"]


async def test_volumes_of_secrets_are_closed_to_the_world_and_open_to_the_pod(machine: Machine) -> None:
    """S16: Keystone warned that its key repository is world readable."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    await machine.client.create(SECRETS, {**secret, "stringData": {"k": "v"}})
    script = "import os; print(oct(os.stat('/s').st_mode & 0o7777), os.listdir('/s/..data'), open('/s/k').read(), os.access('/s', os.R_OK))"
    volumes = [{"name": "s", "secret": {"secretName": "s", "items": [{"key": "k", "path": "k"}]}}]
    wanted = pod(
        "reads",
        PYTHON,
        "-c",
        script,
        restartPolicy="Never",
        volumes=volumes,
        securityContext={"runAsUser": 42424, "runAsGroup": 42424},
        container={"volumeMounts": [{"name": "s", "mountPath": "/s"}]},
    )
    await machine.client.create(PODS, wanted)
    await machine.until(PODS, "reads", phase("Succeeded"))
    assert machine.log("reads") == ["0o750 ['k'] v True"]


@as_root
async def test_two_pods_are_two_users_and_neither_reads_the_other_s_secret(machine: Machine) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    await machine.client.create(SECRETS, {**secret, "stringData": {"k": "v"}})
    volume = {"volumes": [{"name": "s", "secret": {"secretName": "s"}}]}
    mounts = {"volumeMounts": [{"name": "s", "mountPath": "/s"}]}
    first, seen = await running(machine, "first", container=mounts, **volume)
    _, other = await running(machine, "second")
    assert seen["Uid"] != other["Uid"]
    file = machine.data / "node" / "pods" / first["metadata"]["uid"] / "volumes" / "s" / "k"
    stranger = int(other["Uid"].split()[0])
    pid = process(machine, first)
    for path in (file, Path(f"/proc/{pid}/environ"), Path(f"/proc/{pid}/root"), Path(f"/proc/{pid}/mem")):
        assert "ermission denied" in as_user(stranger, "/bin/cat", str(path))
    assert "not permitted" in as_user(stranger, "/bin/kill", "-s", "0", str(pid))
    assert file.stat().st_uid == int(seen["Uid"].split()[0])


async def test_the_data_folder_is_closed_to_everybody_else(machine: Machine) -> None:
    await machine.stop()
    machine.data.chmod(0o755)
    await machine.start()
    await running(machine, "any")
    assert machine.data.stat().st_mode & 0o777 == 0o700


@as_root
async def test_pods_that_share_a_claim_are_one_user_and_share_its_files(machine: Machine) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "d", "namespace": "default"}}
    await machine.client.create(PVCS, {**claim, "spec": spec})
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    script = "umask 077; echo x >> /d/f; cat /d/f; echo $(stat -c %u:%a /d/f)"
    for name, inside in (("one", 42424), ("two", 33)):
        context = {"runAsUser": inside}
        await machine.client.create(
            PODS,
            pod(
                name,
                "/bin/sh",
                "-c",
                script,
                restartPolicy="Never",
                volumes=volumes,
                container=mounts,
                securityContext=context,
            ),
        )
        await machine.until(PODS, name, phase("Succeeded"))
    assert machine.log("two") == ["x", "x", "33:600"]
    (file,) = (machine.data / "volumes").glob("default/d/*/f")
    assert file.stat().st_uid >= FIRST_OF_NAMESPACES


async def test_a_probe_in_a_container_is_one_of_its_own_processes(machine: Machine) -> None:
    """Same user, no capabilities, no way to gain any: entering brings all of them, and all are given up."""
    asked = {
        "exec": {"command": ["/bin/sh", "-c", "cat /proc/self/status > /out/status; id -u > /out/id"]},
        "periodSeconds": 1,
    }
    container = {"readinessProbe": asked, "volumeMounts": [{"name": "out", "mountPath": "/out"}]}
    volumes = [{"name": "out", "emptyDir": {}}]
    found, main = await running(
        machine, "asked", container=container, volumes=volumes, securityContext={"runAsUser": 0}
    )
    out = machine.data / "node" / "pods" / found["metadata"]["uid"] / "volumes" / "out"
    lines = (out / "status").read_text().splitlines()
    inside = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    assert (out / "id").read_text() == "0\n"
    assert str((out / "status").stat().st_uid) == main["Uid"].split()[0]
    assert {int(inside[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (inside["NoNewPrivs"], inside["Uid"]) == ("1", "0\t0\t0\t0")


@pytest.mark.parametrize("path", ["/", "/proc", "/proc/sys", "/sys/fs", "/dev", "/dev/mem", "/m/../etc", "//proc/./1"])
async def test_a_mount_over_the_root_or_the_kernel_s_folders_is_refused(machine: Machine, path: str) -> None:
    container = {"volumeMounts": [{"name": "v", "mountPath": path}]}
    await machine.client.create(
        PODS, pod("over", "/bin/true", container=container, volumes=[{"name": "v", "emptyDir": {}}])
    )
    found = await machine.until(PODS, "over", lambda item: "mountPath" in json.dumps(item.get("status")))
    assert state(found)["state"]["waiting"]["reason"] == "CreateContainerError"
    assert "mountPath" in state(found)["state"]["waiting"]["message"]


async def test_shared_memory_may_be_a_volume(machine: Machine) -> None:
    container = {"volumeMounts": [{"name": "v", "mountPath": "/dev/shm"}]}
    wanted = pod("shm", "/bin/sh", "-c", "echo x > /dev/shm/x", restartPolicy="Never", container=container)
    wanted["spec"]["volumes"] = [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    await machine.client.create(PODS, wanted)
    await machine.until(PODS, "shm", phase("Succeeded"))


@pytest.mark.parametrize("place", ["", "node", "..", "/proc", "/sys/kernel", "/dev", "/"])
async def test_a_host_path_shows_neither_moorage_s_data_nor_the_kernel_s_folders(machine: Machine, place: str) -> None:
    volumes = [{"name": "v", "hostPath": {"path": str((machine.data / place).resolve())}}]
    container = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    await machine.client.create(PODS, pod("looks", "/bin/true", container=container, volumes=volumes))
    found = await machine.until(PODS, "looks", lambda item: "is not given to pods" in json.dumps(item.get("status")))
    assert found["status"]["phase"] == "Pending"


async def test_a_sub_path_through_a_planted_link_makes_nothing_outside(machine: Machine) -> None:
    outside = machine.data.parent / "outside"
    outside.mkdir()
    volumes = [{"name": "v", "emptyDir": {}}]
    plant = {
        "name": "plant", "image": "moorage/host", "command": ["/bin/ln", "-s", str(outside), "/v/link"],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }  # fmt: skip
    container = {"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "link/made"}]}
    await machine.client.create(
        PODS, pod("sly", "/bin/true", container=container, volumes=volumes, initContainers=[plant])
    )
    await machine.until(PODS, "sly", lambda item: "leaves the volume" in json.dumps(item.get("status")))
    assert list(outside.iterdir()) == []


def test_folders_are_made_below_a_root_and_never_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "away").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "away")
    make_below(tmp_path / "root", Path("a/b"), None, mode=0o777)
    make_below(tmp_path / "root", Path("a/c/file"), None, is_file=True)
    make_below(tmp_path / "root", Path("a/c/file"), None, is_file=True)
    assert (tmp_path / "root/a/b").stat().st_mode & 0o777 == 0o777
    assert (tmp_path / "root/a/c/file").is_file()
    with pytest.raises(OSError, match=r"link|directory"):
        make_below(tmp_path / "root", Path("link/x"), None)
    assert list((tmp_path / "away").iterdir()) == []


@as_root
def test_a_tree_is_given_away_without_following_its_links(tmp_path: Path) -> None:
    (tmp_path / "root/deep").mkdir(parents=True)
    (tmp_path / "away").touch()
    (tmp_path / "root/deep/link").symlink_to(tmp_path / "away")
    give(tmp_path / "root", FIRST_OF_PODS)
    assert (tmp_path / "root/deep").stat().st_uid == FIRST_OF_PODS
    assert (tmp_path / "root/deep/link").lstat().st_uid == FIRST_OF_PODS
    assert (tmp_path / "away").stat().st_uid == 0


@as_root
async def test_a_source_that_became_a_link_after_it_was_checked_is_not_bound(tmp_path: Path) -> None:
    """The race of a subPath: checked by the node, swapped by the pod, opened by root."""
    (tmp_path / "swapped").symlink_to("/root")
    bound = ["--unshare-user", "--ro-bind", Source("/usr"), "/usr", "--ro-bind", Source(tmp_path / "swapped"), "/x"]
    what = launch.Start(bound, ["/usr/bin/true"], {}, (1, 1), tmp_path / "log", user=FIRST_OF_PODS)
    run = await launch.start(tmp_path / "run", what)
    await run.ended.wait()
    assert run.exit is not None
    assert run.exit.start_error == f"{tmp_path}/swapped: has become a link"


def test_the_user_of_a_pod_is_its_own_or_that_of_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    plain = {"metadata": {"namespace": "a"}, "spec": {}}
    sharing = {"metadata": {"namespace": "a"}, "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}}
    elsewhere = {**sharing, "metadata": {"namespace": "b"}}
    data = Path("/data")
    assert user_of(plain, "127.96.0.1", data) == FIRST_OF_PODS + 1
    assert user_of(plain, "127.96.1.0", data) == FIRST_OF_PODS + 256
    assert user_of(sharing, "127.96.0.1", data) == user_of(sharing, "127.96.0.2", data)
    assert user_of(sharing, "127.96.0.1", data) != user_of(elsewhere, "127.96.0.1", data)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert user_of(plain, "127.96.0.1", data) is None
