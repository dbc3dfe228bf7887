"""The policy of an instance, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

Enters: a snapshot. Leaves: a plan, or what the pass came to. Pure. The server of an instance with `external` is used and never changed; what a
deployed one needs stands in `decide_deployed.py`, how an instance goes in `decide_deletion.py`. Source: spec/pocketid.md 2.1; seed 004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from moorage.core.outcome import Done, Outcome, Waiting
from moorage.runtime.room import Released

from .decide_deletion import DELETION, key_is_held, next_look, spare_keys_are_let_go
from .decide_deployed import BESIDE, SERVER
from .plan import Plan
from .seen import Seen, Trouble, Unknown
from .types import KEY_TOKEN

REFUSED_POLL: Final = 60.0
"""Seconds until another look after an answer that only a person can change; a changed Secret wakes us at once."""
UNREACHABLE_POLL: Final = 5.0
Answer: TypeAlias = Plan | Outcome | Released | None


def decide(seen: Seen) -> Plan | Outcome | Released:
    """The next plan of this pass, or what it came to."""
    return next((answer for answer in _answers(seen) if answer is not None), Done(after=next_look(seen)))


def _answers(seen: Seen) -> Iterator[Answer]:
    """A deployed server runs before it is asked, and is asked before anything is put in front of it."""
    if seen.instance.metadata.deletion_timestamp:
        yield from (rule(seen) for rule in DELETION)
    here = seen.deployed
    if here is not None:
        yield from (rule(seen, here) for rule in SERVER)
    yield from (rule(seen) for rule in RULES)
    if here is not None:
        yield from (rule(seen, here) for rule in BESIDE)


def api_key_is_there(seen: Seen) -> Answer:
    """A watch on Secrets wakes us when it appears."""
    return Waiting("APIClientError", seen.fault, after=REFUSED_POLL) if seen.fault else None


def server_answers(seen: Seen) -> Answer:
    """A broken wire is tried again within seconds, however long it was broken: one asks for all clients. A refusal within a minute."""
    match seen.look:
        case Unknown(Trouble.UNREACHABLE, message, 0.0):
            return Waiting("Unreachable", message, after=UNREACHABLE_POLL)
        case Unknown(Trouble.UNREACHABLE, message, after):
            return Waiting("Unreachable", message, after=after)
        case Unknown(Trouble.FORBIDDEN, message, _):
            return Waiting("NotAdministrator", _not_administrator(seen, message), after=REFUSED_POLL)
        case Unknown(_, message, _):
            return Waiting("APIClientError", message, after=REFUSED_POLL)
    return None


def _not_administrator(seen: Seen, said: str) -> str:
    """What is wrong with the key, and where another one goes."""
    external = seen.instance.spec.external
    name = external.api_key_secret_ref.name if external is not None else seen.instance.status.static_api_key_secret_name
    key = external.api_key_secret_ref.key if external is not None else KEY_TOKEN
    return (
        f'the API key in Secret {seen.instance.metadata.namespace}/{name}, key "{key}", is valid and may not see clients, so its owner is no administrator:'
        f" put an API key of an administrator there, or make its owner one in Pocket-ID ({said})"
    )


def version_is_known(seen: Seen) -> Answer:
    """One bad instance never harms the others: it is told on the instance, and looked at again at the resync."""
    look = seen.look
    if look is None or isinstance(look, Unknown) or look.is_supported:
        return None
    message = f"Pocket-ID {look.text} is not supported: versions from 2.14.0 and before 3.0.0 are"
    return Waiting("UnsupportedVersion", message, after=seen.resync)


RULES: Final[tuple[Callable[[Seen], Answer], ...]] = (
    key_is_held, spare_keys_are_let_go, api_key_is_there, server_answers, version_is_known,
)  # fmt: skip
