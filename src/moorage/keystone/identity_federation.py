"""Federation objects of the Identity API: identity providers, mappings, protocols.

Enters: a Caller, ids and values. Leaves: frozen values, or a typed error of `identity_errors`. It decides nothing: order and ownership
are the rooms' matter. Deletions of what is gone raise NotFound. Source: Keystone API reference v3, OS-FEDERATION; spec/keystone.md 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from moorage.core.meta import JsonObject

from .identity_errors import NotFound
from .identity_requests import Caller, member, quoted

_PROVIDERS: Final = "/OS-FEDERATION/identity_providers"
_MAPPINGS: Final = "/OS-FEDERATION/mappings"
REMOTE_ID_LIMIT: Final = 64
"""Characters of a remote id that Keystone 30 takes; its database would hold 255."""


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """An identity provider as Keystone has it. `remote_ids` are unique in the whole Keystone; their order means nothing."""

    id: str
    domain_id: str
    enabled: bool
    remote_ids: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class MappingRules:
    """A mapping as Keystone has it; `rules` are its own JSON."""

    id: str
    rules: Sequence[JsonObject] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol of one identity provider."""

    id: str
    mapping_id: str
    remote_id_attribute: str = ""


class Federation:
    """Federation objects of one Keystone."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    # --- identity providers

    async def provider(self, id: str) -> IdentityProvider | None:
        """The identity provider of that id, None when there is none."""
        try:
            return _provider(await self._caller.call("GET", f"{_PROVIDERS}/{quoted(id)}"))
        except NotFound:
            return None

    async def providers(self) -> tuple[IdentityProvider, ...]:
        """All identity providers."""
        found = await self._caller.pages(_PROVIDERS, "identity_providers", {})
        return tuple(_provider({"identity_provider": item}) for item in found)

    async def create_provider(self, wanted: IdentityProvider) -> IdentityProvider:
        """Create it as given, in an existing domain.

        Raises:
            Conflict: the id, or one of the remote ids, is taken.
        """
        body = {
            "domain_id": wanted.domain_id, "description": wanted.description, "enabled": wanted.enabled,
            "remote_ids": list(wanted.remote_ids),
        }  # fmt: skip
        answer = await self._caller.call("PUT", f"{_PROVIDERS}/{quoted(wanted.id)}", body={"identity_provider": body})
        return _provider(answer)

    async def update_provider(self, id: str, changes: Mapping[str, Any]) -> IdentityProvider:
        """Change `enabled`, `description`, `remote_ids`; Keystone never moves one to another domain.

        Raises:
            Conflict: a remote id is taken.
            NotFound: there is no such identity provider.
        """
        answer = await self._caller.call(
            "PATCH", f"{_PROVIDERS}/{quoted(id)}", body={"identity_provider": dict(changes)}
        )
        return _provider(answer)

    async def delete_provider(self, id: str) -> None:
        """Delete it, with its protocols and its shadow users."""
        await self._caller.call("DELETE", f"{_PROVIDERS}/{quoted(id)}")

    # --- mappings

    async def mapping(self, id: str) -> MappingRules | None:
        """The mapping of that id, None when there is none."""
        try:
            return _mapping(await self._caller.call("GET", f"{_MAPPINGS}/{quoted(id)}"))
        except NotFound:
            return None

    async def create_mapping(self, id: str, rules: Sequence[JsonObject]) -> MappingRules:
        """Create a mapping; Keystone refuses one without rules.

        Raises:
            Conflict: the id is taken.
        """
        return _mapping(await self._caller.call("PUT", f"{_MAPPINGS}/{quoted(id)}", body=_rules(rules)))

    async def update_mapping(self, id: str, rules: Sequence[JsonObject]) -> MappingRules:
        """Replace the rules in place."""
        return _mapping(await self._caller.call("PATCH", f"{_MAPPINGS}/{quoted(id)}", body=_rules(rules)))

    async def delete_mapping(self, id: str) -> None:
        """Delete it; Keystone does not look whether a protocol still names it."""
        await self._caller.call("DELETE", f"{_MAPPINGS}/{quoted(id)}")

    # --- protocols

    async def protocols(self, provider: str) -> tuple[Protocol, ...]:
        """The protocols of an identity provider; only this list tells the remote id attribute."""
        found = await self._caller.pages(f"{_PROVIDERS}/{quoted(provider)}/protocols", "protocols", {})
        return tuple(_protocol({"protocol": item}) for item in found)

    async def create_protocol(self, provider: str, wanted: Protocol) -> Protocol:
        """Create a protocol; its mapping must exist.

        Raises:
            Conflict: the identity provider has one of that id.
        """
        await self._caller.call("PUT", _protocol_path(provider, wanted.id), body=_protocol_body(wanted))
        return wanted

    async def update_protocol(self, provider: str, wanted: Protocol) -> Protocol:
        """Change mapping and remote id attribute in place."""
        await self._caller.call("PATCH", _protocol_path(provider, wanted.id), body=_protocol_body(wanted))
        return wanted

    async def delete_protocol(self, provider: str, id: str) -> None:
        """Delete it; nobody logs in by it any more."""
        await self._caller.call("DELETE", _protocol_path(provider, id))


def _protocol_path(provider: str, id: str) -> str:
    return f"{_PROVIDERS}/{quoted(provider)}/protocols/{quoted(id)}"


def _protocol_body(wanted: Protocol) -> JsonObject:
    return {"protocol": {"mapping_id": wanted.mapping_id, "remote_id_attribute": wanted.remote_id_attribute}}


def _rules(rules: Sequence[JsonObject]) -> JsonObject:
    return {"mapping": {"rules": list(rules)}}


def _provider(answer: JsonObject) -> IdentityProvider:
    item = member(answer, "identity_provider", "id")
    return IdentityProvider(
        id=item["id"],
        domain_id=str(item.get("domain_id") or ""),
        enabled=bool(item.get("enabled")),
        remote_ids=tuple(map(str, item.get("remote_ids") or ())),
        description=str(item.get("description") or ""),
    )


def _mapping(answer: JsonObject) -> MappingRules:
    item = member(answer, "mapping", "id")
    return MappingRules(item["id"], tuple(item.get("rules") or ()))


def _protocol(answer: JsonObject) -> Protocol:
    item = member(answer, "protocol", "id")
    return Protocol(item["id"], str(item.get("mapping_id") or ""), str(item.get("remote_id_attribute") or ""))
