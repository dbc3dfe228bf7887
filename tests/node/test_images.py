"""Images: recipes, references, builds, and the Containerfiles made from the same recipes."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

import moorage
from moorage.core.errors import InputError
from moorage.node.containerfile import containerfile
from moorage.node.images.build import Build, ImageBuildError
from moorage.node.images.recipe import load
from moorage.node.images.store import Found, ImageStore, Pending, Recipe, split_reference
from moorage.node.options import HOST_IMAGE

KEYSTONE = Path(moorage.__file__).parent / "keystone" / "service" / "image"
COMMITTED = Path(__file__).parents[2] / "deploy" / "images"


def store(cache: Path, *recipes: Recipe) -> ImageStore:
    return ImageStore(recipes or (HOST_IMAGE,), cache, lambda _: None)


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("a/b", ("a/b", "")),
        ("a/b:1", ("a/b", "1")),
        ("host:5000/a/b", ("host:5000/a/b", "")),
        ("host:5000/a:v2", ("host:5000/a", "v2")),
        ("a@sha256:00", ("a", "sha256:00")),
    ],
)
def test_a_reference_is_a_repository_and_a_tag(reference: str, parts: tuple[str, str]) -> None:
    assert split_reference(reference) == parts


def test_a_recipe_serves_its_own_tag_unless_the_pattern_says_any() -> None:
    keystone = load(KEYSTONE)
    assert Recipe(("moorage/keystone",), KEYSTONE).serves("moorage/keystone:30.0.0", keystone)
    assert not Recipe(("moorage/keystone",), KEYSTONE).serves("moorage/keystone:29.0.0", keystone)
    assert Recipe(("example/*:*",), KEYSTONE).serves("example/keystone:2026.2", keystone)


def test_a_wrong_field_of_a_recipe_is_named(tmp_path: Path) -> None:
    (tmp_path / "image.toml").write_text('name = "x"\ntag = "1"\npackage = ["a"]\n')
    with pytest.raises(InputError, match="package"):
        load(tmp_path)


def test_the_digest_follows_the_requirements(tmp_path: Path) -> None:
    text = 'name = "x"\ntag = "1"\n[python]\nversion = "3.11"\nrequirements = "r.txt"\ntarget = "/opt/x"\n'
    (tmp_path / "image.toml").write_text(text)
    (tmp_path / "r.txt").write_text("a==1\n")
    before = load(tmp_path).digest
    (tmp_path / "r.txt").write_text("a==2\n")
    assert load(tmp_path).digest != before


async def test_a_known_image_is_built_behind_and_found_then(tmp_path: Path) -> None:
    changed = asyncio.Event()
    images = ImageStore((HOST_IMAGE,), tmp_path, lambda _: None, changed.set)
    first = images.look("moorage/host")
    assert isinstance(first, Pending)
    assert first.reason == "ImageBuilding"
    while not isinstance(found := images.look("moorage/host"), Found):
        await changed.wait()
        changed.clear()
    assert (found.rootfs.root / "bin").is_symlink()
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".partial")]


async def test_never_pulling_an_image_that_is_not_built_says_so(tmp_path: Path) -> None:
    found = store(tmp_path).look("moorage/host", "Never")
    assert isinstance(found, Pending)
    assert found.reason == "ErrImageNeverPull"


async def test_two_builders_of_one_image_wait_for_each_other(tmp_path: Path) -> None:
    said: list[str] = []
    waiting = asyncio.Event()

    def say(text: str) -> None:
        said.append(text)
        waiting.set()

    images = ImageStore((HOST_IMAGE,), tmp_path, say)
    recipe = load(HOST_IMAGE.folder)
    with (tmp_path / f"{recipe.folder_name}.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        task = asyncio.create_task(images.prepare("moorage/host"))
        await waiting.wait()
        assert "another process builds it" in said[0]
        assert not (tmp_path / recipe.folder_name).exists()
    assert (await task).root.is_dir()


async def test_a_build_goes_on_after_its_last_finished_stage(tmp_path: Path) -> None:
    said: list[str] = []
    recipe = load(HOST_IMAGE.folder)
    await Build(recipe, tmp_path / "w", said.append).run()
    (tmp_path / "w" / "done-finish").unlink()
    said.clear()
    await Build(recipe, tmp_path / "w", said.append).run()
    assert said == ["moorage/host:local: finish"]


async def test_a_failed_build_says_what_the_tool_said(tmp_path: Path) -> None:
    (tmp_path / "image.toml").write_text('name = "x"\ntag = "1"\nsuite = "nosuchsuite"\n')
    with pytest.raises(ImageBuildError, match="nosuchsuite"):
        await Build(load(tmp_path), tmp_path / "w", lambda _: None).run()


@pytest.mark.parametrize(("name", "folder"), [("keystone", "image"), ("keystone-federation-proxy", "sidecar")])
def test_the_committed_containerfile_follows_from_the_recipe(name: str, folder: str) -> None:
    """Regenerate: make generate"""
    assert (COMMITTED / name / "Containerfile").read_text() == containerfile(load(KEYSTONE.with_name(folder)))


def test_a_recipe_that_borrows_the_machine_has_no_containerfile() -> None:
    with pytest.raises(InputError, match="kind host"):
        containerfile(load(HOST_IMAGE.folder))


def test_requirements_name_no_index_and_pin_every_hash() -> None:
    lines = (KEYSTONE / "requirements.txt").read_text().splitlines()
    assert not [line for line in lines if "://" in line or line.startswith("--index")]
    pins = [index for index, line in enumerate(lines) if "==" in line and not line.lstrip().startswith("#")]
    assert pins
    assert all("--hash=sha256:" in lines[index + 1] for index in pins)
