"""Performs one plan and returns the snapshot with the answer in it.

Enters: a snapshot with its REST client, and a plan. Leaves: the snapshot. It decides nothing: an error becomes a failure of the plan's part,
an answer a fact. Source: contracts of issue 5; design.md, The house.
"""

from __future__ import annotations

from typing import Final

from moorage.kube.errors import ApiError, Conflict
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import Forbidden, Nonsense, PocketIDError, RateLimited, Refused, Unauthorized
from moorage.runtime.world import World

from . import apply_client, apply_features, apply_secret, metrics
from .plans import (
    ChangeSecrets,
    CreateClient,
    CreateScim,
    DeleteClient,
    DeleteLogo,
    DeleteScim,
    DeleteSecret,
    HoldForGroups,
    LeaveInstance,
    Look,
    LookThere,
    MarkInstance,
    Plan,
    PushLogo,
    RefreshMetadata,
    RemoveAnnotation,
    RemoveGrant,
    SetGrant,
    SetGroups,
    UpdateClient,
    UpdateScim,
    WriteSecret,
)
from .secrets import Mint
from .seen import Seen
from .seen_parts import Failure

PERMANENT: Final = (Refused, Forbidden, Unauthorized, Nonsense)
"""Answers that the same request gets again: the next try is at the resync."""


async def apply(world: World, seen: Seen, plan: Plan) -> Seen:
    """Perform one plan. The session of the client is fenced by leadership."""
    if not isinstance(plan, Look | LookThere):
        world.wrote()
    seen = seen.after(done=(*seen.done, plan))
    try:
        return await _perform(world, seen, plan)
    except PocketIDError as error:
        if seen.remote is not None and not isinstance(error, (RateLimited, Refused)):
            lists_of(world, seen.remote.url).clients.expire()
        if isinstance(plan, ChangeSecrets) and isinstance(plan.step, Mint):
            metrics.rotated(seen.key, plan.step.trigger, "error")
        return failed(seen, plan, _said(seen, plan, error), _wait(error, seen))
    except Conflict:
        raise
    except ApiError as error:
        if plan.part is not plan.part.SECRET:
            raise
        return failed(seen, plan, str(error), None)


def failed(seen: Seen, plan: Plan, message: str, after: float | None) -> Seen:
    """The snapshot in which the plan's part has ended."""
    return seen.after(failures={**seen.failures, plan.part: Failure(message, after)})


def _said(seen: Seen, plan: Plan, error: PocketIDError) -> str:
    """The answer; where something is held up that is to go, also at which instance, and the way out."""
    match plan:
        case LookThere(instance) | LeaveInstance(instance):
            at = instance
        case DeleteClient() if seen.instance is not None:
            at = seen.instance.key
        case _:
            return str(error)
    return f"PocketIDInstance {at}: {error}; set deletionPolicy to Retain to leave the client in Pocket-ID"


def _wait(error: PocketIDError, seen: Seen) -> float | None:
    """Seconds; None leaves it to the queue's back-off, which begins with less than a second."""
    if isinstance(error, RateLimited):
        return error.wait
    return seen.settings.resync if isinstance(error, PERMANENT) else None


async def _perform(world: World, seen: Seen, plan: Plan) -> Seen:
    match plan:
        case (
            Look()
            | CreateClient()
            | UpdateClient()
            | SetGroups()
            | DeleteClient()
            | LeaveInstance()
            | LookThere()
            | RefreshMetadata()
        ):
            return await apply_client.perform(world, seen, plan)
        case ChangeSecrets() | WriteSecret() | DeleteSecret() | MarkInstance() | RemoveAnnotation() | HoldForGroups():
            return await apply_secret.perform(world, seen, plan)
        case PushLogo() | DeleteLogo() | CreateScim() | UpdateScim() | DeleteScim() | SetGrant() | RemoveGrant():
            return await apply_features.perform(world, seen, plan)
