"""OIDC clients at a Pocket-ID: the clients themselves, their secrets, groups, logos and SCIM providers.

Enters: ids, writes as JSON by the server's own names. Leaves: frozen values, or a typed error of `rest_errors`. It decides nothing: order, ownership and what to
do after a lost answer are the rooms' matter. Source: spec/pocketid.md 4.2 to 4.5, 4.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Final, Literal

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText

from .rest_errors import Nonsense, NotFound
from .rest_pages import Paged, every
from .rest_reading import client_of, made_client_of, made_secret_of, scim_provider_of
from .rest_requests import Call, Caller, quoted, repeated
from .rest_rows import Rows, lighter_client, weight_of_client
from .rest_types import Client, MadeClient, MadeSecret, ScimProvider

_CLIENTS: Final = "/api/oidc/clients"
_PROVIDERS: Final = "/api/scim/service-provider"
_GROUP_RETRIES: Final = (0.15, 0.35)
"""Seconds between attempts to set groups: on some databases two writers of that table collide and one is answered 500."""
Side = Literal["light", "dark"]


class Clients(Caller):
    """OIDC clients of one Pocket-ID."""

    async def list_oidc_clients(self) -> tuple[Client, ...]:
        """Every client, secrets and identities included, groups only counted."""
        return await every(self, Paged("list_oidc_clients", _CLIENTS, "name"), client_of)

    async def outline_oidc_clients(self) -> tuple[Client, ...]:
        """The same for those who keep it: where it would be too much, the heaviest clients are sketches."""
        gather = partial(Rows[Client], lighter=lighter_client, weigh=weight_of_client)
        return await every(self, Paged("list_oidc_clients", _CLIENTS, "name"), client_of, gather)

    async def get_oidc_client(self, id: str) -> Client:
        """One client with its groups.

        Raises:
            NotFound: there is none.
        """
        return client_of(await self.ask(Call("get_oidc_client", "GET", _client(id))))

    async def create_oidc_client(self, write: JsonObject) -> MadeClient:
        """Create a client; without `id` the server makes one. A newer server makes a secret with it.

        Raises:
            AlreadyExists: the id is taken.
            LogoRefused: the client exists all the same.
        """
        return made_client_of(await self.ask(Call("create_oidc_client", "POST", _CLIENTS, body=write)))

    async def update_oidc_client(self, id: str, write: JsonObject) -> Client:
        """Replace everything that a write can say; what it leaves out is reset. Secrets stay, and logos unless it names URLs.

        Raises:
            LogoRefused: everything else is written.
            NotFound: there is none.
        """
        return client_of(await self.ask(Call("update_oidc_client", "PUT", _client(id), body=write)))

    async def delete_oidc_client(self, id: str) -> None:
        """Delete it with its secrets, grants and SCIM providers.

        Raises:
            NotFound: it is gone already.
        """
        await self.ask(Call("delete_oidc_client", "DELETE", _client(id)))

    async def refresh_oidc_client_metadata(self, id: str) -> Client:
        """Have the server fetch the metadata document again.

        Raises:
            Refused: it is no metadata-document client, or does not exist.
        """
        return client_of(await self.ask(Call("refresh_oidc_client_metadata", "POST", f"{_client(id)}/refresh")))

    async def update_oidc_client_allowed_groups(self, id: str, ids: Iterable[str]) -> None:
        """Set the groups. The server drops ids that it does not know and does not touch the restriction: read the client to see what holds.

        Raises:
            NotFound: there is no such client.
        """
        body = {"userGroupIds": sorted(set(ids))}
        call = Call("update_oidc_client_allowed_groups", "PUT", f"{_client(id)}/allowed-user-groups", body=body)
        await repeated(_GROUP_RETRIES, lambda: self.ask(call))

    async def delete_oidc_client_logo(self, id: str, side: Side) -> None:
        """Delete the logo of one side.

        Raises:
            NotFound: that side has none, or there is no such client.
        """
        params = [("light", "true" if side == "light" else "false")]
        await self.ask(Call("delete_oidc_client_logo", "DELETE", f"{_client(id)}/logo", params))

    # --- secrets

    async def create_oidc_client_secret(
        self, id: str, value: SecretText | None = None, expires_at: datetime | None = None
    ) -> MadeSecret:
        """Add a secret: the given value (16 or more of 0x20 to 0x7e), or one that the server makes. The others stay valid.

        Raises:
            Refused: the client is public or holds 20, or the value or the time will not do.
            Nonsense: the server took another value than the one given.
        """
        body = ({"secret": value.reveal()} if value else {}) | (
            {"expiresAt": expires_at.isoformat()} if expires_at else {}
        )
        call = Call("create_oidc_client_secret", "POST", f"{_client(id)}/secrets", body=body)
        made = made_secret_of(await self.ask(call))
        if value and made.value != value:
            raise Nonsense(call.request, "the server keeps another secret than the one it was given")
        return made

    async def delete_oidc_client_secret(self, id: str, secret_id: str) -> None:
        """Delete one secret; it authenticates no more.

        Raises:
            NotFound: it is gone already, or the client is.
        """
        path = f"{_client(id)}/secrets/{quoted(secret_id)}"
        await self.ask(Call("delete_oidc_client_secret", "DELETE", path))

    # --- SCIM

    async def get_oidc_client_scim_service_provider(self, id: str) -> ScimProvider | None:
        """The SCIM provider of a client, None when it has none or does not exist. Of several the server shows an arbitrary one."""
        try:
            path = f"{_client(id)}/scim-service-provider"
            return scim_provider_of(await self.ask(Call("get_oidc_client_scim_service_provider", "GET", path)))
        except NotFound:
            return None

    async def create_scim_service_provider(self, client_id: str, endpoint: str, token: SecretText) -> ScimProvider:
        """Create one. The server takes a second one for the same client: look before.

        Raises:
            NotFound: there is no such client.
        """
        call = Call("create_scim_service_provider", "POST", _PROVIDERS, body=_provider(client_id, endpoint, token))
        return scim_provider_of(await self.ask(call))

    async def update_scim_service_provider(
        self, id: str, client_id: str, endpoint: str, token: SecretText
    ) -> ScimProvider:
        """Replace it; an empty token clears the token, another client moves it there.

        Raises:
            NotFound: there is no such provider, or no such client.
        """
        body = _provider(client_id, endpoint, token)
        call = Call("update_scim_service_provider", "PUT", f"{_PROVIDERS}/{quoted(id)}", body=body)
        return scim_provider_of(await self.ask(call))

    async def delete_scim_service_provider(self, id: str) -> None:
        """Delete it.

        Raises:
            NotFound: it is gone already.
        """
        await self.ask(Call("delete_scim_service_provider", "DELETE", f"{_PROVIDERS}/{quoted(id)}"))


def _client(id: str) -> str:
    return f"{_CLIENTS}/{quoted(id)}"


def _provider(client_id: str, endpoint: str, token: SecretText) -> JsonObject:
    return {"oidcClientId": client_id, "endpoint": endpoint, "token": token.reveal()}
