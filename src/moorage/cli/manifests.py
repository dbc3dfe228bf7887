"""Manifests read from files, folders and standard input: YAML with several documents, JSON, `List`.

Leaves: objects with the place they came from. An unreadable file is an InputError with file, line and column.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, Key

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Manifest:
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


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as Kubernetes reads it: times stay text, a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=deep)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag != "tag:yaml.org,2002:timestamp"]
    for first, forms in _Loader.yaml_implicit_resolvers.items()
}


def read(paths: Iterable[str]) -> list[Manifest]:
    """All objects of these paths, in order.

    Raises:
        InputError: a path is missing or unreadable, or a document is no Kubernetes object.
    """
    return [manifest for path in paths for manifest in _read_path(path)]


def _read_path(path: str) -> Iterator[Manifest]:
    if path == "-":
        yield from _read_text(sys.stdin.read(), "-")
        return
    where = Path(path)
    if where.is_dir():
        files = sorted(file for file in where.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        if not files:
            raise InputError(path, "the folder holds no *.yaml, *.yml or *.json", "Name a file or another folder")
    else:
        files = [where]
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(str(file), f"not UTF-8 text at byte {error.start}", "Save the file as UTF-8") from error
        except OSError as error:
            reason = error.strerror or "cannot be read"
            raise InputError(str(file), reason.lower(), "Check the path and its permissions") from error
        yield from _read_text(text, str(file))


def _read_text(text: str, file: str) -> Iterator[Manifest]:
    number = 0
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            if document is None:
                continue
            number += 1
            for item in _unfold(document, file, number):
                yield Manifest(file, number, item)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise InputError(place, error.problem or "not readable as YAML", "Mend the text at that place") from error
    except yaml.YAMLError as error:
        raise InputError(file, f"not readable as YAML: {error}", "Mend the text") from error


def _unfold(document: object, file: str, number: int) -> Iterator[JsonObject]:
    if not isinstance(document, dict):
        raise InputError(f"{file}: document {number}", "is not an object", "A manifest starts with apiVersion and kind")
    if not all(isinstance(document.get(name), str) and document[name] for name in ("apiVersion", "kind")):
        raise InputError(f"{file}: document {number}", "apiVersion or kind is missing", "Set both as text")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _unfold(item, file, number)
        return
    yield document
