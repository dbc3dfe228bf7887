"""Client of Keystone's Identity API v3: domains here, federation objects and access by group behind two doors.

Enters: a session, a login, the tokens kept so far. Leaves: frozen values, or a typed error of `identity_errors`. It decides nothing and
remembers nothing. Source: spec/keystone.md 4.2; Keystone API reference v3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.core.meta import JsonObject

from .identity_access import Access
from .identity_errors import Conflict, IdentityError, NotFound, Unauthorized
from .identity_federation import Federation
from .identity_requests import Caller, member, quoted
from .identity_tokens import Login, Tokens

__all__ = [
    "Conflict",
    "Domain",
    "Identity",
    "IdentityError",
    "Login",
    "NotFound",
    "Tokens",
    "Unauthorized",
]


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain as Keystone has it."""

    id: str
    name: str
    enabled: bool
    description: str = ""


class Identity(Caller):
    """One administrator at one Keystone."""

    @property
    def federation(self) -> Federation:
        """Identity providers, mappings, protocols."""
        return Federation(self)

    @property
    def access(self) -> Access:
        """Groups, roles, projects, and who may do what."""
        return Access(self)

    async def domain(self, id: str) -> Domain | None:
        """The domain of that id, None when there is none.

        Raises:
            IdentityError: the look failed.
        """
        try:
            answer = await self.call("GET", f"/domains/{quoted(id)}")
        except NotFound:
            return None
        return _domain(answer)

    async def domain_named(self, name: str) -> Domain | None:
        """The domain of that name; one that a case-blind database gives instead when none is spelled so.

        Raises:
            IdentityError: the look failed.
        """
        found = [_domain({"domain": item}) for item in await self.pages("/domains", "domains", {"name": name})]
        return next((item for item in found if item.name == name), found[0] if found else None)

    async def create_domain(self, name: str, *, id: str, description: str | None) -> Domain:
        """Create an enabled domain of that id (32 hex digits).

        Raises:
            Conflict: the name or the id is taken.
        """
        wanted: JsonObject = {"name": name, "enabled": True, "explicit_domain_id": id}
        if description is not None:
            wanted["description"] = description
        return _domain(await self.call("POST", "/domains", body={"domain": wanted}))

    async def update_domain(self, id: str, changes: Mapping[str, str | bool]) -> Domain:
        """Change name, description or enabled.

        Raises:
            NotFound: there is no such domain (any more).
        """
        return _domain(await self.call("PATCH", f"/domains/{quoted(id)}", body={"domain": dict(changes)}))

    async def delete_domain(self, id: str) -> None:
        """Delete a disabled domain; Keystone takes its identity providers with it.

        Raises:
            NotFound: it is gone already.
            Forbidden: it is enabled.
        """
        await self.call("DELETE", f"/domains/{quoted(id)}")


def _domain(answer: JsonObject) -> Domain:
    item = member(answer, "domain", "id", "name")
    return Domain(item["id"], item["name"], bool(item.get("enabled", True)), str(item.get("description") or ""))
