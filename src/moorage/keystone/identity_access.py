"""Access by group in the Identity API: groups, roles, projects, and the assignments between them.

Enters: a Caller, ids and names. Leaves: frozen values, or a typed error of `identity_errors`. Assignments are listed, never asked for
one by one. It decides nothing. Source: Keystone API reference v3; spec/keystone.md 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from moorage.core.meta import JsonObject

from .identity_requests import Caller, member, quoted


@dataclass(frozen=True, slots=True)
class Scope:
    """What a role is granted on."""

    kind: Literal["domain", "project"]
    id: str


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that a group has on a scope, all by id; an inherited one is another thing."""

    group: str
    role: str
    scope: Scope


class Access:
    """Groups, roles, projects and assignments of one Keystone."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def groups(self, domain: str) -> dict[str, str]:
        """Ids of the groups of a domain by name."""
        return _by_name(await self._caller.pages("/groups", "groups", {"domain_id": domain}))

    async def group(self, domain: str, name: str) -> str:
        """Id of the group of that name, "" when there is none."""
        return _named(await self._caller.pages("/groups", "groups", {"domain_id": domain, "name": name}), name)

    async def create_group(self, domain: str, name: str, description: str | None) -> str:
        """Create a group; its id.

        Raises:
            Conflict: the domain has one of that name.
        """
        wanted: JsonObject = {"name": name, "domain_id": domain}
        if description is not None:
            wanted["description"] = description
        answer = await self._caller.call("POST", "/groups", body={"group": wanted})
        return str(member(answer, "group", "id")["id"])

    async def roles(self) -> dict[str, str]:
        """Ids of the roles outside domains by name; a domain's own roles cannot be granted to everybody."""
        found = await self._caller.pages("/roles", "roles", {})
        return _by_name(item for item in found if not item.get("domain_id"))

    async def project(self, domain: str, name: str) -> str:
        """Id of the project of that name in that domain, "" when there is none."""
        return _named(await self._caller.pages("/projects", "projects", {"domain_id": domain, "name": name}), name)

    async def projects(self, domain: str) -> dict[str, str]:
        """Ids of the projects of a domain by name."""
        return _by_name(await self._caller.pages("/projects", "projects", {"domain_id": domain}))

    # --- assignments

    async def grants_of(self, group: str) -> frozenset[Grant]:
        """What a group is granted."""
        return await self._grants({"group.id": group})

    async def grants_on(self, scope: Scope) -> frozenset[Grant]:
        """What groups are granted on a scope."""
        return await self._grants({f"scope.{scope.kind}.id": scope.id})

    async def grants_below(self, domain: str) -> frozenset[Grant]:
        """What groups are granted on all projects of a domain. Keystone keeps a domain as the root of its projects; what is granted on the
        domain itself is not among the answer."""
        return await self._grants({"scope.project.id": domain, "include_subtree": "true"})

    async def grants_with(self, role: str) -> tuple[frozenset[Grant], int]:
        """Where groups are granted a role, and how many assignments of it there are, those of users among them."""
        found = await self._caller.pages("/role_assignments", "role_assignments", {"role.id": role})
        return frozenset(grant for grant in map(_grant, found) if grant), len(found)

    async def _grants(self, query: dict[str, str]) -> frozenset[Grant]:
        found = await self._caller.pages("/role_assignments", "role_assignments", query)
        return frozenset(grant for grant in map(_grant, found) if grant)

    async def grant(self, wanted: Grant) -> None:
        """Grant; once more is as once.

        Raises:
            NotFound: group, role or scope does not exist.
        """
        await self._caller.call("PUT", _path(wanted))

    async def revoke(self, unwanted: Grant) -> None:
        """Take back.

        Raises:
            NotFound: it is not granted, or one of its parts does not exist.
        """
        await self._caller.call("DELETE", _path(unwanted))


def _path(grant: Grant) -> str:
    scope, role = grant.scope, quoted(grant.role)
    return f"/{scope.kind}s/{quoted(scope.id)}/groups/{quoted(grant.group)}/roles/{role}"


def _grant(item: JsonObject) -> Grant | None:
    """One line of the list; users', system-wide and inherited assignments are not ours to see."""
    scope, group = item.get("scope") or {}, (item.get("group") or {}).get("id")
    if not group or scope.get("OS-INHERIT:inherited_to"):
        return None
    role = str((item.get("role") or {}).get("id"))
    if "domain" in scope:
        return Grant(str(group), role, Scope("domain", str(scope["domain"].get("id"))))
    if "project" in scope:
        return Grant(str(group), role, Scope("project", str(scope["project"].get("id"))))
    return None


def _by_name(items: Iterable[JsonObject]) -> dict[str, str]:
    return {str(item["name"]): str(item["id"]) for item in items if "name" in item and "id" in item}


def _named(items: Iterable[JsonObject], name: str) -> str:
    """The exact spelling, or what a case-blind database gives instead."""
    found = _by_name(items)
    return found.get(name) or next(iter(found.values()), "")
