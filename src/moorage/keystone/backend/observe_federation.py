"""Reads a federated backend's objects from Keystone; writes nothing.

Enters: a snapshot with a client and the domain that was found. Leaves: Objects. A steady look costs one request each for identity provider,
protocols, mapping and groups, and one for each group, or for each scope with role assignments (the projects of one domain are one), whichever
are fewer; where these are more than three, one for each role, as long as few have it. Source: spec/keystone.md 4.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from moorage.core.meta import JsonObject
from moorage.keystone.identity import Identity, IdentityError
from moorage.keystone.identity_access import Grant
from moorage.keystone.identity_federation import IdentityProvider, Protocol

from .owned import foreign_users, owned_providers
from .recent import CROWD, Names, Questions, fewest
from .seen import Seen
from .seen_federation import Objects
from .types import FEDERATION_OBJECTS_READY
from .wanted import Share, Wanted, adopts_objects, applied_of, recorded_group, same_rules


async def look(seen: Seen, identity: Identity, names: Names, now: datetime) -> Objects:
    """All that a pass over a federated backend needs of Keystone, besides the domain.

    Raises:
        IdentityError: a look failed, so nothing is known.
    """
    wanted = seen.wanted_objects
    if wanted is None:
        return Objects()
    providers, mappings = await asyncio.gather(_providers(seen, wanted, identity), _mappings(seen, wanted, identity))
    protocols = await _protocols(providers, identity)
    found = Objects(providers, protocols, mappings)
    found = found.after(users=await _users(seen.after(objects=found), wanted, mappings, identity))
    if seen.terminating:
        return found
    groups = await _groups(seen, wanted, identity)
    resolved, missing = await names.resolve(identity, wanted, seen, now)
    resolved = {share: replace(grant, group=groups.get(share.group, "")) for share, grant in resolved.items()}
    return found.after(
        groups=groups,
        resolved=resolved,
        missing=missing,
        grants=await _Grants(identity, names, now).of(resolved, names.domains(seen, wanted, now)),
        taken_by=await _holder(seen, wanted, identity),
    )


async def _providers(seen: Seen, wanted: Wanted, identity: Identity) -> Mapping[str, IdentityProvider]:
    names = [wanted.provider, *(item.name for item in applied_of(seen.backend).identity_providers)]
    found = await asyncio.gather(*(identity.federation.provider(name) for name in dict.fromkeys(names)))
    return {item.id: item for item in found if item}


async def _mappings(seen: Seen, wanted: Wanted, identity: Identity) -> Mapping[str, list[JsonObject]]:
    names = [wanted.mapping, *(item.mapping for item in applied_of(seen.backend).identity_providers)]
    found = await asyncio.gather(*(identity.federation.mapping(name) for name in dict.fromkeys(names)))
    return {item.id: list(item.rules) for item in found if item}


async def _protocols(providers: Iterable[str], identity: Identity) -> Mapping[str, tuple[Protocol, ...]]:
    names = list(providers)
    found = await asyncio.gather(*(identity.federation.protocols(name) for name in names))
    return dict(zip(names, found, strict=True))


async def _users(
    seen: Seen, wanted: Wanted, mappings: Mapping[str, list[JsonObject]], identity: Identity
) -> Mapping[str, str]:
    """Who else's protocol refers to mappings that may be rewritten or deleted. Keystone lists protocols by identity provider only, so all of
    these are asked, and only when there is such a mapping."""
    names = [id for id in mappings if _is_at_stake(seen, wanted, id, mappings[id])]
    if not names:
        return {}
    everyone = await _protocols([item.id for item in await identity.federation.providers()], identity)
    found = {id: foreign_users(seen, id, everyone) for id in names}
    return {id: user for id, user in found.items() if user}


def _is_at_stake(seen: Seen, wanted: Wanted, id: str, rules: list[JsonObject]) -> bool:
    """A mapping of an earlier name goes; the wanted one goes with its backend, and is rewritten when a person lets us take it over."""
    if id != wanted.mapping:
        return True
    if seen.terminating:  # first it is closed and leaves the pods: until then nothing depends on the answer
        return not seen.mount.carries and not any(item.enabled for item in owned_providers(seen))
    return adopts_objects(seen.backend) and not same_rules(rules, wanted.rules)


async def _groups(seen: Seen, wanted: Wanted, identity: Identity) -> Mapping[str, str]:
    """Declared groups and recorded ones that exist, by the name that this backend uses for them."""
    if seen.found is None:
        return {}
    names = [group.name for group in wanted.groups] + [group.name for group in applied_of(seen.backend).groups]
    if not names:
        return {}
    found = await identity.access.groups(seen.found.id)
    kept = {}
    for name in dict.fromkeys(names):
        if id := found.get(name) or _in_other_case(seen, name, found):
            kept[name] = id
    return kept


def _in_other_case(seen: Seen, name: str, found: Mapping[str, str]) -> str:
    """A database that compares without regard to case has one group for both spellings; ours is recorded by id."""
    record = recorded_group(seen.backend, name)
    same = [id for other, id in found.items() if other.lower() == name.lower()]
    return record.id if record is not None and record.id and record.id in same else ""


@dataclass(frozen=True, slots=True)
class _Grants:
    """Asks for the assignments of groups, by as few lists as there can be."""

    identity: Identity
    names: Names
    now: datetime

    async def of(self, resolved: Mapping[Share, Grant], domains: Mapping[str, str]) -> frozenset[Grant]:
        """What is granted of these, and perhaps more."""
        questions = fewest(resolved, domains, self.names.crowded(self.identity.url, self.now))
        try:
            return await self._with(questions.roles) if questions.roles else await self._in(questions)
        except IdentityError:
            if not questions.roles:
                raise
            found = await self._in(fewest(resolved, domains, frozenset(questions.roles)))
            self._note(questions.roles)  # others can be had, so that list is too long
            return found

    async def _in(self, questions: Questions) -> frozenset[Grant]:
        access = self.identity.access
        asked = [access.grants_of(group) for group in questions.groups]
        asked += [access.grants_on(scope) for scope in questions.scopes]
        asked += [access.grants_below(domain) for domain in questions.domains]
        return frozenset().union(*await asyncio.gather(*asked))

    async def _with(self, roles: Sequence[str]) -> frozenset[Grant]:
        found = await asyncio.gather(*map(self.identity.access.grants_with, roles))
        self._note([role for role, (_, total) in zip(roles, found, strict=True) if total >= CROWD])
        return frozenset().union(*(grants for grants, _ in found))

    def _note(self, roles: Iterable[str]) -> None:
        for role in roles:
            self.names.crowd(self.identity.url, role, self.now)


async def _holder(seen: Seen, wanted: Wanted, identity: Identity) -> str:
    """Who holds our remote id, asked only when somebody did: then nothing is tried before it is free."""
    stored = seen.stored(FEDERATION_OBJECTS_READY)
    if stored is None or stored.reason != "RemoteIDTaken":
        return ""
    return await holder(seen, wanted, identity)


async def holder(seen: Seen, wanted: Wanted, identity: Identity) -> str:
    """The identity provider, not one of ours, that holds our remote id; "" when nobody does."""
    own = {wanted.provider, *(item.name for item in applied_of(seen.backend).identity_providers)}
    for provider in await identity.federation.providers():
        if wanted.remote_id in provider.remote_ids and provider.id not in own:
            return provider.id
    return ""
