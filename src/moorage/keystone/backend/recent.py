"""What outlives a pass, in memory only: names that Keystone resolved, and what it held a moment ago.

Enters: answers of Keystone and the time. Leaves: the same answers, for a short while. Passes come in bursts while Keystone rolls; they
must not ask the same things again. Nothing here is needed after a restart. A failure, an edit or an annotation forgets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.core.meta import Key
from moorage.keystone.identity_access import Grant, Scope

from .seen import Lookup, Seen
from .seen_federation import Objects
from .wanted import Project, Share, Wanted

if TYPE_CHECKING:
    from moorage.keystone.identity import Identity

LOOK: Final = timedelta(seconds=20)
"""How long a look at a healthy backend stands in for another one."""
NAMES: Final = timedelta(minutes=5)
"""How long the id of a role or a project is believed; one that does not exist is asked for each time."""
FEW: Final = 4
"""Up to as many projects of a domain are asked for by name; more are read as one list."""
LISTS: Final = 3
"""Up to as many lists of assignments belong to a steady look, which is eight requests with them; more are worth another kind of list."""
CROWD: Final = 1000
"""From as many assignments on a role is everybody's: what a few of them say is not worth the list of all."""
CROWDED: Final = timedelta(days=1)
"""How long a role is believed to be everybody's."""

Mark: TypeAlias = tuple[str, ...]


def mark_of(seen: Seen) -> Mark:
    """What must be the same for a look to stand in: object, declaration, annotations, Keystone."""
    meta = seen.backend.metadata
    notes = tuple(f"{name}={value}" for name, value in sorted((meta.annotations or {}).items()))
    return (meta.uid, str(meta.generation), seen.identity.url if seen.identity else "", *notes)


@dataclass
class Looks:
    """The last look at each healthy federated backend, with this process's own writes in it."""

    _kept: dict[Key, tuple[Mark, datetime, Lookup, Objects]] = field(default_factory=dict)

    def recall(self, seen: Seen, now: datetime) -> tuple[Lookup, Objects] | None:
        """The look of a moment ago, None when it is too old or of another declaration."""
        kept = self._kept.get(seen.backend.key)
        if kept is None or kept[0] != mark_of(seen) or now - kept[1] > LOOK:
            return None
        return kept[2], kept[3]

    def keep(self, seen: Seen, now: datetime) -> None:
        """Keep a look that answered everything; its age counts from now. What is waited for is looked at anew."""
        waiting = seen.found is None and (seen.adopts or (isinstance(seen.lookup, Lookup) and seen.lookup.named))
        if isinstance(seen.lookup, Lookup) and seen.objects and not waiting and not seen.terminating:
            self._kept[seen.backend.key] = (mark_of(seen), now, seen.lookup, seen.objects)

    def note(self, seen: Seen) -> None:
        """An own write changed it; it does not get younger by that. What is not all well is looked at anew."""
        kept = self._kept.get(seen.backend.key)
        objects = seen.objects
        sound = objects is not None and not objects.missing and not objects.taken_by and seen.failure is None
        if not sound or not isinstance(seen.lookup, Lookup):
            self.forget(seen.backend.key)
        elif kept is not None and objects is not None:
            self._kept[seen.backend.key] = (kept[0], kept[1], seen.lookup, objects)

    def forget(self, key: Key) -> None:
        """Look anew next time."""
        self._kept.pop(key, None)


@dataclass
class _Known:
    ids: dict[str, str]
    since: datetime


