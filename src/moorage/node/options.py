"""How a node is set up.

Enters: nothing. Leaves: frozen options; all times are seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moorage.core.backoff import Backoff
from moorage.node.images.store import Recipe, default_cache

HOST_IMAGE = Recipe(("moorage/host",), Path(__file__).parent / "images" / "host")
"""The machine's own `/usr`; for tests, the demo and quick trials."""

_RESTART_BACKOFF = Backoff(base=10.0, cap=300.0, jitter=0.0)


def _silent(_: str) -> None:
    """Says nothing."""


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Options of one node.

    Attributes:
        recipes: images offered to pods, first match wins; `moorage/host` is always offered, last.
        cache: where finished images lie.
        name: the node's name, as `spec.nodeName` of its pods.
        say: takes progress lines of image builds.
        restart_backoff: between restarts of a container that ends; the first restart is at once.
        job_backoff: between a first failed pod of a Job and the next pod; it doubles.
        steady_after: a container that ran this long starts its back-off anew.
        resync: every pod and controller looks again after this time at the latest.
    """

    recipes: Sequence[Recipe] = ()
    cache: Path = field(default_factory=default_cache)
    name: str = "local"
    say: Callable[[str], None] = _silent
    restart_backoff: Backoff = _RESTART_BACKOFF
    job_backoff: float = 10.0
    steady_after: float = 600.0
    resync: float = 300.0
