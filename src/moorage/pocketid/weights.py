"""What the lists of all servers take in memory, and how they are asked for: bounds that hold for the process, not for one server.

Enters: the weight of each page, in bytes as `weight_of` reckons it, and which namespaces use a server now. Leaves: an error for the list that is too much.
Anybody may declare servers of his own, and name those of others: a list is worth as much as the lightest namespace that uses it takes, and the
heaviest is let go first, so that whoever declares many servers shuts out nobody but himself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from .rest_errors import Nonsense

LIMIT: Final = 192 << 20
"""Bytes for the lists of all servers: a third of what the chart gives a pod, with what a second copy takes while a list is read anew."""
SIZES: Final = (100, 25, 5, 1)
"""Rows a page; 100 is the most that the server gives. Fewer where a page of more is too large to be read."""
LIGHT: Final = 8 << 20
"""Bytes of weight of as many pages as make a larger one, at most: that one is surely small enough, since text weighs at least its length."""
FORGOTTEN: Final = "no PocketIDInstance names this address any more"


def _nothing() -> None:
    """Nothing is kept."""


def _nobody() -> Mapping[str, set[str]]:
    """Nobody uses a server."""
    return {}


@dataclass
class Scale:
    """The lists of one server.

    Args:
        url: of the server.
        whole: those of all servers.
        sizes: by path, rows a page, where 100 were too large.
        kept: by path, bytes of the list that is kept; `walked`: of that which is being read.
        refused: why what is being read ends: it was let go meanwhile; "" while it was not.
        let_go: forgets what is kept.
    """

    url: str
    whole: Weights = field(repr=False)
    sizes: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    walked: dict[str, int] = field(default_factory=dict)
    refused: str = ""
    let_go: Callable[[], None] = _nothing

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

    def grow(self, path: str, rows: int, heaviest: int) -> None:
        """More rows a page from now on, where the heaviest of those pages shows that they fit.

        Args:
            rows: a page had.
            heaviest: what the heaviest page weighed, in bytes.
        """
        larger = [size for size in SIZES if size > rows]
        if larger and heaviest * (larger[-1] // rows) <= LIGHT:
            self.sizes[path] = larger[-1]

    def weigh(self, path: str, weight: int) -> None:
        """A list that is being read weighs so much by now.

        Raises:
            Nonsense: that is too much beside all others.
        """
        self.walked[path] = weight
        if not self.refused:
            self.whole.settle()
        why = self.refused or ("" if self.whole.servers.get(self.url) is self else FORGOTTEN)
        if why:
            raise Nonsense(f"GET {path}", why)

    def ends(self, path: str, *, kept: bool) -> None:
        """The list was read to its end, or not."""
        weight = self.walked.pop(path, 0)
        if kept and not self.refused:
            self.kept[path] = weight
        if not self.walked:
            self.refused = ""

    def is_let_go(self, why: str) -> None:
        """Nothing of it is kept, and what is being read ends with the next page."""
        self.refused = why if self.walked else ""
        self.kept.clear()
        self.walked = dict.fromkeys(self.walked, 0)
        self.let_go()


@dataclass
class Weights:
    """The lists of all servers of a process.

    Args:
        users: by address, the namespaces that use a server now: each has an instance that is Ready there, so its key was accepted.
    """

    limit: int = LIMIT
    users: Callable[[], Mapping[str, set[str]]] = _nobody
    servers: dict[str, Scale] = field(default_factory=dict)

    def of(self, url: str) -> Scale:
        """Those of one server."""
        if url not in self.servers:
            self.servers[url] = Scale(url, self)
        return self.servers[url]

    def forget(self, url: str) -> None:
        """Nobody names the server any more; what is still being read of it ends."""
        if url in self.servers:
            self.servers.pop(url).is_let_go(FORGOTTEN)

    def settle(self) -> None:
        """Let go of what is worth least until the rest is not too much."""
        why = f"the lists of all instances would take more than {self.limit >> 20} MiB of memory, and those of this namespace take the most"
        while sum(scale.weight for scale in self.servers.values()) > self.limit:
            self._heaviest().is_let_go(why)

    def _heaviest(self) -> Scale:
        """What nobody uses; else what only namespaces use that take much. Of equals the largest."""
        users, taken = self.users(), dict[str, int]()
        for scale in self.servers.values():
            for space in users.get(scale.url, ()):
                taken[space] = taken.get(space, 0) + scale.weight

        def worth(scale: Scale) -> tuple[bool, int, int]:
            shares = [taken[space] for space in users.get(scale.url, ())]
            return not shares, min(shares, default=0), scale.weight

        return max((scale for scale in self.servers.values() if scale.weight), key=worth)
