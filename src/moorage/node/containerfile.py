"""A Containerfile from an image recipe, so that Kubernetes runs what one machine runs. Pure.

Enters: a recipe. Leaves: the text of `deploy/images/<name>/Containerfile`; a test compares it with what is committed.
It must not name a registry: the base image is an argument of the build.
"""

from __future__ import annotations

import json
import shlex

from moorage.core.errors import InputError
from moorage.node.images.recipe import Loaded, PythonPart, RecipeFile, load

_HEAD = "# Generated from image.toml by moorage.node.containerfile; do not edit. A test compares them.\n"


def containerfile(recipe: Loaded) -> str:
    """The text of a Containerfile. Build it in the recipe's folder: the requirements file is copied from there.

    Raises:
        InputError: the recipe borrows this machine's `/usr`, which no container image can.
    """
    wanted = recipe.file
    if wanted.kind != "debian":
        raise InputError(f"image {recipe.reference}", f"a recipe of kind {wanted.kind} has no container image")
    parts = [
        f"ARG BASE=debian:{wanted.suite}-slim\nFROM ${{BASE}}",
        _packages(wanted),
        *_users(wanted),
        *_folders(wanted),
        *_files(wanted),
        *([_python(wanted.python)] if wanted.python else []),
        *_settings(wanted),
    ]
    return _HEAD + "\n\n".join(parts) + "\n"


def _packages(wanted: RecipeFile) -> str:
    names = sorted({*wanted.packages, *(["python3-pip"] if wanted.python else [])})
    lines = " \\\n      ".join(names)
    return (
        "RUN apt-get update \\\n && apt-get install -y --no-install-recommends \\\n      "
        f"{lines} \\\n && rm -rf /var/lib/apt/lists/*"
    )


def _users(wanted: RecipeFile) -> list[str]:
    made = [
        f"groupadd --gid {user.gid} {user.name} && useradd --uid {user.uid} --gid {user.gid} --home-dir {user.home} "
        f"--no-create-home --shell /usr/sbin/nologin {user.name}"
        for user in wanted.users
    ]
    return [f"RUN {' && '.join(made)}"] if made else []


def _folders(wanted: RecipeFile) -> list[str]:
    if not wanted.directories:
        return []
    names = " ".join(map(shlex.quote, wanted.directories))
    owner = next((user for user in wanted.users if user.name == wanted.user), None)
    own = f" && chown {owner.uid}:{owner.gid} {names}" if owner else ""
    return [f"RUN mkdir -p {names}{own}"]


def _files(wanted: RecipeFile) -> list[str]:
    return [f"COPY <<'END' {name}\n{text.rstrip(chr(10))}\nEND" for name, text in sorted(wanted.files.items())]


def _python(part: PythonPart) -> str:
    place = "/tmp/requirements.txt"  # noqa: S108 - of the build
    install = (
        f"python3 -m pip install --no-cache-dir --break-system-packages --only-binary :all: --require-hashes --no-deps "
        f"--target {part.target} -r {place}"
    )
    return (
        f"COPY {part.requirements} {place}\nRUN {install} \\\n && mkdir -p {part.scripts} \\\n"
        f" && mv {part.target}/bin/* {part.scripts}/ \\\n && python3 -m compileall -q {part.target} \\\n && rm {place}"
    )


def _settings(wanted: RecipeFile) -> list[str]:
    lines = [f"ENV {name}={json.dumps(value)}" for name, value in sorted(wanted.environment.items())]
    owner = next((user for user in wanted.users if user.name == wanted.user), None)
    lines.append(f"USER {owner.uid}:{owner.gid}" if owner else f"USER {wanted.user}")
    lines.append(f"WORKDIR {wanted.working_directory}")
    if wanted.entrypoint:
        lines.append(f"ENTRYPOINT {json.dumps(list(wanted.entrypoint))}")
    return ["\n".join(lines)]


if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.stdout.write(containerfile(load(Path(sys.argv[1]))))
