"""Names of things in the Kubernetes API: keys, resource types, owner links.

Enters: plain objects as they stand on the wire. Leaves: small frozen values. Knows nothing of any server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as it stands on the wire; only doors that touch the wire, and built-in kinds, use it."""


class Key(NamedTuple):
    """Namespace and name of one object; the namespace of a cluster-scoped object is empty. A tuple: a pass looks it up a hundred times."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ResourceType(NamedTuple):
    """How one kind is addressed on a Kubernetes API server. A tuple, as it is looked up as often as keys are."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`v1` for the core group, `group/version` otherwise."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """`plural.group`, the form that Kubernetes uses in messages; the core group has no suffix."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of this collection or object, without query."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


class Ref(NamedTuple):
    """A reference to one object of any kind."""

    api_version: str
    kind: str
    key: Key
    uid: str = ""


def key_of(obj: Mapping[str, Any]) -> Key:
    """The key of a wire object."""
    meta = obj["metadata"]
    return Key(meta.get("namespace", ""), meta["name"])


def ref_of(obj: Mapping[str, Any]) -> Ref:
    """A reference to a wire object."""
    return Ref(obj["apiVersion"], obj["kind"], key_of(obj), obj["metadata"].get("uid", ""))


def owner_reference(owner: Ref) -> JsonObject:
    """The controller owner reference by which garbage collection follows `owner`."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.key.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: Mapping[str, Any]) -> Ref | None:
    """The controlling owner of a wire object, or None."""
    for owner in owners_of(obj):
        if owner.get("controller"):
            key = Key(obj["metadata"].get("namespace", ""), owner["name"])
            return Ref(owner["apiVersion"], owner["kind"], key, owner["uid"])
    return None


def owners_of(obj: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The owner references of a wire object."""
    owners: Iterable[Mapping[str, Any]] = obj["metadata"].get("ownerReferences") or ()
    return owners


def controlled_by(obj: Mapping[str, Any], uid: str) -> bool:
    """Whether the object of this uid is the controller of `obj`."""
    owner = controller_of(obj)
    return owner is not None and bool(uid) and owner.uid == uid


def is_terminating(obj: Mapping[str, Any]) -> bool:
    """Whether deletion of a wire object was requested."""
    return bool(obj["metadata"].get("deletionTimestamp"))
