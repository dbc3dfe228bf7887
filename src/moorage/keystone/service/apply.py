"""Everything a pass over a Keystone writes: one plan at a time, and the answers into the snapshot.

Enters: the world, the snapshot, a plan. Leaves: the snapshot with the answers. It decides nothing: what the server refuses becomes a
Refusal that the next decision sees. Fresh keys are made here and nowhere else.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from dataclasses import dataclass, field, replace
from typing import Final

from moorage.core.meta import JsonObject, controlled_by, is_terminating, key_of
from moorage.keystone.key_pair import make_pair
from moorage.kube.errors import AlreadyExists, BadRequest, Forbidden, Invalid, TooLarge
from moorage.runtime.projection import ensure_bundle, prune
from moorage.runtime.world import ForeignObject, World

from . import federation_secrets, keys, manifests, metrics, observe
from .plan import (
    Action,
    CommitKeys,
    Create,
    Ensure,
    MakeKeys,
    MakePair,
    MakePassphrase,
    Plan,
    Probe,
    Project,
    Prune,
    Remove,
    StageKeys,
    SwitchPair,
    Tell,
)
from .render import PASSPHRASE, wanted
from .seen import SECRET, Health, Note, Refusal, Seen

_KEY_BYTES: Final = 32


@dataclass
class _Answers:
    """What the actions of one plan came to."""

    written: dict[tuple[str, str], JsonObject | None] = field(default_factory=dict)
    health: Health | None = None
    notes: list[Note] = field(default_factory=list)

    def note(self, obj: JsonObject) -> None:
        self.written[obj["kind"], obj["metadata"]["name"]] = obj


async def apply(memory: observe.Memory, world: World, seen: Seen, plan: Plan) -> Seen:
    """Perform a plan.

    Raises:
        Conflict: a child was changed meanwhile; the pass is run again.
        MoorageError: a wire broke.
    """
    started, answers = time.monotonic(), _Answers()
    try:
        for action in plan.actions:
            await _perform(world, seen, action, answers)
    except ForeignObject as error:
        return _refused(seen, plan, "ForeignObject", str(error))
    except (Forbidden, Invalid, BadRequest, TooLarge) as error:
        if error.namespace_ends:
            return replace(seen, namespace_ends=True)
        return _refused(seen, plan, "WriteRefused", error.message)
    finally:
        metrics.DURATION.labels(plan.step).observe(time.monotonic() - started)
    if answers.health is not None:
        memory.health[seen.keystone.metadata.uid] = answers.health
    done = _informed(seen.after(plan.step, answers.written))
    return replace(done, health=answers.health or done.health, notes=(*done.notes, *answers.notes))


def _informed(seen: Seen) -> Seen:
    """With what was just written among the inputs: what is made from a Secret follows in the same pass."""
    inputs = federation_secrets.renewed(seen)
    return seen if inputs is seen.inputs else replace(seen, inputs=inputs, wanted=wanted(inputs))


def _refused(seen: Seen, plan: Plan, reason: str, message: str) -> Seen:
    metrics.ERRORS.labels(plan.step, reason).inc()
    return replace(seen, refusal=Refusal(plan.step, reason, message))


async def _perform(world: World, seen: Seen, action: Action, answers: _Answers) -> None:
    match action:
        case Ensure(resource, manifest):
            answers.note({**await world.ensure(resource, manifest), "kind": resource.kind})
        case Project(_, manifest):
            await ensure_bundle(world, manifest)
        case Create(resource, manifest):
            answers.note({**await _create(world, action), "kind": resource.kind})
        case Remove():
            await _remove(world, action, answers)
        case Prune(resource, base, current, keep, ends):
            owner = seen.keystone.ref
            await prune(world, resource, base, current or None, owner=owner, keep=keep, confidential=ends)
        case MakeKeys(name):
            await _make_keys(world, seen, name, answers)
        case StageKeys():
            await _stage(world, seen, action, answers)
        case CommitKeys():
            await _commit(world, seen, action, answers)
        case MakePassphrase(name):
            data = {PASSPHRASE: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()}
            await _make_once(world, manifests.secret(seen.keystone, name.removeprefix(f"{seen.name}-"), data), answers)
        case MakePair(name):
            pair = await asyncio.to_thread(make_pair, f"{seen.name}-saml-sp", seen.now)
            await _make_once(
                world, manifests.key_pair(seen.keystone, name.removeprefix(f"{seen.name}-"), pair), answers
            )
        case SwitchPair():
            await _switch(world, action, answers)
        case Tell(reason, message):
            answers.notes.append(Note(reason, message, warning=True))
        case Probe():
            answers.health = await observe.probe(world, action)


async def _create(world: World, action: Create) -> JsonObject:
    """The created object; one that a pass before made, whose answer was lost, is taken when it is ours."""
    try:
        return await world.create(action.resource, action.manifest)
    except AlreadyExists:
        live = await world.refresh(action.resource, key_of(action.manifest))
        if live is None:
            raise
    uid = action.manifest["metadata"]["ownerReferences"][0]["uid"]
    if not controlled_by(live, uid):
        raise ForeignObject(action.resource, key_of(live), None)
    return live


async def _remove(world: World, action: Remove, answers: _Answers) -> None:
    """Delete; what finalizers hold stays in the snapshot, marked as ending."""
    key = key_of(action.live)
    await world.delete(action.resource, action.live, propagation=action.propagation)
    left = world.cache.get(action.resource, key)
    if left is not None and is_terminating(left):
        answers.note({**left, "kind": action.resource.kind})
    else:
        answers.written[action.resource.kind, key.name] = None


def _fresh() -> str:
    """A new key: 32 random bytes, URL-safe base64, 44 characters."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


