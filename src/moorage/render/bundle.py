"""Content-hashed bundles: data under a name that changes when the data does, and never otherwise.

Enters: a base name and files. Leaves: immutable Secret or ConfigMap manifests. It writes nothing.
Source: spec/keystone.md 1.4.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from moorage.core.digest import content_hash
from moorage.core.meta import JsonObject, Ref, owner_reference

BASE_LABEL: Final = "moorage.internal/bundle"
"""Label that holds the base name; retention finds the generations of a bundle by it."""


@dataclass(frozen=True)
class Bundle:
    """Files that are projected together. `base` is the name without its hash."""

    base: str
    data: Mapping[str, bytes]

    @cached_property
    def hash(self) -> str:
        """Eight hex digits over names and contents."""
        return content_hash(self.data)

    @property
    def name(self) -> str:
        """`<base>-<hash>`."""
        return f"{self.base}-{self.hash}"

    def secret(self, namespace: str, owner: Ref, labels: Mapping[str, str]) -> JsonObject:
        """The bundle as an immutable Secret."""
        data = {key: _base64(self.data[key]) for key in sorted(self.data)}
        return {**self._manifest("Secret", namespace, owner, labels), "type": "Opaque", "data": data}

    def config_map(self, namespace: str, owner: Ref, labels: Mapping[str, str]) -> JsonObject:
        """The bundle as an immutable ConfigMap; files that are not UTF-8 become binaryData."""
        text: dict[str, str] = {}
        binary: dict[str, str] = {}
        for key in sorted(self.data):
            try:
                text[key] = self.data[key].decode()
            except UnicodeDecodeError:
                binary[key] = _base64(self.data[key])
        manifest = self._manifest("ConfigMap", namespace, owner, labels)
        if text:
            manifest["data"] = text
        if binary:
            manifest["binaryData"] = binary
        return manifest

    def _manifest(self, kind: str, namespace: str, owner: Ref, labels: Mapping[str, str]) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "labels": {**labels, BASE_LABEL: self.base},
                "ownerReferences": [owner_reference(owner)],
            },
            "immutable": True,
        }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
