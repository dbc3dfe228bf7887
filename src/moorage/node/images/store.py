"""The images that this node can run: looked up by reference, built once, kept outside the checkout.

Enters: image references of pods. Leaves: `Found`, `Building` or `Missing`, at once; builds run behind.
It must not block a caller for the length of a build, and two processes never build one image at the same time.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from moorage.core.errors import InputError, MoorageError
from moorage.node.images.build import Build
from moorage.node.images.recipe import Loaded, load
from moorage.node.images.rootfs import RootFs, finished

_LOCK_LOOK = 0.2
"""Seconds between two looks at a lock that another process holds."""
_RETRY_AFTER = 30.0


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/moorage/images`, by default `~/.cache/moorage/images`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "moorage" / "images"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe offered to pods.

    `names`: patterns (shell style) of references. A pattern without a tag stands for that repository with the tag
    of the recipe, or with no tag; `repository:*` takes any tag.
    """

    names: tuple[str, ...]
    folder: Path

    def serves(self, reference: str, recipe: Loaded) -> bool:
        repository, tag = split_reference(reference)
        for pattern in self.names:
            wanted, wanted_tag = split_reference(pattern)
            accepted = wanted_tag or recipe.file.tag
            if fnmatchcase(repository, wanted) and (not tag or fnmatchcase(tag, accepted)):
                return True
        return False


def split_reference(reference: str) -> tuple[str, str]:
    """Repository and tag (or digest) of an image reference; the tag is empty where there is none."""
    repository, at, digest = reference.partition("@")
    if at:
        return repository, digest
    head, colon, tag = reference.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (reference, "")


@dataclass(frozen=True, slots=True)
class Found:
    """The root filesystem is there."""

    rootfs: RootFs


@dataclass(frozen=True, slots=True)
class Pending:
    """Not there: `reason` is ImageBuilding, ImageBuildFailed, ImageNotFound or ErrImageNeverPull."""

    reason: str
    message: str


@dataclass(slots=True)
class _Job:
    task: asyncio.Task[None] | None = None
    said: str = ""
    failed: str = ""
    retry_at: float = 0.0


@dataclass(slots=True)
class ImageStore:
    """All recipes of one node and their builds."""

    recipes: Sequence[Recipe]
    cache: Path
    say: Callable[[str], None]
    changed: Callable[[], None] = lambda: None
    _jobs: dict[str, _Job] = field(default_factory=dict)

    def look(self, reference: str, policy: str = "IfNotPresent") -> Found | Pending:
        """What is known of an image now; starts the build of a known recipe that is not built yet."""
        try:
            recipe = self._recipe(reference)
        except InputError as error:
            return Pending("ImageNotFound", f"the recipe of {reference} cannot be used: {error}")
        if recipe is None:
            return Pending("ImageNotFound", self._unknown(reference))
        folder = self.cache / recipe.folder_name
        if (folder / "root").is_dir():
            return Found(finished(recipe, folder))
        if policy == "Never":
            return Pending("ErrImageNeverPull", f"image {reference} is not built and imagePullPolicy is Never")
        return self._build(recipe)

    async def prepare(self, reference: str) -> RootFs:
        """The root filesystem of a reference, built now if need be.

        Raises:
            InputError: no recipe gives this reference, or the recipe is unusable.
            ImageBuildError: the build failed.
        """
        recipe = self._recipe(reference)
        if recipe is None:
            raise InputError(f"image {reference}", self._unknown(reference))
        await self._make(recipe, self.say)
        return finished(recipe, self.cache / recipe.folder_name)

    async def close(self) -> None:
        """Ends the builds that run; what they finished is kept for the next start."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _recipe(self, reference: str) -> Loaded | None:
        for offered in self.recipes:
            recipe = load(offered.folder)
            if offered.serves(reference, recipe):
                return recipe
        return None

    def _unknown(self, reference: str) -> str:
        known = ", ".join(load(offered.folder).reference for offered in self.recipes) or "none"
        return (
            f"no recipe gives image {reference!r}; known: {known}. Write a folder with an image.toml and start with "
            "moorage up --image NAME=FOLDER"
        )

    def _build(self, recipe: Loaded) -> Pending:
        job = self._jobs.setdefault(recipe.digest, _Job())
        loop = asyncio.get_running_loop()
        if job.task is None and loop.time() >= job.retry_at:
            job.said, job.failed = f"{recipe.reference}: waiting for the builder", ""
            job.task = loop.create_task(self._watch(recipe, job))
        if job.failed:
            return Pending("ImageBuildFailed", job.failed)
        return Pending("ImageBuilding", job.said)

    async def _watch(self, recipe: Loaded, job: _Job) -> None:
        def said(text: str) -> None:
            job.said = text
            self.say(text)
            self.changed()

        try:
            await self._make(recipe, said)
        except (MoorageError, OSError) as error:
            job.failed = str(error)
            self.say(f"{recipe.reference}: {error}")
            loop = asyncio.get_running_loop()
            job.retry_at = loop.time() + _RETRY_AFTER
            loop.call_later(_RETRY_AFTER, self.changed)
        finally:
            job.task = None
            self.changed()

    async def _make(self, recipe: Loaded, progress: Callable[[str], None]) -> None:
        self.cache.mkdir(parents=True, exist_ok=True)
        place = self.cache / recipe.folder_name
        work = self.cache / f"{recipe.folder_name}.partial"
        with (self.cache / f"{recipe.folder_name}.lock").open("a") as lock:
            await _locked(lock.fileno(), lambda: progress(f"{recipe.reference}: another process builds it"))
            if (place / "root").is_dir():
                return
            await Build(recipe, work, progress).run()
            (work / "sources.list").unlink(missing_ok=True)
            shutil.rmtree(place, ignore_errors=True)
            work.rename(place)
            progress(f"{recipe.reference}: ready")


async def _locked(descriptor: int, waiting: Callable[[], None]) -> None:
    """Takes an exclusive lock that dies with this process."""
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not told:
                waiting()
            told = True
            await asyncio.sleep(_LOCK_LOOK)
        else:
            return