async def _make_keys(world: World, seen: Seen, name: str, answers: _Answers) -> None:
    """Create the repository, never over one that exists."""
    data = keys.initial(_fresh(), _fresh())
    await _make_once(world, manifests.secret(seen.keystone, name.removeprefix(f"{seen.name}-"), data), answers)


async def _make_once(world: World, manifest: JsonObject, answers: _Answers) -> None:
    """Create a Secret of random content; one that is there already is taken as it is."""
    try:
        made = await world.create(SECRET, manifest)
    except AlreadyExists:
        found = await world.refresh(SECRET, key_of(manifest))
        if found is None:
            raise
        made = found
    answers.note({**made, "kind": SECRET.kind})


async def _switch(world: World, action: SwitchPair, answers: _Answers) -> None:
    """The staged pair becomes the present one. Killed in between, both Secrets hold it, and the next pass removes the staged one."""
    present, staged = action.present, action.staged
    if present["data"] != staged["data"]:
        body = {**present, "apiVersion": "v1", "kind": "Secret", "data": staged["data"]}
        answers.note({**await world.replace(SECRET, body), "kind": SECRET.kind})
        text = f'Secret "{present["metadata"]["name"]}" holds the staged key pair now; the SP metadata names it alone'
        answers.notes.append(Note("SAMLKeyPairSwitched", text))
    await _remove(world, Remove(SECRET, staged), answers)


async def _stage(world: World, seen: Seen, action: StageKeys, answers: _Answers) -> None:
    rotated = keys.rotate(keys.keys_of(action.repository), _fresh(), action.most)
    suffix = f"{action.name.removeprefix(f'{seen.name}-')}-rotation"
    manifest = manifests.secret(seen.keystone, suffix, rotated)
    manifest["metadata"]["annotations"] = {keys.ROTATES: keys.version_of(action.repository)}
    answers.note({**await _create(world, Create(SECRET, manifest)), "kind": SECRET.kind})


async def _commit(world: World, seen: Seen, action: CommitKeys, answers: _Answers) -> None:
    """Replace the repository as a whole, guarded by its resourceVersion, then remove the staging Secret."""
    live = action.repository
    data = {index: base64.b64encode(action.keys[index].encode()).decode() for index in sorted(action.keys, key=int)}
    annotations = {**(live["metadata"].get("annotations") or {}), keys.ROTATED_AT: f"{seen.now:%Y-%m-%dT%H:%M:%SZ}"}
    body = {**live, "apiVersion": "v1", "kind": "Secret", "data": data}
    body["metadata"] = {**live["metadata"], "annotations": annotations}
    answers.note({**await world.replace(SECRET, body), "kind": SECRET.kind})
    await _remove(world, Remove(SECRET, action.staging), answers)
    name = live["metadata"]["name"]
    word = "FernetKeysRotated" if name.endswith("-fernet-keys") else "CredentialKeysRotated"
    answers.notes.append(Note(word, f'Secret "{name}": {len(data)} keys, primary {keys.primary(action.keys)}'))
