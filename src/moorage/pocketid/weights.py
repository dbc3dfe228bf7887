"""What the lists of all servers take in memory, and how they are asked for: bounds that hold for the process, not for one server.

Enters: the weight of each page, in bytes as `weight_of` reckons it, and in which namespaces the instances of a server are. Leaves: an error for the list that
is too much. Anybody may declare servers of his own: of the namespace whose servers weigh most, that which weighs most is let go first, so that whoever
declares many of them shuts out nobody but himself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from .rest_errors import Nonsense

LIMIT: Final = 192 << 20
"""Bytes for the lists of all servers: a third of what the chart gives a pod, with what a second copy takes while a list is read anew."""
SIZES: Final = (100, 25, 5, 1)
"""Rows a page; 100 is the most that the server gives. Fewer where a page of more is too large to be read."""


def _nobody() -> None:
    """Nothing is kept."""


@dataclass
class Scale:
    """The lists of one server.

    Args:
        whole: those of all servers.
        spaces: namespaces of its instances.
        sizes: by path, rows a page, where 100 were too large.
        kept: by path, bytes of the list that is kept; `walked`: of that which is being read.
        refused: it was let go while it was being read.
        let_go: forgets what is kept.
    """

    whole: Weights = field(repr=False)
    spaces: set[str] = field(default_factory=set)
    sizes: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    walked: dict[str, int] = field(default_factory=dict)
    refused: bool = False
    let_go: Callable[[], None] = _nobody

    @property
    def weight(self) -> int:
        """Bytes. What is being read takes the place of what is kept."""
        paths = {*self.kept, *self.walked}
        return sum(max(self.kept.get(path, 0), self.walked.get(path, 0)) for path in paths)

    def size(self, path: str) -> int:
        """Rows a page."""
        return self.sizes.get(path, SIZES[0])

    def shrink(self, path: str) -> bool:
        """Fewer rows a page from now on; False when it is one already."""
        smaller = [size for size in SIZES if size < self.size(path)]
        self.sizes |= {path: smaller[0]} if smaller else {}
        return bool(smaller)

    def weigh(self, path: str, weight: int) -> None:
        """A list that is being read weighs so much by now.

        Raises:
            Nonsense: that is too much beside all others.
        """
        self.walked[path] = weight
        self.whole.settle()
        if self.refused:
            raise Nonsense(
                f"GET {path}",
                f"the lists of all instances would take more than {self.whole.limit >> 20} MiB of memory, and those of this namespace take the most",
            )

    def ends(self, path: str, *, kept: bool) -> None:
        """The list was read to its end, or not."""
        weight = self.walked.pop(path, 0)
        if kept and not self.refused:
            self.kept[path] = weight
        if not self.walked:
            self.refused = False

    def is_let_go(self) -> None:
        """Nothing of it is kept, and what is being read ends with the next page."""
        self.refused = bool(self.walked)
        self.kept.clear()
        self.walked = dict.fromkeys(self.walked, 0)
        self.let_go()


@dataclass
class Weights:
    """The lists of all servers of a process."""

    limit: int = LIMIT
    servers: dict[str, Scale] = field(default_factory=dict)

    def of(self, url: str) -> Scale:
        """Those of one server."""
        if url not in self.servers:
            self.servers[url] = Scale(self)
        return self.servers[url]

    def settle(self) -> None:
        """Let go of what weighs most until the rest is not too much."""
        while sum(scale.weight for scale in self.servers.values()) > self.limit:
            self._heaviest().is_let_go()

    def _heaviest(self) -> Scale:
        by_space: dict[str, int] = {}
        for scale in self.servers.values():
            for space in scale.spaces or {""}:
                by_space[space] = by_space.get(space, 0) + scale.weight
        space = max(by_space, key=lambda name: by_space[name])
        found = [scale for scale in self.servers.values() if space in (scale.spaces or {""}) and scale.weight]
        return max(found, key=lambda scale: (len(scale.spaces) <= 1, scale.weight))
