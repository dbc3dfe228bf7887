"""PolicyRules: what one allows, what of it another lacks, and how it reads.

Enters: rules as they stand in roles. Leaves: answers. Must not know roles, bindings or users.
Source: kubernetes.io, "Using RBAC Authorization"; escalation messages recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from moorage.core.meta import JsonObject

EVERYTHING: list[JsonObject] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
"""The rules of somebody who may do everything."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """A request, as far as authorization looks at it. With a `path` it is about no resource.

    Attributes:
        groups: of the user; `system:authenticated` among them.
        resource: plural name, without subresource.
    """

    user: str
    groups: tuple[str, ...]
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """`pods/log` for a subresource, `pods` without."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def allows(rule: JsonObject, wanted: Attributes) -> bool:
    """Whether a rule allows a request."""
    if not _has(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_path_covers(known, wanted.path) for known in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("apiGroups"), wanted.group)
        and _resource_listed(rule.get("resources") or (), wanted.full_resource)
        and (not names or wanted.name in names)
    )


def _has(listed: Iterable[str] | None, value: str) -> bool:
    found = tuple(listed or ())
    return "*" in found or value in found


def _resource_listed(listed: Iterable[str], full: str) -> bool:
    found = tuple(listed)
    sub = full.partition("/")[2]
    return "*" in found or full in found or (bool(sub) and f"*/{sub}" in found)


def _path_covers(known: str, path: str) -> bool:
    return known in ("*", path) or (known.endswith("*") and path.startswith(known[:-1]))


@dataclass(frozen=True, slots=True)
class Grain:
    """The smallest part of a rule: one resource (perhaps one name of it) or one path, with its verbs."""

    group: str = ""
    resource: str = ""
    name: str = ""
    path: str = ""
    verbs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As an escalation message prints it."""
        parts = (
            [("NonResourceURLs", [self.path])]
            if self.path
            else [("APIGroups", [self.group]), ("Resources", [self.resource])]
        )
        parts += [("ResourceNames", [self.name])] if self.name else []
        parts.append(("Verbs", list(self.verbs)))
        return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in parts) + "}"


def quoted_list(values: Iterable[str]) -> str:
    """Texts as Go prints a list of quoted ones: `["a" "b"]`."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def grains(rules: Iterable[JsonObject]) -> Iterator[Grain]:
    """All single grants of some rules, one verb each."""
    for rule in rules:
        for verb in rule.get("verbs") or ():
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("",):
                        yield Grain(group, resource, name, verbs=(verb,))
            for path in rule.get("nonResourceURLs") or ():
                yield Grain(path=path, verbs=(verb,))


def missing(held: Iterable[JsonObject], asked: Iterable[JsonObject]) -> list[str]:
    """What of `asked` the holder of `held` does not have, as sorted lines; empty when all is held."""
    mine = list(held)
    lacking = [grain for grain in grains(asked) if not any(_covers(rule, grain) for rule in mine)]
    return sorted(map(str, _joined(lacking)))


def _covers(rule: JsonObject, grain: Grain) -> bool:
    if not _has(rule.get("verbs"), grain.verbs[0]):
        return False
    if grain.path:
        return any(_path_covers(known, grain.path) for known in rule.get("nonResourceURLs") or ())
    names: tuple[Any, ...] = tuple(rule.get("resourceNames") or ())
    listed = _has(rule.get("apiGroups"), grain.group) and _resource_listed(rule.get("resources") or (), grain.resource)
    return listed and (not names or grain.name in names)


def _joined(lacking: Iterable[Grain]) -> list[Grain]:
    """Grants of whole resources with their verbs together; those of names and paths stay single."""
    made: dict[Any, Grain] = {}
    for grain in lacking:
        key: Any = (grain.group, grain.resource) if not grain.name and not grain.path else grain
        known = made.get(key)
        fresh = () if known is None else tuple(verb for verb in grain.verbs if verb not in known.verbs)
        made[key] = grain if known is None else replace(known, verbs=known.verbs + fresh)
    return list(made.values())
