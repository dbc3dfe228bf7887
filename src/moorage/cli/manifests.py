"""Manifests read from files, folders and standard input: YAML with several documents, JSON, `List`.

Leaves: objects with the place they came from. An unreadable file is an InputError with file, line and column.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, Key
from moorage.core.yamltext import Unreadable, load_all

_SUFFIXES = (".yaml", ".yml", ".json")


class Manifest(NamedTuple):
    """One object and where it stands: file and the number of its document, from 1."""

    file: str
    document: int
    object: JsonObject

    @property
    def kind(self) -> str:
        return str(self.object["kind"])

    @property
    def key(self) -> Key:
        meta = self.object.get("metadata") or {}
        return Key(str(meta.get("namespace") or "default"), str(meta.get("name") or ""))


_LARGEST = 64 * 1024 * 1024
"""Bytes that one file may have."""


def read(paths: Iterable[str]) -> list[Manifest]:
    """All objects of these paths, in order.

    Raises:
        InputError: a path is missing or unreadable, or a document is no Kubernetes object.
    """
    return [manifest for path in paths for manifest in _read_path(path)]


def text_of(path: str) -> str:
    """The text of one file, or of standard input for `-`.

    Raises:
        InputError: it is missing, unreadable, too large or no UTF-8 text.
    """
    return sys.stdin.read() if path == "-" else _checked(Path(path))


def parsed(text: str, file: str) -> list[Manifest]:
    """All objects of a text; `file` is what complaints call it. Raises InputError."""
    return list(_read_text(text, file))


def _read_path(path: str) -> Iterator[Manifest]:
    if path == "-":
        yield from _read_text(sys.stdin.read(), "-")
        return
    where = Path(path)
    if where.is_dir():
        files = _files(where)
        if not files:
            raise InputError(path, "the folder holds no *.yaml, *.yml or *.json", "Name a file or another folder")
    else:
        files = [where]
    for file in files:
        yield from _read_text(_checked(file), str(file))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise InputError(str(error.filename or folder), reason, f"Name files or folders below {folder}") from error


def _checked(file: Path) -> str:
    try:
        return _text_of(file)
    except UnicodeDecodeError as error:
        raise InputError(str(file), f"not UTF-8 text at byte {error.start}", "Save the file as UTF-8") from error
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(str(file), reason.lower(), "Check the path and its permissions") from error


def _text_of(file: Path) -> str:
    """Raises InputError for what is no regular file of a sensible size."""
    facts = file.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise InputError(str(file), "is not a regular file", "Name a file, a folder, or - for standard input")
    if facts.st_size > _LARGEST:
        raise InputError(str(file), f"has {facts.st_size} bytes, at most {_LARGEST} are read", "Split it")
    return file.read_text(encoding="utf-8")


def _read_text(text: str, file: str) -> Iterator[Manifest]:
    number = 0
    try:
        for document in load_all(text):
            if document is None:
                continue
            number += 1
            for item in _unfold(document, f"{file}: document {number}"):
                yield Manifest(file, number, item)
    except Unreadable as error:
        place = f"{file}:{error.line}:{error.column}" if error.line else file
        raise InputError(place, error.why, "Mend the text at that place") from error


def _unfold(document: object, place: str) -> Iterator[JsonObject]:
    if not isinstance(document, dict):
        raise InputError(place, "is not an object", "A manifest starts with apiVersion and kind")
    if not all(isinstance(document.get(name), str) and document[name] for name in ("apiVersion", "kind")):
        raise InputError(place, "apiVersion or kind is missing", "Set both as text")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for position, item in enumerate(document["items"]):
            yield from _unfold(item, f"{place}: items[{position}]")
        return
    if not isinstance(document.get("metadata", {}), dict):
        raise InputError(place, "metadata is not an object", "Write metadata with at least a name")
    yield document
