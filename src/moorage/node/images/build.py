"""Makes a root filesystem from a recipe, stage by stage, each stage marked when it is done.

Enters: a recipe and a work folder. Leaves: `root/` in the work folder, complete; a second run goes on after the last
finished stage. It must not touch the finished cache (`store.py` renames) nor start any service of the packages.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from moorage.core.errors import EnvironmentError_
from moorage.node.images.recipe import Loaded, PythonPart

Progress = Callable[[str], None]

_HOST_ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "mime.types", "nsswitch.conf", "protocols", "services", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
_TOP_FOLDERS = ("boot", "home", "media", "mnt", "opt", "root", "run", "srv", "tmp", "var/tmp", "var/lib", "var/log")


class ImageBuildError(EnvironmentError_):
    """A stage of an image build failed; the message ends with what the tool said last."""

    code = "image_build_failed"


@dataclass(frozen=True, slots=True)
class Build:
    """One build: the work folder belongs to it alone."""

    recipe: Loaded
    work: Path
    progress: Progress

    @property
    def root(self) -> Path:
        return self.work / "root"

    async def run(self) -> None:
        """All stages that are not done yet.

        Raises:
            ImageBuildError: a tool is missing or failed.
        """
        self.work.mkdir(parents=True, exist_ok=True)
        base = self._debian if self.recipe.file.kind == "debian" else self._host
        await self._stage("base", base)
        if self.recipe.file.python is not None:
            await self._stage("python", self._python)
            await self._stage("compile", self._compile)
        await self._stage("finish", self._finish)

    async def _stage(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        marker = self.work / f"done-{name}"
        if marker.exists():
            return
        self.progress(f"{self.recipe.reference}: {name}")
        await work()
        marker.touch()

    async def _debian(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        sources = self.work / "sources.list"
        sources.write_text(await _debian_sources(self.recipe.file.suite))
        as_root = os.geteuid() == 0
        target = self.root if as_root else self.work / "root.tar"
        command = [
            _tool("mmdebstrap", "apt-get install mmdebstrap"),
            f"--mode={'root' if as_root else 'unshare'}",
            "--variant=essential",
            f"--include={','.join(self.recipe.file.packages)}",
            *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale")),
            self.recipe.file.suite,
            str(target),
            str(sources),
        ]
        await self._tool_run(command)
        if not as_root:
            self.root.mkdir()
            unpack = ["tar", "-xf", str(target), "-C", str(self.root), "--no-same-owner", "--exclude=./dev/*"]
            await self._tool_run(unpack)
            target.unlink()

    async def _host(self) -> None:
        _host_tree(self.root)

    async def _python(self) -> None:
        part = _python_part(self.recipe)
        target = self.root / part.target.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        requirements = self.work / "requirements.txt"
        requirements.write_text(self.recipe.requirements)
        command = [
            _uv(), "pip", "install", "--target", str(target), "--python", sys.executable, "--python-version", part.version,
            "--only-binary", ":all:", "--require-hashes", "--no-deps", "--no-config", "-r", str(requirements),
        ]  # fmt: skip
        await self._tool_run(command)
        scripts = self.root / part.scripts.lstrip("/")
        scripts.mkdir(parents=True, exist_ok=True)
        for script in sorted((target / "bin").iterdir()) if (target / "bin").is_dir() else ():
            _place_script(script, scripts / script.name)

    async def _compile(self) -> None:
        part = _python_part(self.recipe)
        command = [
            _tool("bwrap", "apt-get install bubblewrap"), "--bind", str(self.root), "/", "--proc", "/proc", "--dev", "/dev",
            "--tmpfs", "/tmp", "--unshare-pid", "--die-with-parent", "--",  # noqa: S108 - of the sandbox
            "/usr/bin/python3", "-m", "compileall", "-q", "-j", str(os.cpu_count() or 1), part.target,
        ]  # fmt: skip
        await self._tool_run(command, quiet=True, accept=(0, 1))

    async def _finish(self) -> None:
        wanted = self.recipe.file
        etc = self.root / "etc"
        for user in wanted.users:
            shell = "/usr/sbin/nologin"
            _append_line(etc / "passwd", f"{user.name}:x:{user.uid}:{user.gid}::{user.home}:{shell}")
            _append_line(etc / "group", f"{user.name}:x:{user.gid}:")
        for name in wanted.directories:
            (self.root / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for name, text in wanted.files.items():
            place = self.root / name.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        for leftover in ("etc/resolv.conf", "etc/hostname"):
            (self.root / leftover).unlink(missing_ok=True)

    async def _tool_run(self, command: Sequence[str], *, quiet: bool = False, accept: tuple[int, ...] = (0,)) -> None:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        last: list[str] = []
        try:
            while line := await process.stdout.readline():
                text = line.decode(errors="replace").strip()
                last = [*last[-4:], text]
                if not quiet and text.startswith("I: "):
                    self.progress(f"{self.recipe.reference}: {text[3:]}")
            code = await process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()
            raise
        if code not in accept:
            raise ImageBuildError(
                f"image {self.recipe.reference}", f"{Path(command[0]).name} failed: {' | '.join(last)}"
            )


def _host_tree(root: Path) -> None:
    """The skeleton of a `host` image: links, empty folders, and the few files of /etc that programs need."""
    shutil.rmtree(root, ignore_errors=True)
    for name in (*_TOP_FOLDERS, "usr", "etc", "dev", "proc", "sys"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{name}"):
            (root / name).symlink_to(os.readlink(f"/{name}"))
    for name in _HOST_ETC:
        _copy_in(Path("/etc") / name, root / "etc" / name)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")


async def _debian_sources(suite: str) -> str:
    """The machine's own Debian archives of `suite`, its updates and its security suite, as apt knows them."""
    line = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    command = ("apt-get", "indextargets", "--format", line, "Created-By: Packages", "Origin: Debian")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    found = [item for item in out.decode().splitlines() if item.split()[2].split("-")[0] == suite]
    if not found:
        raise ImageBuildError(f"Debian {suite}", "apt knows no archive of it", "Run apt-get update, or add its sources")
    return "\n".join(dict.fromkeys(found)) + "\n"


def _python_part(recipe: Loaded) -> PythonPart:
    assert recipe.file.python is not None
    return recipe.file.python


def _tool(name: str, how: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ImageBuildError(name, "is not installed", how)
    return found


def _uv() -> str:
    try:
        from uv import find_uv_bin
    except ImportError:
        return _tool("uv", "pip install 'moorage[local]'")
    return str(find_uv_bin())


def _place_script(script: Path, place: Path) -> None:
    """Moves a console script and points its first line to the image's own interpreter."""
    text = script.read_bytes()
    if text.startswith(b"#!") and b"python" in text.split(b"\n", 1)[0]:
        text = b"#!/usr/bin/python3\n" + text.split(b"\n", 1)[1]
    place.write_bytes(text)
    place.chmod(0o755)
    script.unlink()


def _append_line(path: Path, line: str) -> None:
    text = path.read_text() if path.exists() else ""
    if line not in text.splitlines():
        path.write_text(text + line + "\n")


def _copy_in(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, place, symlinks=True)
    elif source.exists():
        shutil.copy2(source, place)
