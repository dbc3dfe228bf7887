"""Performs plans about secrets: one step at the server, the credentials Secret, requests and marks on our own objects.

Enters: a snapshot and a plan. Leaves: the snapshot with the answers. It decides nothing. No message and no event holds a secret.
Source: spec/pocketid.md 3.11, 4.3.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TypeAlias

from moorage.core.meta import JsonObject, Key
from moorage.kube.errors import AlreadyExists
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.reach import Lists, lists_of
from moorage.pocketid.rest import NotFound, PocketID
from moorage.runtime.room import Event
from moorage.runtime.world import World

from . import metrics
from .lookups import Absent
from .plans import ChangeSecrets, DeleteSecret, HoldForGroups, MarkInstance, RemoveAnnotation, WriteSecret
from .render import mark_of, stored
from .rotation import stamp
from .secret_snapshot import Secrets
from .secrets import Delete, Discard, Made, Mint, Push, Trigger
from .seen import Seen
from .types import GROUP_FINALIZER, KIND, REFRESH

SecretPlan: TypeAlias = ChangeSecrets | WriteSecret | DeleteSecret | MarkInstance | RemoveAnnotation | HoldForGroups


async def perform(world: World, seen: Seen, plan: SecretPlan) -> Seen:
    """Perform it.

    Raises:
        PocketIDError, ApiError: it was refused, or not answered.
    """
    match plan:
        case ChangeSecrets():
            return await _change(world, seen, plan)
        case WriteSecret():
            return await _write(world, seen, plan.manifest)
        case DeleteSecret():
            return await _remove(world, seen, plan.name)
        case MarkInstance():
            assert seen.instance is not None
            body = {"status": {"lastRotatedClientSecret": stamp(plan.at)}}
            await world.patch(INSTANCE.resource, seen.instance.key, body, subresource="status")
            return seen.after(instance_rotated=plan.at)
        case RemoveAnnotation():
            return await _without_request(world, seen, plan)
        case HoldForGroups():
            return await _held(world, seen, held=plan.held)


# --- at the server


async def _change(world: World, seen: Seen, plan: ChangeSecrets) -> Seen:
    assert seen.remote is not None
    assert seen.found is not None
    assert seen.secrets is not None
    remote, id = seen.remote, seen.found.id
    lists = lists_of(world, remote.url)
    try:
        seen = await _step(seen, remote, id, plan)
        _remembered(lists, seen, plan)
    except NotFound:
        lists.clients.forget(id)
        return seen.after(look=Absent(lost=True), secrets=None)
    assert seen.secrets is not None
    assert seen.found is not None
    secrets = seen.secrets.after(server_now=lists.clock(remote, seen.now))
    client = replace(seen.found, secrets=secrets.held)
    lists.clients.note(client)
    return seen.with_client(client, dirty=True).after(secrets=secrets)


def _remembered(lists: Lists, seen: Seen, plan: ChangeSecrets) -> None:
    """What was pushed, for as long as this process lives: where nothing is stored, nothing else tells that a value is that of before."""
    made = seen.secrets.made if seen.secrets is not None else None
    if isinstance(plan.step, Push) and made is not None:
        lists.pushed[seen.client.metadata.uid] = mark_of(made.id, made.value)


async def _step(seen: Seen, remote: PocketID, id: str, plan: ChangeSecrets) -> Seen:
    secrets = seen.secrets
    assert secrets is not None
    match plan.step:
        case Mint(trigger):
            made = await remote.create_oidc_client_secret(id)
            return seen.after(secrets=secrets.minted(Made(made, trigger)))
        case Push(value):
            made = await remote.create_oidc_client_secret(id, value)
            version = seen.declared.version if seen.declared else ""
            seen = seen.after(secrets=secrets.minted(Made(made, Trigger.DECLARED)), pushed_version=version)
            return seen.tells(Event("Normal", "SecretPushed", "sent the declared client secret to Pocket-ID"))
        case Discard(secret):
            await _gone(remote, id, secret)
            return seen.after(secrets=secrets.without([secret]))
        case Delete(ids, reason):
            for secret in ids:
                await _gone(remote, id, secret)
                metrics.retired(seen.key, reason)
            told = f"deleted {len(ids)} client secrets ({reason})"
            return seen.after(secrets=secrets.without(ids)).tells(Event("Normal", "SecretRetired", told))


async def _gone(remote: PocketID, id: str, secret: str) -> None:
    """A secret that is gone already is done; so is one whose client is gone, which the readback tells."""
    with contextlib.suppress(NotFound):
        await remote.delete_oidc_client_secret(id, secret)


# --- the credentials Secret


async def _write(world: World, seen: Seen, manifest: JsonObject) -> Seen:
    """Created or replaced, guarded by the resourceVersion that the manifest has; a Secret that appeared meanwhile is looked at anew."""
    key = Key(seen.key.namespace, manifest["metadata"]["name"])
    world.cache.writing.add((SECRETS, key))  # it does not wake this pass again, whether event or answer comes first
    try:
        if seen.kept.live is None:
            answer = await world.create(SECRETS, manifest)
        else:
            answer = await world.replace(SECRETS, manifest)
    except AlreadyExists:
        await world.refresh(SECRETS, key)
        raise
    finally:
        world.cache.writing.discard((SECRETS, key))
    now = world.cache.get(SECRETS, key)
    if now is None or now["metadata"]["resourceVersion"] != answer["metadata"]["resourceVersion"]:
        world.wake(KIND.resource, seen.key)  # somebody else wrote or deleted it meanwhile
    before = seen.secrets
    made = before.fresh if before is not None else None
    seen = seen.after(kept=replace(seen.kept, live=answer))
    if before is None:
        return seen
    found = stored(seen.client, answer)
    seen = seen.after(secrets=before.after(stored=found.value, altered=False), history=found.history)
    return _told(seen, before, made)


def _told(seen: Seen, before: Secrets, made: Made | None) -> Seen:
    """That a new secret is stored; the stored one is the moment of rotation."""
    if made is None or made.value == before.stored or made.trigger is Trigger.DECLARED:
        return seen
    metrics.rotated(seen.key, made.trigger, "success")
    reason = "SecretCreated" if made.trigger is Trigger.INITIAL else "SecretRotated"
    return seen.tells(Event("Normal", reason, f"stored a new client secret ({made.trigger})"))


async def _remove(world: World, seen: Seen, name: str) -> Seen:
    kept = seen.kept
    for secret in (kept.live, kept.former):
        if secret is not None and secret["metadata"]["name"] == name:
            await world.delete(SECRETS, secret)
    live = None if kept.live is not None and kept.live["metadata"]["name"] == name else kept.live
    former = None if kept.former is not None and kept.former["metadata"]["name"] == name else kept.former
    told = Event("Normal", "SecretDeleted", f"deleted credentials Secret {name}, which is not wanted any more")
    return seen.after(kept=replace(kept, live=live, former=former)).tells(told)


# --- our own object


async def _without_request(world: World, seen: Seen, plan: RemoveAnnotation) -> Seen:
    await world.patch(KIND.resource, seen.key, {"metadata": {"annotations": {plan.name: None}}})
    left = {name: text for name, text in seen.annotations.items() if name != plan.name}
    seen = seen.after(annotations=left, refreshing=plan.name == REFRESH and not plan.why)
    if seen.secrets is not None and plan.name != REFRESH:
        seen = seen.after(secrets=seen.secrets.after(asked=False))
    if not plan.why:
        return seen
    return seen.tells(Event("Warning", "RequestIgnored", f"annotation {plan.name} has no effect: {plan.why}"))


async def _held(world: World, seen: Seen, *, held: bool) -> Seen:
    """The list is guarded by the resourceVersion, so that finalizers of others are neither lost nor brought back."""
    stored_object = world.cache.get(KIND.resource, seen.key)
    meta = (stored_object or {"metadata": {}})["metadata"]
    others = [item for item in meta.get("finalizers") or () if item != GROUP_FINALIZER]
    wanted = [*others, GROUP_FINALIZER] if held else others
    body = {"metadata": {"resourceVersion": meta.get("resourceVersion"), "finalizers": wanted}}
    answer = await world.patch(KIND.resource, seen.key, body)
    found = seen.client.metadata.model_copy(update={"finalizers": tuple(answer["metadata"].get("finalizers") or ())})
    return seen.after(client=seen.client.model_copy(update={"metadata": found}))
