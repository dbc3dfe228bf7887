"""The policy for ConfigProjected: every replica runs exactly what is declared.

Enters: a snapshot. Leaves: answers of rules. Pure. Source: seed 000, Conditions; spec/keystone.md 4.3 (defect C4).
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Waiting

from .render import Fault
from .rule import POLL, Answer, Rule, first_answer
from .seen import Seen, Unknown
from .types import FEDERATION_OBJECTS_READY


def configuration_renders(seen: Seen) -> Answer:
    """A backend that cannot be rendered is skipped; the Secret watches wake us."""
    return Waiting("WaitingForProjection", seen.wanted.message) if isinstance(seen.wanted, Fault) else None


def sidecar_is_declared(seen: Seen) -> Answer:
    """Without its image nothing of a federated backend is projected: whoever took it away, or never named it, is told here too."""
    if seen.wanted_objects is None or seen.keystone is None or seen.keystone.sidecar:
        return None
    message = f"spec.federation.proxyImage of Keystone {seen.keystone.name} is not set, and there is no sidecar without it{_still_open(seen)}"
    return Waiting("WaitingForProjection", message, after=POLL)


def _still_open(seen: Seen) -> str:
    """That the identity provider cannot be closed, although it should be: the Keystone's sidecar denies its paths as long."""
    opened = seen.stored(FEDERATION_OBJECTS_READY)
    if seen.mount.carries or opened is None or not opened.is_true or not isinstance(seen.lookup, Unknown):
        return ""
    return f"; the identity provider is still open, because Keystone cannot be asked: {seen.lookup.message}"


def nobody_comes_first(seen: Seen) -> Answer:
    """Of two that lay claim to the same one is served; the other waits and is told whose it is."""
    if seen.mount.current or not seen.rivals:
        return None
    names = ", ".join(rival.name for rival in seen.rivals)
    why = "; ".join(rival.why for rival in seen.rivals[:3])
    message = f"backend {names} comes first and is served: {why}. Change this backend, or delete one of them"
    return Waiting("WaitingForProjection", message, after=POLL)


def configuration_is_mounted(seen: Seen) -> Answer:
    """The pod template mounts these very contents; an older version of them does not count."""
    if seen.mount.current:
        return None
    message = (
        f"the Keystone Deployment mounts an older {seen.file}"
        if seen.mount.carries
        else f"{seen.file} is not mounted yet{_still_open(seen)}"
    )
    return Waiting("WaitingForProjection", message, after=POLL)


_NOT_REPLACED: Final = "replicas of the previous template still serve"
_NOT_READY: Final = "every replica runs it, and not all are ready: one that was ready before may wait for a directory that does not answer (condition DirectoryReachable)"


def every_replica_runs_it(seen: Seen) -> Answer:
    """A pending rollout counts as not projected, also for a backend that was Ready."""
    if seen.mount.rolled_out:
        return None
    return Waiting("WaitingForRollout", _NOT_READY if seen.mount.replaced else _NOT_REPLACED, after=POLL)


CONFIG_RULES: Final[tuple[Rule, ...]] = (
    configuration_renders, nobody_comes_first, sidecar_is_declared, configuration_is_mounted, every_replica_runs_it,
)  # fmt: skip


def is_projected(seen: Seen) -> bool:
    """Whether ConfigProjected is True."""
    return first_answer(CONFIG_RULES, seen) is None
