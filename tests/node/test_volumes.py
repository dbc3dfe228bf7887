"""Volumes: what a container finds at its mount paths, and how it changes under it."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import CONFIG_MAPS, EVENTS, PODS, PVCS, SECRETS
from moorage.node.pods.environment import Facts, Missing
from moorage.node.pods.payload import Content, payload
from moorage.node.pods.volumes import Shelf, claim_folder, write

from .conftest import PYTHON, Machine, eventually, is_ready, phase, pod
from .test_pods import FOREVER

CONFIG: JsonObject = {
    "kind": "ConfigMap",
    "data": {"a": "A", "b": "B"},
    "binaryData": {"c": base64.b64encode(b"\xff").decode()},
}
SECRET: JsonObject = {"kind": "Secret", "data": {"key": base64.b64encode(b"s3cret").decode()}}
POD: JsonObject = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"b": "2", "a": 'q"1'}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}}}]},
}


def facts(**objects: JsonObject) -> Facts:
    return Facts(POD, lambda kind, name: objects.get(name), "127.96.0.1")


def test_a_config_map_gives_a_file_for_each_key() -> None:
    found = payload({"name": "v", "configMap": {"name": "cm", "defaultMode": 0o400}}, facts(cm=CONFIG))
    assert found == {"a": Content(b"A", 0o400), "b": Content(b"B", 0o400), "c": Content(b"\xff", 0o400)}


def test_items_choose_keys_paths_and_modes() -> None:
    items = [{"key": "key", "path": "deep/er/k", "mode": 0o440}]
    found = payload({"name": "v", "secret": {"secretName": "s", "items": items}}, facts(s=SECRET))
    assert found == {"deep/er/k": Content(b"s3cret", 0o440)}


def test_what_is_missing_is_named_unless_it_is_optional() -> None:
    with pytest.raises(Missing, match='secret "s" not found'):
        payload({"name": "v", "secret": {"secretName": "s"}}, facts())
    assert payload({"name": "v", "secret": {"secretName": "s", "optional": True}}, facts()) == {}
    with pytest.raises(Missing, match="nokey"):
        payload({"name": "v", "configMap": {"name": "cm", "items": [{"key": "nokey", "path": "x"}]}}, facts(cm=CONFIG))


def test_the_downward_api_and_projections_share_one_folder() -> None:
    limit = {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"}
    fields = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "memory", "resourceFieldRef": limit},
    ]
    sources = [{"downwardAPI": {"items": fields}}, {"secret": {"name": "s"}}]
    found = payload({"name": "v", "projected": {"sources": sources, "defaultMode": 0o600}}, facts(s=SECRET))
    assert {name: item.data for name, item in found.items()} == {
        "labels": b'a="q\\"1"\nb="2"',
        "memory": b"64",
        "key": b"s3cret",
    }
    assert {item.mode for item in found.values()} == {0o600}


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "..data/x"])
def test_an_item_cannot_leave_its_volume(path: str) -> None:
    with pytest.raises(InputError, match="must not leave"):
        payload({"name": "v", "configMap": {"name": "cm", "items": [{"key": "a", "path": path}]}}, facts(cm=CONFIG))


def _looping(folder: Path) -> Path:
    (folder / "loop").symlink_to(folder / "loop")
    return folder / "loop"


@pytest.mark.parametrize("kind", ["", "Directory", "DirectoryOrCreate", "FileOrCreate"])
def test_a_host_path_that_cannot_be_looked_at_says_what_the_machine_says(tmp_path: Path, kind: str) -> None:
    """A loop of links, a name that is too long: neither is simply not there, nor a bug of ours."""
    shelf = Shelf(tmp_path / "v", tmp_path / "claims")
    looping = {_looping(tmp_path): "too many levels of symbolic links|file exists"}
    for path, why in {**looping, Path("/" + "a" * 300): "name too long"}.items():
        with pytest.raises(InputError, match=f"volume 'h': hostPath {path}: .*({why})"):
            shelf.prepare([{"name": "h", "hostPath": {"path": str(path), "type": kind}}], facts())


def test_a_host_path_below_a_file_or_of_another_kind_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shelf = Shelf(tmp_path / "v", tmp_path / "claims")
    for path, kind in ((tmp_path / "file" / "x", ""), (tmp_path / "file", "Directory"), (tmp_path / "none", "")):
        with pytest.raises(Missing, match="is not there"):
            shelf.prepare([{"name": "h", "hostPath": {"path": str(path), "type": kind}}], facts())


def test_a_projection_that_the_disk_refuses_is_named(tmp_path: Path) -> None:
    """First or later: a full disk looks like this."""
    (tmp_path / "v").write_text("in the way")
    shelf, volumes = Shelf(tmp_path / "v", tmp_path / "claims"), [{"name": "s", "secret": {"secretName": "s"}}]
    with pytest.raises(InputError, match="volume 's': not a directory"):
        shelf.prepare(volumes, facts(s=SECRET))
    with pytest.raises(InputError, match="volume 's': not a directory"):
        shelf.refresh(volumes, facts(s=SECRET))


async def test_a_host_path_that_cannot_be_looked_at_is_told_by_an_event_and_the_container(machine: Machine) -> None:
    volumes = [{"name": "h", "hostPath": {"path": str(_looping(machine.data.parent))}}]
    container = {"volumeMounts": [{"name": "h", "mountPath": "/h"}]}
    await machine.client.create(PODS, pod("looks", "/bin/true", container=container, volumes=volumes))
    await machine.until(PODS, "looks", lambda item: "too many levels" in json.dumps(item.get("status")))

    async def told() -> bool:
        events = (await machine.client.list(EVENTS, "default")).items
        return any(item["reason"] == "FailedMount" and "too many levels" in json.dumps(item) for item in events)

    await eventually(told)


def test_a_rewrite_swaps_all_files_at_once_and_an_equal_one_does_nothing(tmp_path: Path) -> None:
    assert write(tmp_path / "v", {"a": Content(b"1", 0o640), "d/b": Content(b"1", 0o600)})
    held = os.open(tmp_path / "v", os.O_RDONLY)
    first = os.readlink(tmp_path / "v" / "..data")
    assert not write(tmp_path / "v", {"a": Content(b"1", 0o640), "d/b": Content(b"1", 0o600)})
    assert write(tmp_path / "v", {"a": Content(b"2", 0o640), "c": Content(b"2", 0o600)})
    assert os.readlink(tmp_path / "v" / "..data") != first
    assert sorted(name for name in os.listdir(held) if not name.startswith("..")) == ["a", "c"]
    assert (tmp_path / "v" / "a").read_bytes() == b"2"
    assert (tmp_path / "v" / "a").stat().st_mode & 0o777 == 0o640
    os.close(held)


def test_a_volume_source_that_is_not_served_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nfs"):
        Shelf(tmp_path, tmp_path).prepare([{"name": "v", "nfs": {"server": "x"}}], facts())


async def test_mounts_appear_at_their_exact_paths_even_where_the_image_has_none(machine: Machine) -> None:
    await machine.client.create(CONFIG_MAPS, _object("ConfigMap", "cm", data={"keystone.conf": "[x]", "hosts": "h"}))
    mounts = [
        {"name": "cm", "mountPath": "/etc/keystone/keystone.conf.d", "readOnly": True},
        {"name": "scratch", "mountPath": "/etc/keystone/fernet-keys"},
        {"name": "cm", "mountPath": "/opt/one/file.conf", "subPath": "keystone.conf"},
        {"name": "scratch", "mountPath": "/usr/share/new/place"},
        {"name": "scratch", "mountPath": "/run/pod"},
        {"name": "scratch", "mountPath": "/var/outer"},
        {"name": "inner", "mountPath": "/var/outer/inner"},
    ]
    volumes = [
        {"name": "cm", "configMap": {"name": "cm"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "inner", "emptyDir": {}},
    ]
    script = (
        "import os, json\n"
        "open('/run/pod/x', 'w').write('1'); open('/var/outer/inner/y', 'w').write('2')\n"
        "print(json.dumps([sorted(os.listdir('/etc/keystone')), open('/etc/keystone/keystone.conf.d/keystone.conf').read(),"
        " open('/opt/one/file.conf').read(), os.listdir('/usr/share/new/place'), os.listdir('/var/outer/inner'),"
        " os.path.exists('/usr/share/zoneinfo'), os.access('/etc/keystone', os.W_OK)]))"
    )
    wanted = pod(
        "mounts", PYTHON, "-c", script, restartPolicy="Never", volumes=volumes, container={"volumeMounts": mounts}
    )
    await machine.client.create(PODS, wanted)
    await machine.until(PODS, "mounts", phase("Succeeded"))
    names, conf, single, place, inner, zones, writable = json.loads(machine.log("mounts")[0])
    assert names == ["fernet-keys", "keystone.conf.d"]
    assert (conf, single, inner) == ("[x]", "[x]", ["y"])
    assert sorted(place) == ["inner", "x"]
    assert zones
    assert not writable


async def test_a_changed_secret_is_seen_in_place_by_a_running_pod(machine: Machine) -> None:
    await machine.client.create(SECRETS, _object("Secret", "keys", stringData={"0": "old"}))
    script = "import time\nwhile open('/keys/0').read() == 'old': time.sleep(0.02)\nprint(open('/keys/0').read(), open('/keys/1').read())"
    mounts = {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    volumes = [{"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}}]
    wanted = pod(
        "reads",
        PYTHON,
        "-c",
        script,
        restartPolicy="Never",
        volumes=volumes,
        container=mounts,
        securityContext={"runAsUser": 42424},
    )
    await machine.client.create(PODS, wanted)
    await machine.until(PODS, "reads", is_ready)
    await machine.client.patch(SECRETS, Key("default", "keys"), {"stringData": {"0": "new", "1": "more"}})
    await machine.until(PODS, "reads", phase("Succeeded"))
    assert machine.log("reads") == ["new more"]


async def test_a_deleted_claim_waits_for_its_pods_and_leaves_no_folder(machine: Machine) -> None:
    """S25: a folder that nobody saw deleted stayed for ever. The claim goes last, so there is always somebody to do it."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await machine.client.create(PVCS, _object("PersistentVolumeClaim", "d", spec=spec))
    claim = await machine.until(PVCS, "d", lambda item: item["metadata"].get("finalizers"))
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    await machine.client.create(PODS, pod("user", *FOREVER, volumes=volumes, container=mounts))
    await machine.until(PODS, "user", is_ready)
    folder = claim_folder(machine.data / "volumes", claim)
    assert folder.is_dir()
    await machine.client.delete(PVCS, Key("default", "d"))
    held = await machine.client.get(PVCS, Key("default", "d"))
    assert held["metadata"]["deletionTimestamp"]
    await machine.client.delete(PODS, Key("default", "user"))
    await machine.gone(PVCS, "d")
    assert not (machine.data / "volumes" / "default").exists()
    assert not (machine.data / "logs" / "default").exists()


