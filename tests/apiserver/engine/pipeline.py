"""The engine's functions in the order in which a server calls them, without a server: one recorded step in, one object out."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from moorage.apiserver.apply import ApplyConflict, ApplyInvalid, TypeMap, apply_object, settled, track_update
from moorage.apiserver.builtin import (
    default_builtin,
    prepare_create,
    prepare_status,
    prepare_update,
    tidy,
    validate_builtin,
)
from moorage.apiserver.patch import PatchError, json_patch, merge_patch, strategic_merge
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError, Structural

DATA = Path(__file__).parents[3] / "src/moorage/apiserver/data"
NOW = "2020-01-01T00:00:00Z"


class Refused(Exception):
    """The engine said no: what stands in the answer's message; causes where a validation refused."""

    def __init__(self, message: str, causes: Sequence[JsonObject] = ()) -> None:
        self.causes = causes
        super().__init__(message)


@cache
def records(name: str) -> JsonObject:
    loaded: JsonObject = json.loads((DATA / f"{name}.json").read_text())
    return {key: _opened(key, value) for key, value in loaded.items()} if name == "schemas" else loaded


def _opened(name: str, schema: JsonObject) -> JsonObject:
    """Types that hold any JSON."""
    free = name.endswith((".FieldsV1", ".RawExtension", ".JSON", "OrArray", "OrBool", "OrStringArray"))
    return {**schema, "x-kubernetes-preserve-unknown-fields": True} if free else schema


class Kinds:
    """The types that a scenario talks about, found by URL path."""

    def __init__(self) -> None:
        self.crds: dict[tuple[str, str], JsonObject] = {}

    def find(self, path: str) -> tuple[ResourceType, JsonObject, Mapping[str, JsonObject], bool]:
        parts = path.split("?")[0].strip("/").split("/")
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        plural = rest[2] if rest[0] == "namespaces" and len(rest) > 2 else rest[0]
        if (group, plural) in self.crds:
            crd = self.crds[group, plural]
            names, found = crd["spec"]["names"], crd["spec"]["versions"][0]
            schema = found["schema"]["openAPIV3Schema"]
            kind = ResourceType(group, version, names["kind"], plural, crd["spec"]["scope"] == "Namespaced")
            return kind, schema, {}, "status" in (found.get("subresources") or {})
        api = f"{group}/{version}" if group else version
        row = next(row for row in records("resources")[api] if row["name"] == plural)
        status = any(row["name"] == f"{plural}/status" for row in records("resources")[api])
        kind = ResourceType(group, version, row["kind"], plural, row["namespaced"])
        return kind, builtin_schema(kind), records("schemas"), status


def builtin_schema(kind: ResourceType) -> JsonObject:
    wanted = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return next(s for s in records("schemas").values() if wanted in (s.get("x-kubernetes-group-version-kind") or ()))


def location(path: str) -> tuple[str, str]:
    """(object path, subresource) of a URL path."""
    for sub in ("status", "scale"):
        if path.endswith(f"/{sub}"):
            return path.removesuffix(f"/{sub}"), sub
    return path, ""


