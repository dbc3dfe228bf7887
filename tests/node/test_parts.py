"""Small parts on their own: logs, limits, start, sandbox arguments, templates, status."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.core.meta import JsonObject
from moorage.node.cgroups import Cgroups
from moorage.node.controllers.claim import status_of as claim_status
from moorage.node.controllers.templates import pod_from
from moorage.node.images.rootfs import RootFs
from moorage.node.pods.environment import expand
from moorage.node.pods.sandbox import Box, Mount, arguments
from moorage.node.pods.shim import Log
from moorage.node.pods.status import Seen, View, phase_of


def lines(path: Path) -> list[tuple[str, str, str]]:
    return [tuple(line.split(" ", 3)[1:]) for line in path.read_text().splitlines()]  # type: ignore[misc]


def test_log_lines_carry_time_stream_and_tag_and_long_ones_come_in_parts(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "0.log"), 10**6, 2)
    log.feed("stdout", b"one\ntw")
    log.feed("stdout", b"o\n" + b"x" * 20_000 + b"\n")
    log.feed("stderr", b"no end")
    log.finish()
    found = lines(tmp_path / "0.log")
    assert found[:2] == [("stdout", "F", "one"), ("stdout", "F", "two")]
    assert [(stream, tag, len(text)) for stream, tag, text in found[2:4]] == [
        ("stdout", "P", 16384),
        ("stdout", "F", 3616),
    ]
    assert found[4] == ("stderr", "F", "no end")


def test_a_log_is_rotated_by_size_and_only_so_many_are_kept(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "0.log"), 200, 2)
    for number in range(40):
        log.feed("stdout", b"line %d\n" % number)
    log.finish()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["0.log", "0.log.1", "0.log.2"]


def test_without_cgroup_v2_the_reason_is_known(tmp_path: Path) -> None:
    assert Cgroups.detect(tmp_path).reason == f"{tmp_path} is not a cgroup v2 hierarchy"
    (tmp_path / "cgroup.controllers").write_text("pids io")
    assert "cpu, memory" in Cgroups.detect(tmp_path).reason


def test_limits_are_written_where_the_tree_is_writable(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "moorage", tmp_path / "moorage" / "uid"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpu memory pids")
    found = Cgroups.detect(tmp_path).make("uid", "main", {"cpu": "500m", "memory": "64Mi"})
    assert found is not None
    assert (found / "memory.max").read_text() == str(64 * 2**20)
    assert (found / "cpu.max").read_text() == "50000 100000"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$(B)", "$(B)"),
        ("$A", "$A"),
        ("a$(A)$(A)b", "a11b"),
        ("$$$(A)", "$1"),
        ("$(A", "$(A"),
    ],
)
def test_references_expand_as_on_kubernetes(text: str, wanted: str) -> None:
    assert expand(text, {"A": "1"}) == wanted


def test_only_what_must_be_is_opened(tmp_path: Path) -> None:
    """`/usr` stays one bind unless a mount point is missing in it; links of the image are followed."""
    root = tmp_path / "root"
    for name in ("usr/bin", "usr/share/doc", "etc/ssl", "var/lib", "run"):
        (root / name).mkdir(parents=True)
    (root / "var/run").symlink_to("../run")
    rootfs = RootFs("x:1", root, 0, 0)

    def told(*targets: str) -> list[str]:
        mounts = [Mount(tmp_path, target) for target in targets]
        return arguments(Box(rootfs, mounts, tmp_path, "p", 1, 1))

    def pairs(found: list[str], flag: str) -> list[str]:
        return [found[index + 2] for index, word in enumerate(found) if word == flag]

    assert "/usr" in pairs(told("/usr/share/doc"), "--ro-bind")
    opened = told("/usr/share/new/place")
    assert "/usr" not in pairs(opened, "--ro-bind")
    assert {"/usr/bin", "/usr/share/doc"} <= set(pairs(opened, "--ro-bind"))
    assert pairs(told("/var/run/app"), "--bind") == ["/run/app"]


TEMPLATE: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}


def test_a_pod_from_a_template_is_owned_and_bound() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r" * 80, "namespace": "n", "uid": "u"},
    }
    made = pod_from(TEMPLATE, owner, "local")
    assert made["metadata"]["generateName"] == "r" * 57 + "-"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert made["spec"]["nodeName"] == "local"


def seen(code: int | None = None, *, last: bool = False) -> Seen:
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
    return Seen(state, {"terminated": {}} if last else {}, ready=True, started=True)


@pytest.mark.parametrize(
    ("policy", "codes", "wanted"),
    [
        ("Always", (None, None), "Running"),
        ("Always", (0, None), "Running"),
        ("Never", (0, 0), "Succeeded"),
        ("Never", (0, 1), "Failed"),
        ("Never", (1, None), "Running"),
        ("OnFailure", (0, 1), "Running"),
        ("OnFailure", (0, 0), "Succeeded"),
    ],
)
def test_the_phase_follows_from_the_containers(policy: str, codes: tuple[int | None, int | None], wanted: str) -> None:
    pod = {"spec": {"restartPolicy": policy, "containers": [{"name": "a"}, {"name": "b"}]}}
    view = View({"a": seen(codes[0]), "b": seen(codes[1])}, "127.96.0.1", "127.0.0.1", "now")
    assert phase_of(pod, view) == wanted


def test_a_claim_is_bound_at_once() -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    assert claim_status(claim) == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
