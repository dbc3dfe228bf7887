"""How much to measure, and against whom. Frozen; every question gets the same one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plan:
    """One call of the bench.

    Attributes:
        folder: scratch space on the disk that is measured.
        seconds: how long one run under load lasts.
        repetitions: runs of each side, in turn.
        scale: factor on the numbers of objects; 1 is what the contract names.
        peer_url, peer_token: a kube-apiserver that runs already; empty: one is started.
        peer_command: how the kopf operator is started; {namespace} and {file} are filled in.
    """

    folder: Path
    seconds: float = 8.0
    repetitions: int = 5
    scale: float = 1.0
    peer_url: str = ""
    peer_token: str = ""
    peer_command: str = ""

    def count(self, whole: int) -> int:
        """So many objects instead of `whole`."""
        return max(10, int(whole * self.scale))
