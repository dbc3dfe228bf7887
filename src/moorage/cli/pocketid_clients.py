"""The spec of a client, in such words that adopting the client writes nothing.

Enters: the client as the server has it, what it holds, references to exported groups and APIs. Leaves: a Draft, or the reason why there is none. Pure.
Its secret is left to whoever has it now (`storeClientSecret: false`), its logos to whoever uploaded them. The token of a SCIM service is not
exported: the manifest names a Secret, and until that is there the provider stays as it is.
Source: seed 004; spec/pocketid.md 1.1 to 1.6, 3.4 to 3.10.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.cli.pocketid_drafts import Draft, Needed, Refs, Undeclarable, present
from moorage.cli.pocketid_holdings import Holdings
from moorage.core.meta import JsonObject
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.rest import CIMD, Access, Client, Grant, GroupName, ScimProvider
from moorage.pocketid.usergroup.types import KIND as GROUP

TOKEN: Final = "token"  # noqa: S105 - name of a data key
_DURATIONS: Final = {"accessTokenDurationMinutes": 60, "refreshTokenDurationMinutes": 43200}
_SWITCHES: Final = ("requiresReauthentication", "requiresPushedAuthorizationRequests", "skipConsent")


def client_draft(client: Client, name: str, holdings: Holdings, refs: Refs) -> Draft | Undeclarable:
    """A client with groups, API access and SCIM."""
    if client.is_group_restricted and not client.groups:
        return Undeclarable(
            "nobody may use it (restricted, without a group), which no manifest says; give it a group first"
        )
    grants = [item for item in holdings.grants.get(client.id, ()) if item.access.grants_anything]
    lost = sorted(item.api.resource for item in grants if (API.kind, item.api.id) not in refs)
    if lost:
        return Undeclarable(f"it has access to {', '.join(lost)}, which is not exported")
    provider = holdings.providers.get(client.id)
    token = _token(provider, name)
    spec = {
        "clientID": client.id,
        **({} if client.client_type == CIMD else _own(client, name)),
        **_settings(client),
        **present(
            allowedUserGroups=_groups(client.groups or (), refs) if client.is_group_restricted else None,
            apiAccess=_accesses(grants, refs),
            scim=_scim(provider, token),
        ),
        "logo": {"autoGenerate": False},
        "deletionPolicy": "Retain",
    }
    return Draft(spec, (token,) if token else ())


def _settings(client: Client) -> JsonObject:
    """What is declared of every client, also of one that a metadata document describes."""
    raw = client.raw
    lives = {key: raw.get(key) for key, default in _DURATIONS.items() if raw.get(key) not in (None, default)}
    switches = {key: bool(raw.get(key)) for key in _SWITCHES}
    said = present(description=raw.get("description"), launchUrl=raw.get("launchURL"), **switches)
    return {**said, **lives}


def _own(client: Client, name: str) -> JsonObject:
    """What no document defines. A public client has no secret, and PKCE without being asked."""
    raw, public = client.raw, client.is_public
    return present(
        name=None if client.name == name else client.name,
        callbackUrls=list(raw.get("callbackURLs") or ()),
        logoutCallbackUrls=list(raw.get("logoutCallbackURLs") or ()),
        backchannelLogoutUrl=raw.get("backchannelLogoutURL"),
        isPublic=public,
        pkceEnabled=bool(raw.get("pkceEnabled")) and not public,
        federatedIdentities=[_identity(item) for item in client.federated_identities],
        secret={} if public else {"storeClientSecret": False},
    )


def _identity(identity: JsonObject) -> JsonObject:
    """A federated identity; an issuer is said even where it is empty, so that the refusal names it."""
    keys = [{"value": key} for key in identity.get("publicKeys") or ()]
    texts = {member: identity.get(member) for member in ("subject", "audience", "jwks")}
    replay = bool(identity.get("replayProtection"))
    return {"issuer": identity.get("issuer") or "", **present(**texts, publicKeys=keys, replayProtection=replay)}


def _groups(groups: Iterable[GroupName], refs: Refs) -> list[JsonObject]:
    found = [refs.get((GROUP.kind, group.id)) or {"groupName": group.name} for group in groups]
    return sorted(found, key=lambda ref: sorted(ref.items()))


def _accesses(grants: Iterable[Grant], refs: Refs) -> list[JsonObject]:
    found = [{"apiRef": refs[API.kind, grant.api.id], **_access(grant)} for grant in grants]
    return sorted(found, key=lambda entry: str(entry["apiRef"]["name"]))


def _access(grant: Grant) -> JsonObject:
    """Permissions by key; a flow without any is said by its switch."""
    access: Access = grant.access
    keys = {item.id: item.key for item in grant.api.permissions}
    delegated, own = (
        sorted(keys.get(id, id) for id in ids) for ids in (access.user_delegated_permissions, access.client_permissions)
    )
    return present(
        delegatedPermissions=delegated,
        clientPermissions=own,
        delegatedAccess=access.user_delegated and not delegated,
        clientAccess=access.client and not own,
    )


def _token(provider: ScimProvider | None, name: str) -> Needed | None:
    """The Secret that is to hold the bearer token; None when the service has none."""
    if provider is None or not provider.token:
        return None
    return Needed(f"{name}-scim", TOKEN, f"the bearer token of {provider.endpoint}")


def _scim(provider: ScimProvider | None, token: Needed | None) -> JsonObject | None:
    if provider is None:
        return None
    ref = {"name": token.secret, "key": token.key} if token else None
    return present(endpoint=provider.endpoint, tokenSecretRef=ref)
