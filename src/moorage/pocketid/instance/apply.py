"""An instance that is attached is never changed, so there is no plan to perform.

Enters: a plan, of which there is none. Leaves: nothing.
"""

from __future__ import annotations

from typing import NoReturn

from moorage.runtime.world import World

from .seen import Seen


async def apply(_world: World, _seen: Seen, plan: NoReturn) -> Seen:
    """Never called: `decide` has no plans."""
    raise AssertionError(f"no plan is known, {plan!r} least of all")
