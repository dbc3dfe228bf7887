"""Everything a pass over a deployed instance writes: one plan at a time, and the answer into the snapshot.

Enters: the world, a snapshot, a plan. Leaves: the snapshot with the answer. It decides nothing: what the server refuses becomes a Refusal that
the next decision sees. Fresh keys are made here and nowhere else.
"""

from __future__ import annotations

import secrets
import string
from dataclasses import replace
from typing import Final

from moorage.core.meta import JsonObject, is_terminating, key_of
from moorage.core.secret import SecretText
from moorage.kube.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound, TooLarge
from moorage.kube.resources import SECRETS
from moorage.runtime.room import Event
from moorage.runtime.world import ForeignObject, World

from . import render
from .children import is_kept_by
from .observe_deployed import HTTP_ROUTES, KINDS
from .plan import Ensure, HoldKey, MakeApiKey, MakeEncryptionKey, Plan, Remove, Step
from .seen import Deployed, Refusal, Seen
from .types import KEY_FINALIZER

_LENGTH: Final = 32
_LETTERS: Final = string.ascii_letters + string.digits
_UNSERVED: Final = {
    "StatefulSet": (
        "DeploymentUnavailable",
        "this API server knows no StatefulSets (one-machine mode has Deployments): create the instance anew with deploymentType Deployment",
    ),
    HTTP_ROUTES.kind: (
        "RouteUnavailable",
        "this API server knows no HTTPRoutes of gateway.networking.k8s.io/v1: install the Gateway API, or set spec.route.enabled to false",
    ),
}
"""What an instance may want and an API server may lack."""


async def apply(world: World, seen: Seen, plan: Plan) -> Seen:
    """Perform a plan.

    Raises:
        Conflict: a child was changed meanwhile; the pass is run again.
        MoorageError: a wire broke.
    """
    if isinstance(plan, HoldKey):
        return await _hold(world, seen, plan)
    here = seen.deployed
    assert here is not None
    step = _step(plan)
    try:
        return replace(seen, deployed=await _performed(world, seen, here, plan))
    except ForeignObject as error:
        refusal = Refusal(step, "ForeignObject", str(error))
    except NotFound as error:
        kind = plan.manifest["kind"] if isinstance(plan, Ensure) else ""
        if kind not in _UNSERVED or error.details.get("kind") == "namespaces":
            raise
        refusal = Refusal(step, *_UNSERVED[kind])
    except (Forbidden, Invalid, BadRequest, TooLarge) as error:
        if error.namespace_ends:
            return replace(seen, deployed=replace(here, namespace_ends=True))
        refusal = Refusal(step, "WriteRefused", error.message)
    return replace(seen, deployed=replace(here, refusal=refusal))


async def _hold(world: World, seen: Seen, plan: HoldKey) -> Seen:
    """The list is guarded by the resourceVersion, so that finalizers of others are neither lost nor brought back."""
    meta, key, keys = plan.secret["metadata"], key_of(plan.secret), seen.keys
    others = [item for item in meta.get("finalizers") or () if item != KEY_FINALIZER]
    wanted = {
        "resourceVersion": meta["resourceVersion"],
        "finalizers": [*others, KEY_FINALIZER] if plan.held else others,
    }
    answer: JsonObject | None = None
    try:
        answer = await world.patch(SECRETS, key, {"metadata": wanted})
    except NotFound:
        world.cache.forget(SECRETS, key, meta.get("uid", ""))
    except (Forbidden, Invalid):
        if not plan.held:
            raise
        return replace(seen, keys=replace(keys, refused=True))
    if keys.own is not None and key_of(keys.own) == key:
        return replace(seen, keys=replace(keys, own=answer))
    return replace(seen, keys=replace(keys, spare=tuple(item for item in keys.spare if key_of(item) != key)))


def _step(plan: Ensure | Remove | MakeEncryptionKey | MakeApiKey) -> Step:
    match plan:
        case MakeEncryptionKey():
            return "EncryptionKey"
        case MakeApiKey():
            return "APIKey"
        case Ensure(step, _) | Remove(step, _):
            return step


