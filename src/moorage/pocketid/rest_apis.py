"""APIs at a Pocket-ID: audiences, their permissions, and which client holds what.

Enters: ids and values. Leaves: frozen values, or a typed error of `rest_errors`. The server narrows silently what it is sent (unknown permissions, client access
of a public client): compare what it answers. Source: spec/pocketid.md 4.8.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .rest_pages import Paged, every, pattern
from .rest_reading import access_of, api_of, grant_of, holder_of, list_of
from .rest_requests import Call, Caller, quoted
from .rest_types import Access, Api, Grant, Holder, Permission, audience

_APIS: Final = "/api/apis"


class Apis(Caller):
    """APIs of one Pocket-ID."""

    async def list_apis(self, search: str = "") -> tuple[Api, ...]:
        """Every API with its permissions. `search` is the server's own, which is not exact."""
        return await every(self, Paged("list_apis", _APIS, "name", search), api_of)

    async def find_api_of(self, resource: str) -> Api | None:
        """The API of exactly that audience, trailing slashes aside; None when there is none."""
        wanted = audience(resource)
        found = await self.list_apis(pattern(wanted))
        return next((item for item in found if audience(item.resource) == wanted), None)

    async def get_api(self, id: str) -> Api:
        """One API.

        Raises:
            NotFound: there is none.
        """
        return api_of(await self.ask(Call("get_api", "GET", _api(id))))

    async def create_api(self, name: str, resource: str) -> Api:
        """Create an API. The server cuts trailing slashes of the resource.

        Raises:
            AlreadyExists: the resource is taken.
        """
        return api_of(await self.ask(Call("create_api", "POST", _APIS, body={"name": name, "resource": resource})))

    async def update_api(self, id: str, name: str) -> Api:
        """Rename it; its resource never changes.

        Raises:
            NotFound: there is none.
        """
        return api_of(await self.ask(Call("update_api", "PUT", _api(id), body={"name": name})))

    async def delete_api(self, id: str) -> None:
        """Delete it with its permissions and every grant of them.

        Raises:
            NotFound: it is gone already.
        """
        await self.ask(Call("delete_api", "DELETE", _api(id)))

    async def update_api_permissions(self, id: str, permissions: Iterable[Permission]) -> Api:
        """Set the permissions. Ids are kept by key; a key that goes takes its grants with it.

        Raises:
            NotFound: there is no such API.
        """
        listed = [{"key": item.key, "name": item.name, "description": item.description} for item in permissions]
        call = Call("update_api_permissions", "PUT", f"{_api(id)}/permissions", body={"permissions": listed})
        return api_of(await self.ask(call))

    async def set_api_cimd_access(self, id: str, enabled: bool, permission_ids: Iterable[str]) -> Api:
        """Open or close it for metadata-document clients, with these permissions.

        Raises:
            NotFound: there is no such API.
        """
        body = {"enabled": enabled, "permissionIds": sorted(set(permission_ids))}
        return api_of(await self.ask(Call("set_api_cimd_access", "PUT", f"{_api(id)}/cimd-access", body=body)))

    async def list_api_holders(self, id: str) -> tuple[Holder, ...]:
        """The clients that hold something on an API by a grant of their own.

        Raises:
            NotFound: there is no such API.
        """
        rows = await every(self, Paged("list_api_holders", f"{_api(id)}/clients", "name"), holder_of)
        return tuple(row for row in rows if row.access.grants_anything)

    async def list_api_client_grants(self, client_id: str) -> tuple[Grant, ...]:
        """What a client holds, one row an API.

        Raises:
            NotFound: there is no such client.
        """
        path = f"/api/api-access/{quoted(client_id)}/apis"
        found = await self.ask(Call("list_api_client_grants", "GET", path))
        return tuple(grant_of(item) for item in list_of(f"GET {path}", found))

    async def set_api_client_grant(self, id: str, client_id: str, access: Access) -> Access:
        """Replace what a client holds on an API; what the server applied.

        Raises:
            NotFound: there is no such API, or no such client.
        """
        body = {
            "userDelegatedAccess": access.user_delegated,
            "clientAccess": access.client,
            "userDelegatedPermissionIds": sorted(access.user_delegated_permissions),
            "clientPermissionIds": sorted(access.client_permissions),
        }
        return access_of(await self.ask(Call("set_api_client_grant", "PUT", _grant(id, client_id), body=body)))

    async def remove_api_client_grant(self, id: str, client_id: str) -> None:
        """Take back what a client holds on an API; once more is as once.

        Raises:
            NotFound: there is no such API, or no such client.
        """
        await self.ask(Call("remove_api_client_grant", "DELETE", _grant(id, client_id)))


def _api(id: str) -> str:
    return f"{_APIS}/{quoted(id)}"


def _grant(id: str, client_id: str) -> str:
    return f"{_api(id)}/clients/{quoted(client_id)}"
