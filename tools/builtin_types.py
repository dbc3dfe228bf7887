"""Make src/moorage/apiserver/data from what a real kube-apiserver says of its types.

Run: `python tools/builtin_types.py RECORDS` with the folder that holds schemas.json, resources.json and tables.json.
Only the kinds that one-machine mode serves are kept, with the schemas that they refer to.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "src/moorage/apiserver/data"
SERVED: dict[str, tuple[str, ...]] = {
    "v1": (
        "namespaces", "namespaces/status", "namespaces/finalize", "configmaps", "secrets", "services", "services/status",
        "serviceaccounts", "serviceaccounts/token", "events", "pods", "pods/binding", "pods/log", "pods/status", "endpoints",
        "persistentvolumeclaims", "persistentvolumeclaims/status",
    ),
    "apps/v1": (
        "deployments", "deployments/status", "deployments/scale", "replicasets", "replicasets/status", "replicasets/scale",
    ),
    "batch/v1": ("jobs", "jobs/status", "cronjobs", "cronjobs/status"),
    "coordination.k8s.io/v1": ("leases",),
    "events.k8s.io/v1": ("events",),
    "policy/v1": ("poddisruptionbudgets", "poddisruptionbudgets/status"),
    "networking.k8s.io/v1": ("networkpolicies",),
    "rbac.authorization.k8s.io/v1": ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    "admissionregistration.k8s.io/v1": ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
    "apiextensions.k8s.io/v1": ("customresourcedefinitions", "customresourcedefinitions/status"),
    "authentication.k8s.io/v1": ("tokenreviews", "selfsubjectreviews"),
    "authorization.k8s.io/v1": (
        "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "localsubjectaccessreviews",
    ),
}  # fmt: skip
EXTRA = (
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
)


_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
FREE = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    f"{_EXTENSIONS}.JSON",
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray",
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool",
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray",
)


def references(value: Any) -> set[str]:
    """Names of the schemas that a schema refers to."""
    if isinstance(value, list):
        return set().union(*(references(item) for item in value), set())
    if not isinstance(value, dict):
        return set()
    found = set().union(*(references(item) for item in value.values()), set())
    if isinstance(value.get("$ref"), str):
        found.add(value["$ref"].rpartition("/")[2])
    return found


def closure(schemas: dict[str, Any], roots: set[str]) -> dict[str, Any]:
    """The schemas of `roots` and all that they refer to."""
    kept: dict[str, Any] = {}
    queue = sorted(roots)
    while queue:
        name = queue.pop()
        if name not in kept and name in schemas:
            kept[name] = schemas[name]
            queue.extend(references(schemas[name]))
    return dict(sorted(kept.items()))


def roots_of(schemas: dict[str, Any], resources: dict[str, Any]) -> set[str]:
    """Schemas of the served kinds and of their lists."""
    wanted = {(version, row["kind"]) for version, rows in resources.items() for row in rows}
    found = set(EXTRA)
    for name, schema in schemas.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            version = f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"]
            if (version, gvk["kind"]) in wanted or (version, gvk["kind"].removesuffix("List")) in wanted:
                found.add(name)
    return found


def open_ended(schemas: dict[str, Any]) -> dict[str, Any]:
    """The same, with types of free content marked: OpenAPI shows them as objects without properties."""
    for name in FREE:
        if name in schemas:
            schemas[name]["x-kubernetes-preserve-unknown-fields"] = True
    return schemas


def write(name: str, value: Any) -> None:
    DATA.mkdir(exist_ok=True)
    (DATA / name).write_text(json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n")


def main(records: Path) -> None:
    schemas = json.loads((records / "schemas.json").read_text())
    resources = json.loads((records / "resources.json").read_text())
    tables = json.loads((records / "tables.json").read_text())
    kept = {version: [row for row in resources[version] if row["name"] in names] for version, names in SERVED.items()}
    write("resources.json", kept)
    write("schemas.json", open_ended(closure(schemas, roots_of(schemas, kept))))
    names = {f"{version}/{name}" for version, found in SERVED.items() for name in found}
    write("tables.json", {name: rows for name, rows in tables.items() if name in names})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
