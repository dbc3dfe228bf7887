"""One controller: a queue of keys, and one function that brings an object nearer to what it declares.

Enters: changes of watched objects. Leaves: calls of `reconcile`, one at a time per key, again with back-off after failures.
It must not know what a reconcile does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from moorage.core.errors import MoorageError
from moorage.core.meta import JsonObject, Key, ResourceType, controller_of, key_of
from moorage.kube.errors import Conflict
from moorage.node.api import Api
from moorage.runtime.queue import Queue

_log = structlog.get_logger("moorage.node")

Reconcile = Callable[[Api, JsonObject], Awaitable[float | None]]
"""Works on one object; the answer is the seconds after which to look again, or None."""


@dataclass(slots=True)
class Controller:
    """A reconcile function and what wakes it.

    `children`: types whose controlling owner is of our kind. `gone`: called with the key of an object that is no more.
    """

    resource: ResourceType
    reconcile: Reconcile
    children: tuple[ResourceType, ...] = ()
    resync: float = 300.0
    gone: Callable[[Key], Awaitable[None]] | None = None
    queue: Queue = field(default_factory=Queue)

    def connect(self, api: Api) -> None:
        """Listens for changes of our objects and of their children."""
        api.reflectors[self.resource].subscribe(self._own)
        for child in self.children:
            api.reflectors[child].subscribe(self._child)

    async def run(self, api: Api) -> None:
        """Works until cancelled."""
        while (key := await self.queue.get()) is not None:
            try:
                await self._one(api, key)
            finally:
                self.queue.done(key)

    def _own(self, old: JsonObject | None, new: JsonObject | None) -> None:
        self.queue.add(key_of(new or old or {}))

    def _child(self, old: JsonObject | None, new: JsonObject | None) -> None:
        for obj in (old, new):
            owner = controller_of(obj) if obj else None
            if owner is not None and owner.kind == self.resource.kind:
                self.queue.add(owner.key)

    async def _one(self, api: Api, key: Key) -> None:
        obj = api.get(self.resource, key)
        if obj is None:
            self.queue.forget(key)
            if self.gone is not None:
                await self.gone(key)
            return
        try:
            after = await self.reconcile(api, obj)
        except Conflict:
            self.queue.retry(key)
        except MoorageError as error:
            delay = self.queue.retry(key)
            _log.warning("reconcile failed", kind=self.resource.kind, key=str(key), error=str(error), again=delay)
        except Exception:  # noqa: BLE001  one object's bug must not stop the controller
            self.queue.retry(key)
            _log.exception("reconcile broke", kind=self.resource.kind, key=str(key))
        else:
            self.queue.forget(key)
            self.queue.add_after(key, min(after, self.resync) if after is not None else self.resync)


async def run_all(api: Api, controllers: list[Controller]) -> None:
    """Runs controllers side by side until cancelled."""
    async with asyncio.TaskGroup() as group:
        for controller in controllers:
            group.create_task(controller.run(api))
