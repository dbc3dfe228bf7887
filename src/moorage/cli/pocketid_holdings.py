"""Everything that a Pocket-ID holds, read once.

Enters: a REST client. Leaves: Holdings. It only reads. Lists tell most; groups of a restricted client, members of a group, grants and SCIM
providers are asked for one by one, a few at a time, and a server that asks to slow down is obeyed.
Source: spec/pocketid.md 4.1, 4.2, 4.6, 4.8, 4.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from moorage.pocketid.rest import (
    STATIC_KEY_OWNER,
    Api,
    Client,
    Grant,
    Group,
    NotFound,
    PocketID,
    RateLimited,
    ScimProvider,
    User,
)

AT_ONCE: Final = 8
"""Requests under way at a time."""
PATIENCE: Final = 5
"""How often a request is sent again when the server asks to slow down."""
LEAST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is there, without the user that owns the static API key.

    Args:
        grants, providers: by client ID; clients without any are absent. Only `everything` asks for them.
    """

    clients: tuple[Client, ...] = ()
    groups: tuple[Group, ...] = ()
    apis: tuple[Api, ...] = ()
    users: tuple[User, ...] = ()
    grants: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict)
    providers: Mapping[str, ScimProvider] = field(default_factory=dict)


async def listed(remote: PocketID) -> Holdings:
    """What the four lists tell: a request a page.

    Raises:
        PocketIDError: the server refused or did not answer.
    """
    users = await _patiently(remote.list_users)
    return Holdings(
        clients=await _patiently(remote.list_oidc_clients),
        groups=await _patiently(remote.list_user_groups),
        apis=await _patiently(remote.list_apis),
        users=tuple(user for user in users if user.id != STATIC_KEY_OWNER),
    )


async def everything(remote: PocketID) -> Holdings:
    """The lists, and what only a look at each object tells. What goes away meanwhile counts as never seen.

    Raises:
        PocketIDError: the server refused or did not answer.
    """
    first = await listed(remote)
    restricted = [item.id for item in first.clients if item.is_group_restricted]
    fresh = await _each(restricted, remote.get_oidc_client)
    groups = await _each([item.id for item in first.groups], remote.get_user_group)
    ids = [item.id for item in first.clients]
    grants = await _each(ids, remote.list_api_client_grants) if first.apis else {}
    providers = await _each(ids, remote.get_oidc_client_scim_service_provider)
    clients = (fresh.get(item.id) if item.id in restricted else item for item in first.clients)
    return Holdings(
        clients=tuple(item for item in clients if item is not None),
        groups=tuple(groups.values()),
        apis=first.apis,
        users=first.users,
        grants={id: found for id, found in grants.items() if found},
        providers={id: found for id, found in providers.items() if found is not None},
    )


async def _each(ids: Iterable[str], ask: Callable[[str], Awaitable[S]]) -> dict[str, S]:
    """Answers by id, in the order of the ids; ids that are gone are left out."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(id: str) -> tuple[str, S] | None:
        async with turns:
            try:
                return id, await _patiently(lambda: ask(id))
            except NotFound:
                return None

    found = await asyncio.gather(*(one(id) for id in ids))
    return dict(item for item in found if item is not None)


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    for _ in range(PATIENCE):
        try:
            return await ask()
        except RateLimited as error:
            await asyncio.sleep(min(max(error.retry_after, LEAST_WAIT), LONGEST_WAIT))
    return await ask()
