"""What a backend put into Keystone, as its status keeps it: written before an object is made, taken out once it is gone.

Enters: a snapshot. Leaves: the record to store, and what of it must be taken back. Pure; names and ids only. A record says "may be there
because of us": it is never a proof that an object is ours. Source: decisions, Keystone 3 and 4; spec/keystone.md 7 (S4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from moorage.keystone.identity_access import Grant, Scope

from .types import Applied, AppliedGrant, AppliedGroup, AppliedProvider
from .wanted import Share, Wanted, applied_of, recorded_group

if TYPE_CHECKING:
    from .seen import Seen
    from .seen_federation import Objects

_Key: TypeAlias = tuple[str, str, str]
"""Group by name, role by id, project by id ("" for the domain)."""


def covers(seen: Seen) -> bool:
    """Whether the stored record names everything that is about to be made."""
    if seen.wanted_objects is None or seen.objects is None:
        return True
    return _wanted_names(seen.wanted_objects, seen.objects) <= _names(applied_of(seen.backend))


def applied_after(seen: Seen, *, making: bool) -> Applied:
    """The record to store after this pass.

    Args:
        making: the wanted objects are, or are about to be made; else only what is gone is taken out.
    """
    stored, objects = applied_of(seen.backend), seen.objects
    if seen.wanted_objects is None or objects is None:
        return stored
    record = _with_wanted(seen, seen.wanted_objects, objects) if making else stored
    wanted = seen.wanted_objects
    providers = [
        item.model_copy(update={"protocols": _left(item, objects)})
        for item in record.identity_providers
        if item.name == wanted.provider or _exists(item, objects)
    ]
    groups = [_trimmed(item, seen, objects) for item in record.groups]
    declared = {group.name for group in wanted.groups}
    return Applied(
        identity_providers=tuple(providers),
        groups=tuple(item for item in groups if item.name in declared or item.grants),
    )


def _exists(item: AppliedProvider, objects: Objects) -> bool:
    return item.name in objects.providers or item.mapping in objects.mappings


def _left(item: AppliedProvider, objects: Objects) -> tuple[str, ...]:
    """Protocols that are still there. They are recorded once they exist: until then their mapping proves whose they are."""
    keep = {protocol.id for protocol in objects.protocols.get(item.name, ())}
    return tuple(id for id in item.protocols if id in keep)


def _trimmed(group: AppliedGroup, seen: Seen, objects: Objects) -> AppliedGroup:
    known = objects.groups.get(group.name) or group.id
    left = tuple(item for item in group.grants if _grant(seen, group, item, objects) not in objects.revoked)
    return group.model_copy(update={"id": known or None, "grants": left})


def _with_wanted(seen: Seen, wanted: Wanted, objects: Objects) -> Applied:
    """The stored record with what is declared in it."""
    stored = applied_of(seen.backend)
    before = next((item for item in stored.identity_providers if item.name == wanted.provider), None)
    there = [item.id for item in objects.protocols.get(wanted.provider, ()) if item.id == wanted.protocol]
    protocols = tuple(dict.fromkeys((*there, *(before.protocols if before else ()))))
    provider = AppliedProvider(name=wanted.provider, mapping=wanted.mapping, protocols=protocols)
    others = tuple(item for item in stored.identity_providers if item.name != wanted.provider)
    shares: dict[str, list[tuple[Share, Grant]]] = {group.name: [] for group in wanted.groups}
    for share, grant in objects.resolved.items():
        shares[share.group].append((share, grant))
    groups = [_group(seen, name, found, objects) for name, found in shares.items()]
    return Applied(
        identity_providers=(provider, *others),
        groups=(*groups, *(item for item in stored.groups if item.name not in shares)),
    )


def _group(seen: Seen, name: str, shares: list[tuple[Share, Grant]], objects: Objects) -> AppliedGroup:
    """A declared group: the assignments that are declared, then those that were."""
    before = recorded_group(seen.backend, name)
    now = {(grant.role, grant.scope.id): _applied(share, grant) for share, grant in shares}
    earlier = [item for item in (before.grants if before else ()) if _ids(seen, item) not in now]
    id = objects.groups.get(name) or (before.id if before else None)
    return AppliedGroup(name=name, id=id, grants=(*now.values(), *earlier))


def _applied(share: Share, grant: Grant) -> AppliedGrant:
    if share.project is None:
        return AppliedGrant(role=share.role, role_id=grant.role)
    return AppliedGrant(role=share.role, role_id=grant.role, project=share.project.name, project_id=grant.scope.id)


def _ids(seen: Seen, item: AppliedGrant) -> tuple[str, str]:
    return item.role_id, item.project_id or seen.domain_id


def _grant(seen: Seen, group: AppliedGroup, item: AppliedGrant, objects: Objects) -> Grant:
    id = group.id or objects.groups.get(group.name, "")
    scope = Scope("project", item.project_id) if item.project_id else Scope("domain", seen.domain_id)
    return Grant(id, item.role_id, scope)


def _wanted_names(wanted: Wanted, objects: Objects) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = {("mapping", wanted.provider, wanted.mapping)}
    found |= {("group", group.name) for group in wanted.groups}
    for share, grant in objects.resolved.items():
        found.add(("grant", share.group, grant.role, grant.scope.id if share.project else ""))
    return found


def _names(record: Applied) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for provider in record.identity_providers:
        found.add(("mapping", provider.name, provider.mapping))
    for group in record.groups:
        found.add(("group", group.name))
        found |= {("grant", group.name, item.role_id, item.project_id or "") for item in group.grants}
    return found


# --- what must be taken back


def revocable(seen: Seen) -> tuple[tuple[Grant, str], ...]:
    """Recorded assignments that are declared no more, with a few words each for people."""
    if seen.objects is None or seen.wanted_objects is None or not seen.domain_id:
        return ()
    return tuple(_undeclared(seen, seen.wanted_objects, seen.objects))


def _undeclared(seen: Seen, wanted: Wanted, objects: Objects) -> Iterator[tuple[Grant, str]]:
    declared: set[_Key] = {
        (share.group, grant.role, grant.scope.id if share.project else "") for share, grant in objects.resolved.items()
    }
    unclear = {
        (share.group, share.role, share.project.name if share.project else "")
        for share in wanted.shares
        if share not in objects.resolved
    }
    for group in applied_of(seen.backend).groups:
        for item in group.grants:
            known = (group.name, item.role_id, item.project_id or "") in declared
            if known or (group.name, item.role, item.project or "") in unclear:
                continue
            grant = _grant(seen, group, item, objects)
            if grant.group and grant not in objects.revoked:
                where = f"project {item.project!r}" if item.project_id else "the domain"
                yield grant, f"role {item.role!r} of group {group.name!r} on {where}"


def released_groups(seen: Seen) -> tuple[str, ...]:
    """Groups that are declared no more, once nothing of ours is granted to them."""
    if seen.objects is None or seen.wanted_objects is None:
        return ()
    declared = {group.name for group in seen.wanted_objects.groups}
    left = [item for item in applied_of(seen.backend).groups if item.name not in declared]
    return tuple(item.name for item in left if not _trimmed(item, seen, seen.objects).grants)
