"""Users at a Pocket-ID: the users themselves, the link by which they come in first, their API keys.

Enters: ids and values. Leaves: frozen values, or a typed error of `rest_errors`; login codes and keys as `SecretText`. An API key can be made and deleted by its
owner's session only, so both log in as that user first, by a login code. Source: spec/pocketid.md 4.7, 5.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText

from .rest_errors import Nonsense
from .rest_pages import Paged, every, pattern
from .rest_reading import claims_of, made_api_key_of, object_of, user_of
from .rest_requests import Call, Caller, quoted
from .rest_types import Claim, MadeApiKey, User

_USERS: Final = "/api/users"
_KEYS: Final = "/api/api-keys"
_COOKIES: Final = ("__Host-access_token", "access_token")
_LOGIN: Final = timedelta(minutes=1)


class Users(Caller):
    """Users of one Pocket-ID."""

    async def list_users(self, search: str = "") -> tuple[User, ...]:
        """Every user, the owner of the static key (`STATIC_KEY_OWNER`) included. `search` is the server's own, which is not exact."""
        return await every(self, Paged("list_users", _USERS, "username", search), user_of)

    async def find_user_named(self, username: str) -> User | None:
        """The user of that username, letter case aside as the server has it; None when there is none."""
        found = await self.list_users(pattern(username))
        return next((item for item in found if item.username.casefold() == username.casefold()), None)

    async def get_user(self, id: str) -> User:
        """One user.

        Raises:
            NotFound: there is none.
        """
        return user_of(await self.ask(Call("get_user", "GET", _user(id))))

    async def create_user(self, write: JsonObject) -> User:
        """Create a user; `id` may be given (a UUID).

        Raises:
            AlreadyExists: username or email is taken.
            ServerFailed: so a taken id is answered.
        """
        return user_of(await self.ask(Call("create_user", "POST", _USERS, body=write)))

    async def update_user(self, id: str, write: JsonObject) -> User:
        """Replace everything that a write can say; what it leaves out is reset.

        Raises:
            AlreadyExists: username or email is taken.
            Forbidden: LDAP manages it.
            NotFound: there is none.
        """
        return user_of(await self.ask(Call("update_user", "PUT", _user(id), body=write)))

    async def delete_user(self, id: str) -> None:
        """Delete it with its keys.

        Raises:
            NotFound: it is gone already.
        """
        await self.ask(Call("delete_user", "DELETE", _user(id)))

    async def update_user_custom_claims(self, id: str, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Set the claims, all of them.

        Raises:
            Refused: a key is reserved, or stands twice; nothing is written.
            NotFound: there is no such user.
        """
        body = [{"key": item.key, "value": item.value} for item in claims]
        path = f"/api/custom-claims/user/{quoted(id)}"
        return claims_of(await self.ask(Call("update_user_custom_claims", "PUT", path, body=body)))

    async def create_one_time_access_token(self, id: str, life: timedelta) -> SecretText:
        """A login code, good once, for more than a second and at most 744 h; `<server>/lc/<code>` opens it in a browser.

        Raises:
            NotFound: there is no such user.
        """
        path = f"{_user(id)}/one-time-access-token"
        body = {"ttl": int(life.total_seconds())}
        answer = await self.ask(Call("create_one_time_access_token", "POST", path, body=body))
        return SecretText(object_of("one-time access token", answer, "token")["token"])

    async def create_api_key_for_user(
        self, id: str, name: str, expires_at: datetime, description: str = ""
    ) -> MadeApiKey:
        """Create an API key that acts as that user. Three requests: a login code, a login, the key.

        Raises:
            Forbidden: the user is disabled.
            NotFound: there is no such user.
        """
        session = await self._session_of(id)
        body = {"name": name, "expiresAt": expires_at.isoformat(), "description": description or None}
        call = Call("create_api_key_for_user", "POST", _KEYS, body=body, session=session)
        return made_api_key_of(await self.ask(call))

    async def delete_api_key(self, user_id: str, id: str) -> None:
        """Delete an API key of that user. Three requests, as with its creation.

        Raises:
            Forbidden: the user is disabled.
            NotFound: the key or the user is gone already.
        """
        session = await self._session_of(user_id)
        await self.ask(Call("delete_api_key", "DELETE", f"{_KEYS}/{quoted(id)}", session=session))

    async def _session_of(self, id: str) -> SecretText:
        code = await self.create_one_time_access_token(id, _LOGIN)
        path = "/api/one-time-access-token/"
        call = Call("exchange_one_time_access_token", "POST", path + quoted(code.reveal()), shown=f"{path}***")
        answer = await self.answer(call)
        found = next((answer.cookies[name] for name in _COOKIES if answer.cookies.get(name)), "")
        if not found:
            raise Nonsense(call.request, "the answer holds no session")
        return SecretText(found)


def _user(id: str) -> str:
    return f"{_USERS}/{quoted(id)}"