@dataclass
class Names:
    """Ids of roles, projects and domains by name, shared by all backends of a Keystone; and which roles are everybody's."""

    _kept: dict[tuple[str, str], _Known] = field(default_factory=dict)
    _crowded: dict[tuple[str, str], datetime] = field(default_factory=dict)

    async def resolve(
        self, identity: Identity, wanted: Wanted, seen: Seen, now: datetime
    ) -> tuple[Mapping[Share, Grant], tuple[str, ...]]:
        """Declared shares as ids, their group left "", and what does not exist, a few words each.

        Raises:
            IdentityError: Keystone did not answer.
        """
        shares = wanted.shares
        roles = await self._roles(identity, {share.role for share in shares}, now)
        projects = await self._projects(identity, {share.project for share in shares if share.project}, seen, now)
        found: dict[Share, Grant] = {}
        missing: dict[str, None] = {}
        for share in shares:
            scope = Scope("domain", seen.domain_id)
            if share.project:
                scope = Scope("project", projects.get(share.project, ""))
            if share.role not in roles:
                missing[f"role {share.role!r}"] = None
            if not scope.id:
                missing[str(share.project)] = None
            if share.role in roles and scope.id:
                found[share] = Grant("", roles[share.role], scope)
        return found, tuple(missing)

    def domains(self, seen: Seen, wanted: Wanted, now: datetime) -> Mapping[str, str]:
        """Ids of the domains of declared projects by name, as far as they are known."""
        kept = self._recall(seen.identity.url, "domains", now) if seen.identity else {}
        names = {share.project.domain for share in wanted.shares if share.project}
        own = {seen.domain_name: seen.domain_id}
        return {name: id for name in names if (id := own.get(name) or kept.get(name, ""))}

    def crowded(self, url: str, now: datetime) -> frozenset[str]:
        """Ids of roles that are everybody's."""
        return frozenset(
            role for (where, role), since in self._crowded.items() if where == url and now - since < CROWDED
        )

    def crowd(self, url: str, role: str, now: datetime) -> None:
        """A role turned out to be everybody's, or the list of its assignments too long to be had."""
        self._crowded[url, role] = now

    def forget(self, url: str) -> None:
        """Something was refused: an id may be of yesterday."""
        for key in [item for item in self._kept if item[0] == url]:
            del self._kept[key]

    async def _roles(self, identity: Identity, names: set[str], now: datetime) -> Mapping[str, str]:
        if not names:
            return {}
        kept = self._recall(identity.url, "roles", now)
        if not names <= kept.keys():
            kept = self._keep(identity.url, "roles", await identity.access.roles(), now)
        return kept

    async def _projects(
        self, identity: Identity, wanted: set[Project], seen: Seen, now: datetime
    ) -> Mapping[Project, str]:
        found: dict[Project, str] = {}
        for domain in sorted({project.domain for project in wanted}):
            id = seen.domain_id if domain == seen.domain_name else await self._domain(identity, domain, now)
            names = {project.name for project in wanted if project.domain == domain}
            ids = await self._in_domain(identity, id, names, now) if id else {}
            found |= {Project(domain, name): ids[name] for name in names if ids.get(name)}
        return found

    async def _domain(self, identity: Identity, name: str, now: datetime) -> str:
        kept = self._recall(identity.url, "domains", now)
        if name not in kept:
            found = await identity.domain_named(name)
            if found is None:
                return ""
            kept = self._keep(identity.url, "domains", {**kept, name: found.id}, now)
        return kept[name]

    async def _in_domain(self, identity: Identity, domain: str, names: set[str], now: datetime) -> Mapping[str, str]:
        what = f"projects of {domain}"
        kept = self._recall(identity.url, what, now)
        unknown = sorted(names - kept.keys())
        if not unknown:
            return kept
        if len(unknown) > FEW:
            kept = {**kept, **await identity.access.projects(domain)}
            unknown = sorted(names - kept.keys())
        for name in unknown[:FEW] if len(unknown) > FEW else unknown:
            if id := await identity.access.project(domain, name):
                kept = {**kept, name: id}
        return self._keep(identity.url, what, dict(kept), now)

    def _recall(self, url: str, what: str, now: datetime) -> Mapping[str, str]:
        kept = self._kept.get((url, what))
        return kept.ids if kept is not None and now - kept.since <= NAMES else {}

    def _keep(self, url: str, what: str, ids: dict[str, str], now: datetime) -> Mapping[str, str]:
        """An addition does not make the older ones younger."""
        kept = self._kept.get((url, what))
        since = kept.since if kept is not None and now - kept.since <= NAMES and what != "roles" else now
        self._kept[url, what] = _Known(ids, since)
        return ids


@dataclass(frozen=True, slots=True)
class Questions:
    """By which lists of Keystone all of some assignments are seen: of groups, on scopes, on all projects of domains, of roles (all by id)."""

    groups: tuple[str, ...] = ()
    scopes: tuple[Scope, ...] = ()
    domains: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.groups) + len(self.scopes) + len(self.domains) + len(self.roles)


def fewest(
    resolved: Mapping[Share, Grant], domains: Mapping[str, str], crowded: frozenset[str] = frozenset()
) -> Questions:
    """The fewest questions for the assignments whose group exists: by group, or by scope, the projects of one domain together. Where these are
    more than a few: by role, whoever else has it.

    Args:
        domains: ids of the domains of declared projects, by name; the projects of one that is not there are asked one by one.
        crowded: ids of roles that are everybody's.
    """
    found = {share: grant for share, grant in resolved.items() if grant.group}
    by_group = Questions(groups=tuple(dict.fromkeys(grant.group for grant in found.values())))
    homes: dict[str, dict[Scope, None]] = {}
    for share, grant in found.items():
        home = domains.get(share.project.domain, "") if share.project else ""
        homes.setdefault(home, {})[grant.scope] = None
    alone = [scope for home, scopes in homes.items() if not home or len(scopes) == 1 for scope in scopes]
    together = [home for home, scopes in homes.items() if home and len(scopes) > 1]
    by_scope = Questions(scopes=tuple(alone), domains=tuple(together))
    by_role = Questions(roles=tuple(dict.fromkeys(grant.role for grant in found.values())))
    best = min(by_group, by_scope, key=len)
    return best if len(best) <= LISTS or len(by_role) >= len(best) or crowded & set(by_role.roles) else by_role