async def test_a_claim_that_was_deleted_while_no_node_ran_is_cleared_away_by_the_next(machine: Machine) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await machine.client.create(PVCS, _object("PersistentVolumeClaim", "d", spec=spec))
    claim = await machine.until(PVCS, "d", lambda item: item["metadata"].get("finalizers"))
    claim_folder(machine.data / "volumes", claim).mkdir(parents=True)
    await machine.stop()
    await machine.client.delete(PVCS, Key("default", "d"))
    await machine.start()
    await machine.gone(PVCS, "d")
    assert not (machine.data / "volumes" / "default").exists()


async def test_a_claim_outlives_its_pods(machine: Machine) -> None:
    claim = _object(
        "PersistentVolumeClaim",
        "data",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    )
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    spec = {"restartPolicy": "Never", "volumes": volumes, "container": mounts}
    await machine.client.create(PODS, pod("writes", "/bin/sh", "-c", "echo kept > /data/f", **spec))
    await machine.until(PODS, "writes", lambda item: 'claim \\"data\\" not found' in json.dumps(item.get("status")))
    await machine.client.create(PVCS, claim)
    await machine.until(PODS, "writes", phase("Succeeded"))
    await machine.client.delete(PODS, Key("default", "writes"))
    await machine.client.create(PODS, pod("reads", "/bin/cat", "/data/f", **spec))
    await machine.until(PODS, "reads", phase("Succeeded"))
    assert machine.log("reads") == ["kept"]


def _object(kind: str, name: str, **parts: object) -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **parts}