async def _performed(
    world: World, seen: Seen, here: Deployed, plan: Ensure | Remove | MakeEncryptionKey | MakeApiKey
) -> Deployed:
    match plan:
        case MakeEncryptionKey(key):
            return await _make_encryption_key(world, seen, here, key)
        case MakeApiKey(live):
            return await _make_api_key(world, seen, here, live)
        case Ensure(step, manifest):
            return await _ensured(world, seen, here, step, manifest)
        case Remove(step, live):
            return await _removed(world, here, step, live)


def _fresh() -> SecretText:
    """32 random letters and digits: 190 bits."""
    return SecretText("".join(secrets.choice(_LETTERS) for _ in range(_LENGTH)))


async def _make_encryption_key(world: World, seen: Seen, here: Deployed, key: SecretText | None) -> Deployed:
    """Create; one that a pass before made, whose answer was lost, is taken as it is. It has no owner yet: `Ensure` sees to that."""
    manifest = render.encryption_key(seen.instance, key or _fresh())
    manifest["metadata"].pop("ownerReferences", None)
    name = manifest["metadata"]["name"]
    try:
        answer = await world.create(SECRETS, manifest)
    except AlreadyExists:
        found = await world.refresh(SECRETS, key_of(manifest))
        if found is None:
            raise
        return _held(here, found)
    how = "holds the encryption key that was made" if key is None else "holds the encryption key that was given"
    note = Event("Normal", "EncryptionKeyHeld", f'Secret "{name}" {how}: keep a backup of it')
    return replace(_held(here, answer), notes=(*here.notes, note))


def _held(here: Deployed, secret: JsonObject) -> Deployed:
    """With a Secret in the snapshot whose step is not over."""
    name = secret["metadata"]["name"]
    return replace(here, live={**here.live, ("Secret", name): {**secret, "kind": "Secret"}})


async def _make_api_key(world: World, seen: Seen, here: Deployed, live: JsonObject | None) -> Deployed:
    manifest = render.api_key(seen.instance, _fresh())
    name = manifest["metadata"]["name"]
    if live is not None:
        body = {**live, "apiVersion": "v1", "kind": "Secret", "data": manifest["data"]}
        answer = await world.replace(SECRETS, body)
        note = Event("Warning", "APIKeyReplaced", f'Secret "{name}" held no usable API key; it holds a new one')
        return replace(_held(here, answer), notes=(*here.notes, note))
    try:
        return _held(here, await world.create(SECRETS, manifest))
    except AlreadyExists:
        found = await world.refresh(SECRETS, key_of(manifest))
        if found is None:
            raise
        return _held(here, found)


async def _ensured(world: World, seen: Seen, here: Deployed, step: Step, manifest: JsonObject) -> Deployed:
    """Applied. What no owner controls is looked for at the server before it is made: nobody's object is taken for ours."""
    kind, name, rt = manifest["kind"], manifest["metadata"]["name"], KINDS[manifest["kind"]]
    if here.child(kind, name) is None and not _is_owned(manifest):
        found = await world.refresh(rt, key_of(manifest))
        if found is not None and not is_kept_by(found, seen.instance):
            raise ForeignObject(rt, key_of(manifest), None)
    answer = await world.ensure(rt, manifest)
    return here.after(step, kind, name, {**answer, "kind": kind})


def _is_owned(manifest: JsonObject) -> bool:
    return any(item["controller"] for item in manifest["metadata"].get("ownerReferences") or ())


async def _removed(world: World, here: Deployed, step: Step, live: JsonObject) -> Deployed:
    kind, key = live["kind"], key_of(live)
    await world.delete(KINDS[kind], live)
    left = (
        await world.refresh(KINDS[kind], key)
        if not world.cache.holds(KINDS[kind])
        else world.cache.get(KINDS[kind], key)
    )
    ending = left is not None and is_terminating(left)
    after = here.after(step, kind, key.name, {**left, "kind": kind} if ending and left is not None else None)
    return replace(after, done=here.done)
