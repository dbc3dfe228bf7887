"""Performs plans about what hangs on a client: logos, the SCIM provider, grants on APIs.

Enters: a snapshot and a plan. Leaves: the snapshot with the answers. It decides nothing. Source: spec/pocketid.md 3.7, 3.9, 3.10, 4.4, 4.8, 4.9.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeAlias

from moorage.pocketid.reach import Narrowed, lists_of
from moorage.pocketid.rest import Access, Api, Grant, LogoRefused, NotFound, PocketID
from moorage.runtime.room import Event
from moorage.runtime.world import World

from .lookups import Found, Unknown
from .plans import CreateScim, DeleteLogo, DeleteScim, PushLogo, RemoveGrant, SetGrant, UpdateScim
from .seen import Seen

FeaturePlan: TypeAlias = PushLogo | DeleteLogo | CreateScim | UpdateScim | DeleteScim | SetGrant | RemoveGrant
REFUSED_FOR: Final = timedelta(hours=24)
NARROWED_FOR: Final = timedelta(hours=1)


async def perform(world: World, seen: Seen, plan: FeaturePlan) -> Seen:
    """Perform it.

    Raises:
        PocketIDError: it was refused, or not answered.
    """
    assert seen.remote is not None
    assert seen.found is not None
    remote, id = seen.remote, seen.found.id
    match plan:
        case PushLogo():
            return await _push(world, seen, remote, plan)
        case DeleteLogo(side):
            with contextlib.suppress(NotFound):
                await remote.delete_oidc_client_logo(id, side)
            return _logo(seen, side, None).tells(
                Event("Normal", "LogoDeleted", f"deleted the {side} logo that was put there by this resource")
            )
        case CreateScim(endpoint, token):
            made = await remote.create_scim_service_provider(id, endpoint, token)
            told = Event("Normal", "ScimProviderCreated", f"created the SCIM provider {made.id}")
            return seen.after(scim=replace(seen.scim, provider=made)).tells(told)
        case UpdateScim(provider, endpoint, token):
            made = await remote.update_scim_service_provider(provider, id, endpoint, token)
            told = Event("Normal", "ScimProviderUpdated", f"wrote endpoint and token of the SCIM provider {made.id}")
            return seen.after(scim=replace(seen.scim, provider=made)).tells(told)
        case DeleteScim(provider):
            with contextlib.suppress(NotFound):
                await remote.delete_scim_service_provider(provider)
            left = await remote.get_oidc_client_scim_service_provider(id)
            told = Event("Normal", "ScimProviderDeleted", f"deleted the SCIM provider {provider}")
            return seen.after(scim=replace(seen.scim, provider=left)).tells(told)
        case SetGrant() | RemoveGrant():
            return await _grant(world, seen, remote, plan)


# --- logos


async def _push(world: World, seen: Seen, remote: PocketID, plan: PushLogo) -> Seen:
    """A refusal is remembered for a day; everything else of the write is committed, so it fails nothing."""
    assert seen.found is not None
    lists = lists_of(world, remote.url)
    field = "logoUrl" if plan.side == "light" else "darkLogoUrl"
    try:
        client = await remote.update_oidc_client(seen.found.id, seen.found.body({field: plan.url}))
    except LogoRefused as error:
        lists.refused[plan.url] = seen.now + REFUSED_FOR
        told = Event("Warning", "LogoRefused", f"the {plan.side} logo {plan.url} is not tried again for a day: {error}")
        return seen.after(refused_logos=seen.refused_logos | {plan.url}).tells(told)
    lists.clients.note(client)
    return _logo(seen.with_client(client, dirty=True), plan.side, plan.url)


def _logo(seen: Seen, side: str, url: str | None) -> Seen:
    """What is applied now; the client as the server has it now is known by the readback."""
    found = seen.look
    assert isinstance(found, Found)
    flag = "has_logo" if side == "light" else "has_dark_logo"
    client = replace(found.client, **{flag: url is not None})  # type: ignore[arg-type]
    return seen.after(look=replace(found, client=client, dirty=True), applied_logos={**seen.applied_logos, side: url})


# --- grants


def _first_grant(seen: Seen, api_id: str) -> Grant:
    """A row that the server did not list: nothing is held, by whatever way."""
    need = next(item for item in seen.apis.needs if item.api_id == api_id)
    return Grant(Api(api_id, need.name, need.audience), Access(), False)


async def _grant(world: World, seen: Seen, remote: PocketID, plan: SetGrant | RemoveGrant) -> Seen:
    """The answer is what the server applied, which may be less than it was sent."""
    grants, found = seen.apis.grants, seen.found
    assert isinstance(grants, tuple)
    assert found is not None
    id, narrowed = found.id, lists_of(world, remote.url).narrowed
    narrowed.pop((id, plan.api_id), None)
    if isinstance(plan, RemoveGrant):
        with contextlib.suppress(NotFound):
            await remote.remove_api_client_grant(plan.api_id, id)
        applied, told = Access(), Event("Normal", "AccessRevoked", f"revoked access to API {plan.api_id}")
    else:
        applied = await remote.set_api_client_grant(plan.api_id, id, plan.access)
        told = Event("Normal", "AccessGranted", f"granted access to API {plan.api_id}")
        if applied != plan.access:
            narrowed[id, plan.api_id] = Narrowed(found.is_public, plan.access, applied, seen.now + NARROWED_FOR)
    known = {grant.api.id: grant for grant in grants}
    before = known.get(plan.api_id) or _first_grant(seen, plan.api_id)
    known[plan.api_id] = replace(before, access=applied)
    kept: tuple[Grant, ...] | Unknown = tuple(known.values())
    return seen.after(apis=replace(seen.apis, grants=kept)).tells(told)
