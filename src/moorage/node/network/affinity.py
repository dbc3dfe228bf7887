"""Session affinity by client address. Pure; the time is given.

Enters: a client, backends. Leaves: the same backends, the remembered one first. Source: Kubernetes, Service sessionAffinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.core.meta import JsonObject

_DEFAULT_TIMEOUT = 10800.0
_REMEMBERED = 4096


@dataclass(slots=True)
class Affinity:
    """Which backend each client had. `timeout` None means that clients are not remembered."""

    timeout: float | None = None
    _known: dict[str, tuple[tuple[str, int], float]] = field(default_factory=dict)

    def configure(self, spec: JsonObject) -> None:
        """Takes `sessionAffinity` of a Service spec."""
        if spec.get("sessionAffinity") != "ClientIP":
            self.timeout = None
            self._known.clear()
            return
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        self.timeout = float(config.get("timeoutSeconds") or _DEFAULT_TIMEOUT)

    def order(self, client: str, backends: Sequence[tuple[str, int]], now: float) -> Sequence[tuple[str, int]]:
        """The backends with the client's own first; that choice is remembered."""
        if self.timeout is None or not backends:
            return backends
        known = self._known.pop(client, None)
        first = backends[0]
        if known is not None and known[1] >= now and known[0] in backends:
            first = known[0]
        self._known[client] = (first, now + self.timeout)
        if len(self._known) > _REMEMBERED:
            self._known.pop(next(iter(self._known)))
        return [first, *(item for item in backends if item != first)]
