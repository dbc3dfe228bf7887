"""Tokens of administrators, kept in memory until they expire: one login serves all passes of one Keystone.

Enters: a login and a way to perform it. Leaves: a valid token. It sends nothing itself and writes nothing down. A login
that was refused is not tried again for a while, so that many backends cannot lock an administrator's account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from moorage.core.secret import SecretText

from .identity_errors import Unauthorized

MARGIN: Final = timedelta(seconds=60)
"""A token this close to its end is not used any more."""
REFUSAL: Final = timedelta(seconds=30)
"""How long a refused login is not repeated."""


@dataclass(frozen=True, slots=True)
class Login:
    """An administrator of one Keystone. `url` ends in `/v3`."""

    url: str
    user: str
    password: SecretText


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its end, aware."""

    text: SecretText
    expires: datetime


@dataclass
class _Slot:
    token: Token | None = None
    refused: tuple[datetime, Unauthorized] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Tokens:
    """One token a login; concurrent callers share one login."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._slots: dict[Login, _Slot] = {}

    async def get(self, login: Login, fetch: Callable[[], Awaitable[Token]]) -> Token:
        """A token that is still valid, fetched when there is none.

        Raises:
            IdentityError: what `fetch` raised, or raised a moment ago.
        """
        slot = self._slots.get(login)
        if slot is None:
            slot = self._slots[login] = _Slot()
        if (token := self._valid(slot)) is not None:
            return token
        async with slot.lock:
            if (token := self._valid(slot)) is not None:
                return token
            if slot.refused is not None and slot.refused[0] > self._now():
                raise slot.refused[1]
            try:
                slot.token = await fetch()
            except Unauthorized as error:
                slot.refused = (self._now() + REFUSAL, error)
                raise
            slot.refused = None
            self._forget_others(login)
            return slot.token

    def _valid(self, slot: _Slot) -> Token | None:
        return slot.token if slot.token is not None and slot.token.expires - MARGIN > self._now() else None

    def drop(self, login: Login, token: Token) -> None:
        """Forget a token that Keystone refused; a newer one stays."""
        slot = self._slots.get(login)
        if slot is not None and slot.token is token:
            slot.token = None

    def _forget_others(self, login: Login) -> None:
        """Tokens of a password that was replaced go."""
        for other in [
            item for item in self._slots if item.url == login.url and item.user == login.user and item != login
        ]:
            del self._slots[other]
