"""Make src/moorage/apiserver/data/protobuf.json: the field numbers by which kubectl writes built-in kinds.

Run: `python tools/protobuf_fields.py GOMODCACHE` with the module cache that holds k8s.io/api and k8s.io/apimachinery. The
numbers, JSON names and optionality are read from the struct tags; nothing else is taken.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "src/moorage/apiserver/data"
VERSION = "v0.36.3"
PACKAGES = {
    "core": "api/core/v1", "apps": "api/apps/v1", "batch": "api/batch/v1", "coordination": "api/coordination/v1",
    "events": "api/events/v1", "policy": "api/policy/v1", "networking": "api/networking/v1", "rbac": "api/rbac/v1",
    "admissionregistration": "api/admissionregistration/v1", "authentication": "api/authentication/v1",
    "authorization": "api/authorization/v1", "autoscaling": "api/autoscaling/v1", "meta": "apimachinery/pkg/apis/meta/v1",
}  # fmt: skip
ROOTS = {
    "core": "Namespace ConfigMap Secret Service ServiceAccount Event Pod PersistentVolumeClaim Endpoints",
    "apps": "Deployment ReplicaSet", "batch": "Job CronJob", "coordination": "Lease", "events": "Event",
    "policy": "PodDisruptionBudget Eviction", "networking": "NetworkPolicy", "autoscaling": "Scale",
    "rbac": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "admissionregistration": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    "authentication": "TokenReview TokenRequest SelfSubjectReview", "meta": "DeleteOptions",
    "authorization": "SubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview LocalSubjectAccessReview",
}  # fmt: skip
SPECIAL = {
    "Time": "time", "MicroTime": "microtime", "Quantity": "quantity", "IntOrString": "intorstring",
    "RawExtension": "raw", "FieldsV1": "rawtext", "Duration": "duration",
}  # fmt: skip
ALIASES = {"v1": "core", "corev1": "core", "metav1": "meta"}
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
NAMED = re.compile(r"^type (\w+) (=? ?[\w\[\]\.]+)$", re.M)
FIELD = re.compile(r'^\s+(?:(\w+) )?\s*(\S+)\s+`json:"([^"]*)".*?protobuf:"(\w+),(\d+),(\w+)', re.M)


class Package:
    def __init__(self, folder: Path) -> None:
        text = "\n".join(
            path.read_text() for path in sorted(folder.glob("*types*.go")) + sorted(folder.glob("generated*.go"))[:0]
        )
        self.structs = dict(STRUCT.findall(text))
        self.named = {name: kind for name, kind in NAMED.findall(text) if name not in self.structs}


def load(cache: Path) -> dict[str, Package]:
    found = {}
    for name, path in PACKAGES.items():
        module, _, rest = path.partition("/")
        found[name] = Package(cache / "k8s.io" / f"{module}@{VERSION}" / rest)
    return found


def resolve(home: str, kind: str) -> tuple[str, str]:
    """Package and name of a Go type, aliases followed one step at a time."""
    prefix, _, name = kind.rpartition(".")
    where = ALIASES.get(prefix, prefix) if prefix else home
    return where, name


def describe(packages: dict[str, Package], home: str, kind: str, wire: str) -> str:
    """`s` text, `i` number, `b` truth, `B` bytes, `[x` list, `{x` map, `m:PKG.NAME` message, a special's name."""
    kind = kind.lstrip("*")
    if kind == "[]byte":
        return "B"
    if kind.startswith("[]"):
        return "[" + describe(packages, home, kind[2:], wire)
    if found := re.fullmatch(r"map\[[\w.]+\](.+)", kind):
        return "{" + describe(packages, home, found[1], "bytes")
    where, name = resolve(home, kind)
    if name in SPECIAL:
        return SPECIAL[name]
    package = packages.get(where)
    if package and name in package.structs:
        return f"m:{where}.{name}"
    if package and name in package.named:
        under = package.named[name].removeprefix("= ")
        if name == "ExtraValue":
            return "items"
        return describe(packages, where, under, wire)
    if name in ("int", "int32", "int64", "uint32", "uint64"):
        return "i"
    if name == "bool":
        return "b"
    return "i" if wire == "varint" else "s"


def fields(packages: dict[str, Package], home: str, name: str) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {}
    for _, kind, tag, wire, number, _ in FIELD.findall(packages[home].structs[name]):
        json_name, *options = tag.split(",")
        keep = 1 if kind.startswith("*") or "omitempty" not in options else 0
        if "inline" in options:
            json_name = ""
        rows[number] = [json_name, describe(packages, home, kind, wire), keep]
    return rows


def main(cache: Path) -> None:
    packages = load(cache)
    queue = [f"{package}.{name}" for package, names in ROOTS.items() for name in names.split()]
    found: dict[str, dict[str, list[Any]]] = {}
    while queue:
        full = queue.pop()
        if full in found:
            continue
        found[full] = fields(packages, *full.split("."))
        queue += [part for row in found[full].values() for part in re.findall(r"m:([\w.]+)", row[1])]
    text = json.dumps(dict(sorted(found.items())), separators=(",", ":"))
    (DATA / "protobuf.json").write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
