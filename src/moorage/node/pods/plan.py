"""From a container of a pod spec to what is started: image, identity, mounts, command, environment.

Enters: a pod, one of its containers, its image, the places of its volumes. Leaves: a `Start`, or `Missing`/`InputError`
with the sentence for the status. It must not start anything.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject
from moorage.node.images.rootfs import RootFs
from moorage.node.pods.environment import Facts, Missing, command, environment, expand
from moorage.node.pods.folders import make_below
from moorage.node.pods.launch import Start
from moorage.node.pods.sandbox import Box, Mount, arguments, nested
from moorage.node.pods.volumes import Place

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TERMINATION_LOG = "/dev/termination-log"


class RunAsRoot(InputError):
    """The pod says runAsNonRoot and the container would run as root."""

    code = "run_as_root"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a pod gives to each of its containers.

    Attributes:
        etc: the folder with `hosts` and `hostname`.
        user: the user of this machine that runs the pod (users.py).
    """

    facts: Facts
    places: Mapping[str, Place]
    etc: Path
    user: int | None = None


def start_of(container: JsonObject, setting: Setting, rootfs: RootFs, run: Path, log: Path) -> Start:
    """What to start for a container.

    Args:
        run: the folder of this run; the termination log lies in it.
        log: the log file of this run.

    Raises:
        Missing: something that the container names is not there (yet).
        InputError: the container can never run as declared.
    """
    uid, gid = identity(setting.facts.pod, container, rootfs)
    pod_values = environment(container, setting.facts)
    values = {
        "PATH": _PATH,
        "HOSTNAME": hostname(setting.facts.pod),
        **rootfs.environment,
        **pod_values,
    }
    values.setdefault("HOME", "/")
    termination = run / "termination-log"
    message_path = container.get("terminationMessagePath") or TERMINATION_LOG
    mounts = [*container_mounts(container, setting, values), Mount(termination, message_path, is_file=True)]
    box = Box(
        rootfs=rootfs,
        mounts=mounts,
        pod_folder=setting.etc,
        hostname=hostname(setting.facts.pod),
        uid=uid,
        gid=gid,
        working_directory=working_directory(container, rootfs),
    )
    told = arguments(box)
    for volume, point, is_file in nested(box):
        _make_point(volume, point, setting.user, is_file)
    termination.touch()
    termination.chmod(0o666)
    words = command(container, rootfs.entrypoint, pod_values)
    return Start(told, words, values, (uid, gid), log, user=setting.user)


def working_directory(container: JsonObject, rootfs: RootFs) -> str:
    """Where the first process starts."""
    return str(container.get("workingDir") or rootfs.working_directory)


def hostname(pod: JsonObject) -> str:
    """The name of the pod's machine, as the pod sees it."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def identity(pod: JsonObject, container: JsonObject, rootfs: RootFs) -> tuple[int, int]:
    """The user and group of a container: its own security context, the pod's, the image's.

    Raises:
        RunAsRoot: runAsNonRoot is declared and the user is 0.
    """
    wanted = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    uid = wanted.get("runAsUser", rootfs.uid)
    gid = wanted.get("runAsGroup", rootfs.gid if uid == rootfs.uid else 0)
    if wanted.get("runAsNonRoot") and uid == 0:
        raise RunAsRoot("container has runAsNonRoot and image will run as root")
    return int(uid), int(gid)


def container_mounts(container: JsonObject, setting: Setting, values: Mapping[str, str]) -> list[Mount]:
    """The declared mounts of a container, `subPath` resolved.

    Raises:
        InputError: a mount names an unknown volume, or its subPath leaves the volume.
        Missing: the subPath is not in the volume.
    """
    found = []
    for item in container.get("volumeMounts") or ():
        place = setting.places.get(item["name"])
        if place is None:
            raise InputError(f"volumeMount {item['name']!r}", "names no volume of the pod")
        sub = item.get("subPath") or expand(item.get("subPathExpr") or "", values)
        source = _sub_path(place, sub, setting.user) if sub else place.path.resolve()
        read_only = place.read_only or bool(item.get("readOnly"))
        if ".." in item["mountPath"].split("/"):
            raise InputError(f"mountPath {item['mountPath']!r}", "must not contain '..'")
        target = posixpath.normpath("/" + item["mountPath"].lstrip("/"))
        found.append(Mount(source, target, read_only, is_file=not source.is_dir()))
    return found


def _sub_path(place: Place, sub: str, user: int | None) -> Path:
    """The real path of a part of a volume; links that leave the volume are refused before anything is made."""
    if sub.startswith("/") or ".." in sub.split("/"):
        raise InputError(f"subPath {sub!r}", "must be relative and must not contain '..'")
    root = place.path.resolve()
    real = (root / sub).resolve()
    if not real.is_relative_to(root):
        raise InputError(f"subPath {sub!r}", "leaves the volume")
    if place.ours and not place.read_only and not real.exists():
        _make(root, real.relative_to(root), user, f"subPath {sub!r}", mode=0o777)
    if not real.exists():
        raise Missing(f"subPath {sub!r}", "is not in the volume")
    return real


def _make_point(volume: Path, point: Path, user: int | None, is_file: bool) -> None:
    """A mount point inside a volume; in a foreign read-only folder it must be there already."""
    if not os.path.lexists(volume / point):
        _make(volume, point, user, f"mount point {point.name}", is_file=is_file)


def _make(root: Path, part: Path, user: int | None, what: str, *, is_file: bool = False, mode: int = 0o755) -> None:
    try:
        make_below(root, part, user, is_file=is_file, mode=mode)
    except OSError as error:
        raise InputError(what, f"cannot be made inside a volume: {error.strerror}") from error
