"""User groups at a Pocket-ID.

Enters: ids and values. Leaves: frozen values, or a typed error of `rest_errors`. It never writes which clients a group may use: that table has one writer, the
client's side. Source: spec/pocketid.md 2.2, 4.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .rest_pages import Paged, every, pattern
from .rest_reading import claims_of, group_of
from .rest_requests import Call, Caller, quoted
from .rest_types import Claim, Group, nfc

_GROUPS: Final = "/api/user-groups"


class Groups(Caller):
    """User groups of one Pocket-ID."""

    async def list_user_groups(self, search: str = "") -> tuple[Group, ...]:
        """Every group, members only counted. `search` is the server's own, which is not exact."""
        return await every(self, Paged("list_user_groups", _GROUPS, "name", search), group_of)

    async def find_user_group_named(self, name: str) -> Group | None:
        """The group of exactly that name (compared in NFC), None when there is none; names are unique."""
        wanted = nfc(name)
        found = await self.list_user_groups(pattern(wanted))
        return next((item for item in found if nfc(item.name) == wanted), None)

    async def get_user_group(self, id: str) -> Group:
        """One group with its members and clients.

        Raises:
            NotFound: there is none.
        """
        return group_of(await self.ask(Call("get_user_group", "GET", _group(id))))

    async def create_user_group(self, name: str, friendly_name: str) -> Group:
        """Create a group.

        Raises:
            AlreadyExists: the name is taken.
        """
        return group_of(await self.ask(Call("create_user_group", "POST", _GROUPS, body=_write(name, friendly_name))))

    async def update_user_group(self, id: str, name: str, friendly_name: str) -> Group:
        """Rename it.

        Raises:
            AlreadyExists: the name is taken.
            Forbidden: LDAP manages it.
            NotFound: there is none.
        """
        return group_of(await self.ask(Call("update_user_group", "PUT", _group(id), body=_write(name, friendly_name))))

    async def delete_user_group(self, id: str) -> None:
        """Delete it. A client that only it could use stays restricted, to nobody.

        Raises:
            NotFound: it is gone already.
        """
        await self.ask(Call("delete_user_group", "DELETE", _group(id)))

    async def update_user_group_users(self, id: str, user_ids: Iterable[str]) -> Group:
        """Set the members; the server drops ids that it does not know: compare what it answers.

        Raises:
            NotFound: there is no such group.
        """
        body = {"userIds": sorted(set(user_ids))}
        return group_of(await self.ask(Call("update_user_group_users", "PUT", f"{_group(id)}/users", body=body)))

    async def update_user_group_custom_claims(self, id: str, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Set the claims, all of them.

        Raises:
            Refused: a key is reserved, or stands twice; nothing is written.
            NotFound: there is no such group.
        """
        body = [{"key": item.key, "value": item.value} for item in claims]
        path = f"/api/custom-claims/user-group/{quoted(id)}"
        return claims_of(await self.ask(Call("update_user_group_custom_claims", "PUT", path, body=body)))


def _group(id: str) -> str:
    return f"{_GROUPS}/{quoted(id)}"


def _write(name: str, friendly_name: str) -> dict[str, str]:
    return {"name": name, "friendlyName": friendly_name}
