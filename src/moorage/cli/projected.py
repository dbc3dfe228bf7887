"""Projected files for `diff` and documents for `render`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.core.digest import concealed_digest
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, Key

if TYPE_CHECKING:
    from moorage.kube.client import Client

_SECRETIVE = ("password", "connection")
_SECRET_DIRECTIVES = ("OIDCCryptoPassphrase", "OIDCOAuthClientSecret")
_SECRET_FILES = (".client", ".digest", "sp-key.pem")
_KEY = secrets.token_bytes(32)
"""Random for each run: a digest in a log of CI cannot be tried against a dictionary."""


def digest(value: str) -> str:
    """What is shown in place of a secret value."""
    return concealed_digest(value, _KEY)


def documents(given: Iterable[str]) -> dict[str, bytes]:
    """URL -> content of the files that stand for fetched documents.

    Raises:
        InputError: an entry is not URL=FILE, or its file cannot be read.
    """
    found: dict[str, bytes] = {}
    for entry in given:
        url, equal, file = entry.partition("=")
        if not equal or "://" not in url:
            raise InputError(f"--document {entry}", "is not URL=FILE", "Write --document https://idp/metadata=FILE")
        try:
            found[url] = Path(file).read_bytes()
        except OSError as error:
            raise InputError(file, (error.strerror or "cannot be read").lower(), "Name a readable file") from error
    return found


async def rendered(client: Client, objects: Sequence[JsonObject]) -> dict[str, str]:
    """File name -> text that these objects project, with the Secrets that live on the server; secret values as digests."""
    from moorage.cli.systems import KINDS
    from moorage.keystone.offline import render
    from moorage.kube import resources

    ours = {kind.kind for kind in KINDS}
    mine = [obj for obj in objects if obj["kind"] in ours]
    given = {(obj["kind"], _where(obj)): obj for obj in objects if obj["kind"] in ("Secret", "ConfigMap")}
    for namespace in sorted({_where(obj).namespace for obj in mine}):
        for resource in (resources.SECRETS, resources.CONFIG_MAPS):
            for item in (await client.list(resource, namespace)).items:
                given.setdefault((resource.kind, _where(item)), {**item, "kind": resource.kind})
    result = render(mine, given.values())
    return {"/".join(name): concealed(data.decode(errors="replace"), name[-1]) for name, data in result.files.items()}


def _where(obj: JsonObject) -> Key:
    return Key(obj["metadata"].get("namespace") or "default", obj["metadata"]["name"])


def concealed(text: str, name: str = "") -> str:
    """A file of this name whose secret values are digests; of one that is secret as a whole only that it changed is seen."""
    if name.endswith(_SECRET_FILES):
        return f"<digest {digest(text)}>\n"
    lines = []
    for line in text.splitlines():
        key, equal, value = line.partition(" = ")
        word, _, argument = line.strip().partition(" ")
        if equal and key.rpartition("_")[2] in _SECRETIVE:
            line = f"{key} = <digest {digest(value)}>"
        elif word in _SECRET_DIRECTIVES:
            line = f"{word} <digest {digest(argument)}>"
        lines.append(line)
    return "\n".join(lines) + "\n"
