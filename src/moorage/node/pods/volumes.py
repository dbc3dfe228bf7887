"""Volumes of a pod on the disk of this node.

Enters: a pod's volumes and their payload. Leaves: one folder (or file) per volume, ready to be bound, and fresh content in
place: files are links into `..data`, which is swapped whole, so a reader sees all old files or all new ones.
It must not know containers; who mounts what is `mounts.py`.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from moorage.core.digest import content_hash
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, is_terminating
from moorage.node.pods.environment import Facts, Missing
from moorage.node.pods.folders import give
from moorage.node.pods.payload import PROJECTIONS, Content, Payload, payload

_DATA = "..data"
_KERNELS = (Path("/proc"), Path("/sys"), Path("/dev"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a volume lies. `ours`: the node made it, so missing mount points may be made inside."""

    path: Path
    read_only: bool = False
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folders of one pod's volumes, and of all claims.

    Attributes:
        folder: where the pod's own volumes lie.
        claims: the folder of PersistentVolumeClaims.
        owner: user and group of what is made; None: ourselves.
        forbidden: the node's data folder, which no hostPath may show.
    """

    folder: Path
    claims: Path
    owner: int | None = None
    forbidden: Path | None = None

    def prepare(self, volumes: list[JsonObject], facts: Facts) -> Mapping[str, Place]:
        """All volumes, made or brought up to date.

        Raises:
            Missing: something that a volume names is not there (yet).
            InputError: a volume cannot be made, or the machine refuses it; says what the machine says.
        """
        places: dict[str, Place] = {}
        for volume in volumes:
            with _told(volume):
                places[volume["name"]] = self._one(volume, facts)
        return places

    def refresh(self, volumes: list[JsonObject], facts: Facts) -> None:
        """Brings projections up to date, in place; one whose source vanished keeps its last content.

        Raises:
            InputError: the machine refuses it, a full disk for one.
        """
        for volume in volumes:
            if any(source in volume for source in PROJECTIONS):
                with _told(volume), suppress(Missing):
                    write(self.folder / volume["name"], payload(volume, facts), self.owner)

    def remove(self) -> None:
        """Deletes the pod's volumes; claims and host paths stay."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _one(self, volume: JsonObject, facts: Facts) -> Place:
        place = self.folder / volume["name"]
        if any(source in volume for source in PROJECTIONS):
            write(place, payload(volume, facts), self.owner)
            return Place(place, read_only=True)
        if "hostPath" in volume:
            return _host_path(volume["hostPath"], self.forbidden)
        if claim := volume.get("persistentVolumeClaim"):
            found = facts.lookup("PersistentVolumeClaim", claim["claimName"])
            if found is None:
                raise Missing(f'persistentvolumeclaim "{claim["claimName"]}" not found')
            place = claim_folder(self.claims, found)
            if is_terminating(found) and not place.is_dir():
                raise Missing(f'persistentvolumeclaim "{claim["claimName"]}" is being deleted')
            _folder(place, self.owner)
            return Place(place, read_only=bool(claim.get("readOnly")))
        if "emptyDir" in volume or set(volume) == {"name"}:
            _folder(place, self.owner)
            return Place(place)
        source = next(key for key in volume if key != "name")
        raise InputError(f"volume {volume['name']!r}", f"the source {source} is not served on one machine")


@contextmanager
def _told(volume: JsonObject) -> Iterator[None]:
    """What the machine refuses is said with the volume's name: a person who reads the pod's events sees no log of ours."""
    try:
        yield
    except OSError as error:
        why = (error.strerror or "the machine refuses it").lower()
        at = f"hostPath {volume['hostPath']['path']}: " if "hostPath" in volume else ""
        raise InputError(f"volume {volume['name']!r}", f"{at}{why}") from error


def claim_folder(claims: Path, claim: JsonObject) -> Path:
    """Where a claim's data lies: a claim that is deleted and made again gets an empty folder, as on Kubernetes."""
    meta = claim["metadata"]
    return claims / str(meta["namespace"]) / str(meta["name"]) / str(meta["uid"])


def _folder(place: Path, owner: int | None) -> None:
    if not place.is_dir():
        place.mkdir(parents=True)
        place.chmod(0o777)
    give(place, owner)


def _host_path(part: JsonObject, forbidden: Path | None) -> Place:
    """A path of the machine, for trusted pods only: the machine's own permissions decide what the pod's user may do there."""
    path, kind = Path(os.path.realpath(part["path"])), part.get("type") or ""
    _refuse(path, forbidden)
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if kind == "FileOrCreate" and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()  # raises for what may not be looked at, which is not the same as not being there
        if kind not in ("Directory", "DirectoryOrCreate") or stat.S_ISDIR(found.st_mode):
            return Place(path, ours=False)
    raise Missing(f"hostPath {path}", f"is not there, or not a {kind or 'path'}")


def _refuse(path: Path, forbidden: Path | None) -> None:
    if any(path.is_relative_to(folder) for folder in _KERNELS):
        raise InputError(f"hostPath {path}", "is a folder of the kernel and is not given to pods")
    if forbidden is not None and (path.is_relative_to(forbidden) or forbidden.is_relative_to(path)):
        raise InputError(f"hostPath {path}", "holds moorage's own data and is not given to pods")


def write(place: Path, files: Payload, owner: int | None = None) -> bool:
    """Makes the content of a projection volume `files`, all at once; says whether anything changed."""
    mark = content_hash({f"{name}:{item.mode:o}": item.data for name, item in files.items()})
    current = place / _DATA
    if current.is_symlink() and os.readlink(current) == f"..{mark}":
        return False
    place.mkdir(parents=True, exist_ok=True)
    old = os.readlink(current) if current.is_symlink() else ""
    fresh = place / f"..{mark}"
    shutil.rmtree(fresh, ignore_errors=True)
    for folder in (place, fresh):
        folder.mkdir(exist_ok=True)
        _close(folder, owner)
    for name, item in files.items():
        _write_file(fresh / name, item, owner)
    draft = place / "..data.new"
    draft.unlink(missing_ok=True)
    draft.symlink_to(f"..{mark}")
    draft.rename(current)
    _link(place, {name.partition("/")[0] for name in files})
    if old:
        shutil.rmtree(place / old, ignore_errors=True)
    return True


def _close(folder: Path, owner: int | None) -> None:
    """Read by the pod's user and nobody else: programs that look (Keystone at its keys) warn of folders that are open to the world."""
    if owner is not None:
        os.chown(folder, -1, owner)
    folder.chmod(0o750)


def _write_file(path: Path, item: Content, owner: int | None) -> None:
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        _close(path.parent, owner)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as out:
        out.write(item.data)
        if owner is not None:
            os.fchown(out.fileno(), owner, owner)
        os.fchmod(out.fileno(), item.mode)


def _link(place: Path, names: set[str]) -> None:
    """One link for each top name; links of names that are gone are taken away."""
    for entry in place.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in names:
        if not (place / name).is_symlink():
            (place / name).symlink_to(f"{_DATA}/{name}")
