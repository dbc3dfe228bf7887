"""The server's parts, as the verbs need them: one value that is handed to each verb.

It must not serve requests itself; app.py does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from moorage.apiserver import views
from moorage.apiserver.apply import TypeMap
from moorage.apiserver.aside import Aside
from moorage.apiserver.creation import Created
from moorage.apiserver.hub import Entry, Hub
from moorage.apiserver.registry import Registry
from moorage.apiserver.request import Request
from moorage.apiserver.served import ServedType
from moorage.apiserver.tokens import Tokens
from moorage.core.meta import JsonObject

if TYPE_CHECKING:
    from moorage.apiserver.reviews import Reviews
    from moorage.apiserver.watch import Watcher


class Admission(Protocol):
    """What stands between a valid object and the store."""

    async def mutate(
        self, request: Request, served: ServedType, obj: JsonObject, old: JsonObject | None, subresource: str
    ) -> JsonObject:
        """The object as the webhooks change it."""
        ...

    async def validate(
        self, request: Request, served: ServedType, obj: JsonObject | None, old: JsonObject | None, subresource: str
    ) -> None:
        """Raises StatusError when a webhook says no."""
        ...


Check = Callable[[Request, ServedType, JsonObject, JsonObject | None], None]


@dataclass(slots=True)
class Api:
    """All parts of one server.

    Attributes:
        allocate: fills in addresses of Services.
        check_escalation: raises 403 when a role would give more than its writer has.
    """

    hub: Hub
    registry: Registry
    data_dir: Path
    tokens: Tokens
    reviews: Reviews
    admission: Admission
    allocate: Callable[[ServedType, JsonObject], None]
    check_escalation: Check
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    type_maps: dict[ServedType, TypeMap] = field(default_factory=dict)
    created: Created = field(default_factory=Created)
    aside: Aside = field(default_factory=Aside)
    watchers: set[Watcher] = field(default_factory=set)
    most_watchers: int = 1000
    most_watchers_of_a_user: int = 400

    def now(self) -> str:
        """The time as metadata holds it."""
        return f"{self.clock().isoformat()[:19]}Z"

    def read(self, served: ServedType, entry: Entry) -> JsonObject:
        """A fresh copy of an object as its kind shows it."""
        return views.object_of(self.registry, served, entry)

    async def commit(self, served: ServedType, path: str, obj: JsonObject, seen: int, *, delete: bool = False) -> Entry:
        """Store an object over revision `seen`, or take it away.

        Raises:
            Stale: somebody else wrote it meanwhile.
            StatusError: 413, 503, 507.
        """
        stored = views.stored_form(served, obj)
        return await self.hub.write(served.storage, path, stored, seen, delete=delete)
