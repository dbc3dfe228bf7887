"""Which objects a list, watch or collection delete is about. Pure.

Enters: query parameters. Leaves: a predicate over entries. Source: apiserver field label conversion of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.apiserver.errors import bad_request
from moorage.apiserver.hub import Entry
from moorage.apiserver.registry import Registry, key_of_target
from moorage.apiserver.request import Request
from moorage.apiserver.served import ServedType
from moorage.apiserver.views import object_of
from moorage.core.selectors import LabelSelector, parse_fields, parse_labels

Term = tuple[str, bool, str]

_EVENT_REF = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ),
    ("", "events"): (
        *(f"involvedObject.{name}" for name in _EVENT_REF), "reason", "reportingComponent", "source", "type",
    ),
    ("events.k8s.io", "events"): (
        *(f"regarding.{name}" for name in _EVENT_REF), "reason", "reportingController", "type",
    ),
    ("", "secrets"): ("type",),
    ("", "namespaces"): ("status.phase",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("batch", "jobs"): ("status.successful",),
    ("apps", "replicasets"): ("status.replicas",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selection:
    """A predicate: namespace (empty for all), one name or none, labels, other fields."""

    registry: Registry
    served: ServedType
    namespace: str
    name: str
    labels: LabelSelector
    fields: tuple[Term, ...]

    @property
    def everything(self) -> bool:
        """Whether every object of the namespace is selected."""
        return not (self.name or self.labels.requirements or self.fields)

    def matches(self, entry: Entry) -> bool:
        """Whether an entry is selected, its namespace included."""
        namespace, _, name = entry.key.rpartition("/")
        if self.namespace and namespace != self.namespace:
            return False
        if self.name and name != self.name:
            return False
        if self.labels.requirements and not self.labels.matches(entry.labels):
            return False
        return not self.fields or self._fields_match(entry, namespace, name)

    def _fields_match(self, entry: Entry, namespace: str, name: str) -> bool:
        obj: Any = None
        for path, equal, want in self.fields:
            if path == "metadata.name":
                have = name
            elif path == "metadata.namespace":
                have = namespace
            else:
                obj = obj or object_of(self.registry, self.served, entry)
                have = value_at(obj, path)
            if (have == want) is not equal:
                return False
        return True


def value_at(obj: Any, path: str) -> str:
    """The text of a field for a field selector; empty when it is absent."""
    if path == "source":
        return str((obj.get("source") or {}).get("component") or obj.get("reportingComponent") or "")
    if path in ("status.successful", "status.replicas"):
        path = {"status.successful": "status.succeeded"}.get(path, path)
        return str(_walk(obj, path) or 0)
    if path == "spec.hostNetwork":
        return "true" if _walk(obj, path) else "false"
    value = _walk(obj, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _walk(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def selection(registry: Registry, served: ServedType, request: Request) -> Selection:
    """The selection of a request.

    Raises:
        StatusError: 400, a selector cannot be read or names an unknown field.
    """
    target = request.target
    try:
        labels = parse_labels(request.query.get("labelSelector", ""))
        terms = parse_fields(request.query.get("fieldSelector", ""))
    except ValueError as error:
        raise bad_request(str(error)) from error
    known = {"metadata.name", "metadata.namespace", *fields_of(served)}
    for path, _, _ in terms:
        if path not in known:
            raise bad_request(_unknown_field(served, path))
    names = [want for path, equal, want in terms if path == "metadata.name" and equal]
    name = target.name or (names[0] if names else "")
    rest = tuple(term for term in terms if not (term[0] == "metadata.name" and term[1] and term[2] == name))
    return Selection(registry, served, key_of_target(served, target).namespace, name, labels, rest)


def fields_of(served: ServedType) -> frozenset[str]:
    """Fields, besides name and namespace, that selectors may name."""
    if served.custom:
        return served.selectable_fields
    return frozenset(_FIELDS.get((served.resource.group, served.resource.plural), ()))


def _unknown_field(served: ServedType, path: str) -> str:
    if served.custom or fields_of(served):
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
