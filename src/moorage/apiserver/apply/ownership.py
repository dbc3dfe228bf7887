"""Rules that apply and ordinary writes share: which fields nobody can own, and how a change moves ownership.

Enters: managers and a difference. Leaves: managers. Must not look at objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moorage.apiserver.apply.compare import Difference
from moorage.apiserver.apply.fieldmanagers import Manager, Managers, Owned
from moorage.apiserver.apply.fieldset import FieldSet, Path, field_element, path_text
from moorage.apiserver.apply.types import TypeMap, TypeNode


def dotted(path: str) -> Path:
    """The path of plain fields written `metadata.name`."""
    return tuple(field_element(name) for name in path.split("."))


_SYSTEM = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
UNOWNED = FieldSet.of(*map(dotted, ("apiVersion", "kind", "metadata", *(f"metadata.{name}" for name in _SYSTEM))))
"""Fields that the server sets or that name the object: nobody owns them."""

_STATUS, _SPEC, _METADATA = (FieldSet.of(dotted(name)) for name in ("status", "spec", "metadata"))
_KEPT_BY_STATUS = {"Deployment": "metadata.labels", "Pod": "metadata.ownerReferences"}
"""Metadata of built-in kinds that a status write leaves alone; recorded from kube-apiserver 1.36.3."""


def ignored_fields(types: TypeMap, subresource: str) -> FieldSet:
    """Trees that a write through this door does not change, and so cannot own."""
    if subresource == "status":
        if not types.builtin:
            return _SPEC.union(_METADATA)
        kept = _KEPT_BY_STATUS.get(types.kind)
        return _SPEC.union(FieldSet.of(dotted(kept))) if kept else _SPEC
    return _STATUS if subresource == "" and types.status else FieldSet()


def conflicts_of(managers: Managers, taken: FieldSet, writer: Manager) -> list[tuple[Manager, FieldSet]]:
    """Other managers of the fields that `writer` sets anew, by name."""
    found = [(manager, owned.fields.intersection(taken)) for manager, owned in managers.items() if manager != writer]
    return sorted(((manager, fields) for manager, fields in found if fields), key=lambda item: _identity(item[0]))


def _identity(manager: Manager) -> tuple[str, ...]:
    return manager.name, manager.operation, manager.api_version, manager.subresource


def hand_over(managers: Managers, changed: Difference, writer: Manager) -> Managers:
    """Managers after a change: others lose what was set anew or went away."""
    lost = changed.taken.union(changed.removed)
    if not lost:
        return dict(managers)
    return {
        manager: owned if manager == writer else replace(owned, fields=owned.fields.difference(lost))
        for manager, owned in managers.items()
    }


def cleaned(managers: Managers) -> Managers:
    """Managers without system fields, and without those who own nothing."""
    kept = ((manager, replace(owned, fields=owned.fields.difference(UNOWNED))) for manager, owned in managers.items())
    return {manager: owned for manager, owned in kept if owned.fields}


def known(managers: Managers, api_version: str, types: TypeMap) -> Managers:
    """Managers whose version is the one that is served; sets of versions that are gone mean nothing any more.

    Where a type became atomic since (a changed CRD), who owned a part owns the whole.
    """
    return {
        manager: replace(owned, fields=_fitted(types.root, owned.fields))
        for manager, owned in managers.items()
        if owned.api_version == api_version
    }


def _fitted(node: TypeNode, fields: FieldSet) -> FieldSet:
    members, children = fields.members, {}
    for element, below in fields.children.items():
        child = node.child(element[2:]) if element[0] == "f" else node.item
        if child.shape != "any" and child.atomic:
            members = members | {element}
        else:
            children[element] = _fitted(child, below)
    return FieldSet(members, children)


def union_of(parts: Iterable[Owned]) -> FieldSet:
    """All fields that these own."""
    found = FieldSet()
    for owned in parts:
        found = found.union(owned.fields)
    return found


def conflict_texts(found: list[tuple[Manager, FieldSet]]) -> tuple[tuple[tuple[str, str], ...], str]:
    """Causes (field path, message) and the sentence of a refused apply, in Kubernetes' words."""
    rows = [(manager, path_text(path)) for manager, fields in found for path in fields.paths()]
    causes = tuple((field, f"conflict with {manager}") for manager, field in rows)
    if len(rows) == 1:
        manager, field = rows[0]
        return causes, f"Apply failed with 1 conflict: conflict with {manager}: {field}"
    lines: list[str] = []
    for manager, fields in found:
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path_text(path)}" for path in fields.paths()]
    return causes, f"Apply failed with {len(rows)} conflicts: " + "\n".join(lines)
