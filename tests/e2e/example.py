"""examples/keystone-ldap, adapted to a directory on free ports and to a namespace of the test's own.

Enters: a Directory, a namespace, changes. Leaves: manifests. It must not invent fields: what people copy is what is tested.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.real.directory import Directory

from moorage.core.meta import JsonObject

FOLDER = Path(__file__).parents[2] / "examples" / "keystone-ldap"
ADMIN_PASSWORD = "change-me-please"
BIND_PASSWORD = "good-news-everyone"
BACKEND = "planetexpress"
READER = "cn=reader,dc=planetexpress,dc=com"
QUICK: JsonObject = {"uwsgi": {"processes": 1}, "extraConfig": {"identity": {"password_hash_rounds": "4"}}}
"""Over a Keystone's spec, where neither is the point: one worker a pod to import Keystone, passwords hashed for a test, not against a thief."""


def manifests(directory: Directory, namespace: str = "openstack") -> list[JsonObject]:
    """All documents of the example, in the order of its files."""
    found = []
    for file in sorted(FOLDER.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            found.append(_placed(document, directory, namespace))
    return found


def _placed(document: JsonObject, directory: Directory, namespace: str) -> JsonObject:
    meta = document["metadata"]
    meta["name" if document["kind"] == "Namespace" else "namespace"] = namespace
    if document["kind"] == "KeystoneIdentityBackend":
        document["spec"]["ldap"]["url"] = directory.url
    return document


def of_kind(found: Sequence[JsonObject], kind: str) -> JsonObject:
    """The one document of a kind."""
    return next(item for item in found if item["kind"] == kind)


def backend(directory: Directory, name: str, changes: Mapping[str, Any] | None = None, **place: str) -> JsonObject:
    """Another backend like the example's, with a domain of its own name; `changes` go over its spec, nested."""
    made = copy.deepcopy(of_kind(manifests(directory, **place), "KeystoneIdentityBackend"))
    made["metadata"]["name"] = made["spec"]["domain"]["name"] = name
    _merge(made["spec"], changes or {})
    return made


def _merge(into: JsonObject, changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value