class Engine:
    """Runs one step against the object that Kubernetes had stored."""

    def __init__(self, kinds: Kinds, step: JsonObject, old: JsonObject | None) -> None:
        self.verb, _, self.path = step["do"].partition(" ")
        self.step, self.old = step, old
        self.rt, self.schema, self.definitions, self.status = kinds.find(self.path)
        self.custom = not self.definitions
        self.types = TypeMap.of(self.schema, self.definitions, status=self.status)
        self.structural = Structural.compile(self.schema, self.definitions)
        self.subresource = location(self.path)[1]

    def run(self) -> JsonObject:
        if self.verb == "apply":
            new = self.default(self._apply())
        else:
            new = self.default(self._written())
            options = {"manager": self.step.get("as", "tester"), "now": NOW, "api_version": self.rt.api_version}
            new = track_update(self.old, new, types=self.types, subresource=self.subresource, **options)
        return settled(self.old, self.prepared(new))

    def default(self, obj: JsonObject) -> JsonObject:
        self.structural.prune(obj)
        if not self.custom:
            tidy(obj)
        self.structural.default(obj)
        if not self.custom:
            default_builtin(self.rt, obj)
        return obj

    def _apply(self) -> JsonObject:
        force = (self.step.get("query") or {}).get("force") == "true"
        try:
            return apply_object(
                self.old, self.step["body"], manager=self.step["as"], force=force, types=self.types, now=NOW,
                subresource=self.subresource,
            )  # fmt: skip
        except ApplyConflict as error:
            raise Refused(error.message) from error
        except ApplyInvalid as error:
            raise Refused(str(error)) from error

    def _written(self) -> Any:
        body: Any = copy.deepcopy(self.step.get("body"))
        try:
            match self.verb:
                case "POST":
                    return {"apiVersion": self.rt.api_version, "kind": self.rt.kind, **body}
                case "PUT":
                    assert self.old is not None
                    return body or _edited(self.old, self.step["edit"])
                case "merge":
                    return merge_patch(self.old, body)
                case "json":
                    assert self.old is not None
                    return json_patch(self.old, body)
                case _:
                    assert self.old is not None
                    return strategic_merge(self.old, body, self.schema, self.definitions)
        except PatchError as error:
            raise Refused(error.message) from error

    def prepared(self, obj: JsonObject) -> JsonObject:
        """What the kind's strategy does, for built-ins; for custom resources what the server does with any of them."""
        if self.custom:
            made = self._custom_status(obj)
            if wrong := list(self.structural.validate(made, self.old).errors):
                raise Refused(invalid_message(self.rt, obj, wrong))
            return made
        if self.old is None:
            obj["metadata"].setdefault("uid", self.step["answer"].get("metadata", {}).get("uid", ""))
            if self.rt.namespaced:
                obj["metadata"].setdefault("namespace", self.path.split("/namespaces/")[1].split("/")[0])
            prepare_create(self.rt, obj)
        elif self.subresource == "status":
            prepare_status(self.rt, obj, self.old)
        else:
            prepare_update(self.rt, obj, self.old)
        errors: list[FieldError] = validate_builtin(self.rt, obj, self.old)
        if errors:
            raise Refused(invalid_message(self.rt, obj, errors), [error.cause() for error in errors])
        return obj

    def _custom_status(self, obj: JsonObject) -> JsonObject:
        if not self.status:
            return obj
        if self.subresource == "status" and self.old is not None:
            fields = {name: value for name, value in self.old.items() if name != "status"}
            entries = (
                {"managedFields": obj["metadata"].get("managedFields")} if obj["metadata"].get("managedFields") else {}
            )
            kept = {**fields, "metadata": {**self.old["metadata"], **entries}}
            return {**kept, "status": obj["status"]} if "status" in obj else kept
        rest = {name: value for name, value in obj.items() if name != "status"}
        return {**rest, "status": self.old["status"]} if self.old and "status" in self.old else rest


def _edited(obj: Any, edit: Any) -> Any:
    if not isinstance(edit, dict) or not isinstance(obj, dict):
        return edit
    merged = {**copy.deepcopy(obj), **{n: _edited(obj.get(n), v) for n, v in edit.items() if v is not None}}
    return {name: value for name, value in merged.items() if edit.get(name, "") is not None}


def invalid_message(rt: ResourceType, obj: JsonObject, errors: list[FieldError]) -> str:
    """The message of a 422."""
    texts = [error.message for error in errors]
    kind = f"{rt.kind}.{rt.group}" if rt.group else rt.kind
    body = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return f'{kind} "{obj["metadata"].get("name", "")}" is invalid: {body}'


PLUGINS = {
    "Pod": ("spec.preemptionPolicy", "spec.priority", "spec.tolerations"),
    "PersistentVolumeClaim": ("metadata.finalizers",),
}
"""Fields that admission plugins of Kubernetes set (priority, tolerations, storage protection), which ours does not have."""


def comparable(obj: JsonObject) -> JsonObject:
    """The object without what only a server sets, and with all managedFields times alike."""
    made: JsonObject = json.loads(json.dumps(obj))
    metadata = made["metadata"]
    if ".test/" in made["apiVersion"]:  # the generation of custom resources is the server's work
        metadata.pop("generation", None)
    for path in PLUGINS.get(made["kind"], ()):
        parent, _, name = path.rpartition(".")
        made[parent].pop(name, None)
    for name in ("uid", "creationTimestamp", "resourceVersion", "namespace", "selfLink"):
        metadata.pop(name, None)
    for entry in metadata.get("managedFields") or ():
        if "time" in entry:
            entry["time"] = NOW
    metadata["managedFields"] = sorted(
        metadata.get("managedFields") or (), key=lambda entry: json.dumps(entry, sort_keys=True)
    )
    return made
