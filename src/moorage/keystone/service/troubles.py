"""Why pods of a Keystone do not work, in the words of their containers: one line for each Job, and one for the API.

Enters: pods as they stand on the wire. Leaves: sentences for conditions, without secrets. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject
from moorage.keystone.identity_errors import clean
from moorage.runtime import troubles as said

API: Final = said.SERVING
"""Stands for the API pods where others are called by the name of their Job."""


def troubles(pods: Iterable[JsonObject], secrets: Iterable[str]) -> dict[str, str]:
    """What the newest pod that has something to say says, by name of its Job, `API` for the others."""
    blotted = tuple(secrets)
    return said.troubles(pods, lambda text: clean(text, blotted))
