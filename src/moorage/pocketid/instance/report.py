"""What a person reads about an instance: Ready, its address and version, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.core import conditions
from moorage.core.meta import JsonObject
from moorage.core.outcome import Done, Outcome, Waiting
from moorage.pocketid.references import READY
from moorage.pocketid.rest_version import Version
from moorage.runtime.room import Event, Report

from .children import ENCRYPTION_KEY, name_of
from .decide_deletion import BLOCKED
from .seen import Deployed, Seen, Unknown
from .types import KEY_SUFFIX

REASONS: Final = {
    READY: (
        "Ready", "Progressing", "Unreachable", "APIClientError", "NotAdministrator", "UnsupportedVersion", "SecretNotFound", "EncryptionKeyInvalid",
        "EncryptionKeyLost", "EncryptionKeyChanged", "VolumeClaimNotFound", "VolumeFixed", "ImageNotSet", "DowngradeRefused",
        "TemplateInvalid", "ForeignObject", "WriteRefused", "DeploymentUnavailable", "RouteUnavailable", "DeletionBlocked", "Deleting",
    )
}  # fmt: skip
"""Every reason by condition type, for the reference."""
_QUIET: Final = frozenset({"Progressing"})
"""Reasons that make no event: the state passes by itself."""
EVENTS: Final = (
    "ServerAttached", "ServerDeployed", "ServerUpgraded", "EncryptionKeyHeld", "APIKeyReplaced", "TooManySteps", "ObjectsLeft",
    *(reason for reason in REASONS[READY] if reason not in (*_QUIET, "Ready", "Deleting")),
)  # fmt: skip
"""Every event reason, for the reference."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """The condition, status fields and events of one pass."""
    status = {"url": seen.url or None}
    if isinstance(seen.look, Version):
        status["version"] = seen.look.text
    here = seen.deployed
    if isinstance(outcome, Waiting) and outcome.reason == BLOCKED:
        return _leaving(seen, outcome, status)
    if here is not None:
        return _deployed(seen, here, outcome, status)
    if isinstance(outcome, Done) and seen.instance.metadata.deletion_timestamp:
        return Report((conditions.false(READY, "Deleting", "deletion is under way"),), status)
    if isinstance(outcome, Done):
        said = f"the running server at {seen.url} is used{_crowd(seen)}"
        return Report((conditions.true(READY, "Ready", said),), status, (Event("Normal", "ServerAttached", said),))
    told = Event("Warning", outcome.reason, outcome.message)
    return Report((conditions.false(READY, outcome.reason, outcome.message),), status, (told,))


def _leaving(seen: Seen, outcome: Waiting, status: JsonObject) -> Report:
    """The server is as well as it was while deletion waits: others delete what they have there."""
    told = (Event("Normal", BLOCKED, outcome.message),)
    why = seen.look.message if isinstance(seen.look, Unknown) else seen.fault
    if why:
        text = f"{outcome.message}; {why}"
        return Report((conditions.false(READY, BLOCKED, text),), status, told)
    return Report((conditions.true(READY, BLOCKED, outcome.message),), status, told)


def _deployed(seen: Seen, here: Deployed, outcome: Outcome, status: JsonObject) -> Report:
    """A deployed server. What of it is there stands in the status even while it does not run."""
    status |= _children(seen, here)
    if isinstance(outcome, Done) and (seen.instance.metadata.deletion_timestamp or here.namespace_ends):
        said = f"what was deployed is deleted{_left(seen)}"
        return Report((conditions.false(READY, "Deleting", said),), status)
    if isinstance(outcome, Done):
        assert isinstance(seen.look, Version)
        said = f"Pocket-ID {seen.look.text} runs at {seen.url}{_crowd(seen)}"
        events = (*here.notes, *_upgraded(seen, seen.look), Event("Normal", "ServerDeployed", said))
        return Report((conditions.true(READY, "Ready", said),), status, events)
    told = (*here.notes, *_upgraded(seen, seen.look if isinstance(seen.look, Version) else None))
    if outcome.reason not in _QUIET:
        told = (*told, Event("Warning", outcome.reason, outcome.message))
    return Report((conditions.false(READY, outcome.reason, outcome.message),), status, told)


def _crowd(seen: Seen) -> str:
    return f"; {seen.crowd}" if seen.crowd else ""


def _left(seen: Seen) -> str:
    keeps = seen.instance.spec.deletion_policy == "Retain"
    return "; the volume and the encryption key stay in the namespace for an instance of the same name" if keeps else ""


def _children(seen: Seen, here: Deployed) -> JsonObject:
    """Names of what other rooms and people look for. That a key was held once is remembered when its Secret is gone."""
    found: JsonObject = {}
    for field, suffix in (("staticApiKeySecretName", KEY_SUFFIX), ("encryptionKeySecretName", ENCRYPTION_KEY)):
        name = name_of(seen.instance, suffix)
        if here.child("Secret", name) is not None:
            found[field] = name
    routes = sorted(name for kind, name in here.live if kind == "HTTPRoute" and _is_ours(seen, here, name))
    return found | {"routeName": routes[0] if routes else None}


def _is_ours(seen: Seen, here: Deployed, name: str) -> bool:
    live = here.child("HTTPRoute", name)
    return live is not None and seen.owns(live)


def _upgraded(seen: Seen, look: Version | None) -> Iterator[Event]:
    before = seen.instance.status.version
    if look is not None and before is not None and before != look.text:
        yield Event("Normal", "ServerUpgraded", f"Pocket-ID {look.text} runs in the place of {before}")
