"""From a Pocket-ID's JSON to frozen values.

Enters: decoded answers. Leaves: values of `rest_types`, or `Nonsense` that names what is missing and shows nothing of the answer. Pure.
Source: spec/pocketid.md 4.1 (dates), 4.2 to 4.10 (members).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText

from .rest_errors import Nonsense
from .rest_types import (
    Access,
    Api,
    ApiKey,
    Claim,
    Client,
    ClientSecret,
    Grant,
    Group,
    GroupName,
    Holder,
    MadeApiKey,
    MadeClient,
    MadeSecret,
    Permission,
    ScimProvider,
    User,
)

T = TypeVar("T")
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)
_CREATED_SECRET: Final = "createdSecret"  # noqa: S105 -- the name of a member


def time_of(text: Any) -> datetime | None:
    """A time as the server writes it: RFC 3339, any offset, up to 9 digits of fraction, of which 6 are kept; None when it is none."""
    return _moment(text) if isinstance(text, str) else None


@lru_cache(maxsize=4096)
def _moment(text: str) -> datetime | None:
    """The times of a client come again with each answer and each list."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{found[2]}.{(found[3] or '0').ljust(6, '0')[:6]}")
        return moment.replace(tzinfo=UTC if found[4] else _offset(found[5], int(found[6]), int(found[7])))
    except ValueError:
        return None


def _offset(sign: str, hours: int, minutes: int) -> timezone:
    away = timedelta(hours=hours, minutes=minutes)
    return timezone(-away if sign == "-" else away)


def object_of(what: str, item: Any, *required: str) -> JsonObject:
    """A JSON object with these members as text.

    Raises:
        Nonsense: it is none.
    """
    if not isinstance(item, dict):
        raise Nonsense(what, "the answer does not hold one")
    for name in required:  # read for each client of a list: a generator would cost more than the look
        if not isinstance(item.get(name), str):
            raise Nonsense(what, "the answer does not hold one")
    return item


def list_of(what: str, items: Any) -> list[Any]:
    """A JSON array; null counts as empty.

    Raises:
        Nonsense: it is none.
    """
    if items is not None and not isinstance(items, list):
        raise Nonsense(what, "the answer is no list")
    return list(items or ())


# --- clients


def client_of(answer: Any) -> Client:
    """A client; whatever secret text the answer holds is not kept."""
    item = object_of("client", answer, "id").copy()
    item.pop(_CREATED_SECRET, None)
    groups = item.get("allowedUserGroups")
    names = None if groups is None else tuple(group_name_of(group) for group in list_of("allowedUserGroups", groups))
    credentials = object_of("credentials", item.get("credentials") or {})
    return Client(
        id=item["id"],
        name=_text(item, "name"),
        client_type=_text(item, "clientType"),
        is_group_restricted=bool(item.get("isGroupRestricted")),
        secrets=tuple(secret_of(one) for one in list_of("secrets", credentials.get("secrets"))),
        groups=names,
        group_count=len(names) if names is not None else _number(item, "allowedUserGroupsCount"),
        has_logo=bool(item.get("hasLogo")),
        has_dark_logo=bool(item.get("hasDarkLogo")),
        pkce_supported=bool(item.get("pkceSupported")),
        raw=item,
    )


def made_client_of(answer: Any) -> MadeClient:
    """A client just created. A newer server tells the secret that it made, as an object like a created secret's or as bare text."""
    client = client_of(answer)
    made = answer.get(_CREATED_SECRET)
    if isinstance(made, str) and made:
        held = [item for item in client.secrets if item.prefix == made[:4]]
        return MadeClient(client, MadeSecret(held[0], SecretText(made)) if len(held) == 1 else None)
    return MadeClient(client, made_secret_of(made) if isinstance(made, dict) and made.get("secret") else None)


def secret_of(item: Any) -> ClientSecret:
    """A secret of a list."""
    found = object_of("secret", item, "id")
    created = time_of(found.get("createdAt"))
    if created is None:
        raise Nonsense("secret", "the answer does not say when it was created")
    return ClientSecret(
        id=found["id"],
        prefix=_text(found, "prefix"),
        created_at=created,
        expires_at=time_of(found.get("expiresAt")),
        is_active=bool(found.get("isActive")),
    )


def made_secret_of(answer: Any) -> MadeSecret:
    """A secret just created, with its value."""
    value = object_of("created secret", answer, "id", "secret")["secret"]
    if not value:
        raise Nonsense("created secret", "the answer does not tell its value")
    return MadeSecret(secret_of(answer), SecretText(value))


def scim_provider_of(answer: Any) -> ScimProvider:
    """A SCIM provider. Its `oidcClient` is an empty shell in every answer and is not read."""
    item = object_of("SCIM service provider", answer, "id", "endpoint")
    return ScimProvider(item["id"], item["endpoint"], SecretText(_text(item, "token")))


# --- groups and users


def group_name_of(item: Any) -> GroupName:
    """A group inside another object."""
    found = object_of("user group", item, "id")
    return GroupName(found["id"], _text(found, "name"))


def group_of(answer: Any) -> Group:
    """A group, of a list or alone."""
    item = object_of("user group", answer, "id", "name")
    users, clients = _ids(item, "users"), _ids(item, "allowedOidcClients")
    return Group(
        id=item["id"],
        name=item["name"],
        friendly_name=_text(item, "friendlyName"),
        claims=claims_of(item.get("customClaims")),
        ldap_id=_text(item, "ldapId"),
        created_at=time_of(item.get("createdAt")),
        user_count=len(users) if users is not None else _number(item, "userCount"),
        users=users,
        client_ids=clients,
    )


def claims_of(items: Any) -> tuple[Claim, ...]:
    """Custom claims, in order."""
    found = (object_of("custom claim", item, "key", "value") for item in list_of("custom claims", items))
    return tuple(Claim(item["key"], item["value"]) for item in found)


def user_of(answer: Any) -> User:
    """A user."""
    item = object_of("user", answer, "id", "username")
    email, locale = item.get("email"), item.get("locale")
    return User(
        id=item["id"],
        username=item["username"],
        email=email if isinstance(email, str) else None,
        email_verified=bool(item.get("emailVerified")),
        first_name=_text(item, "firstName"),
        last_name=_text(item, "lastName"),
        display_name=_text(item, "displayName"),
        is_admin=bool(item.get("isAdmin")),
        disabled=bool(item.get("disabled")),
        locale=locale if isinstance(locale, str) else None,
        claims=claims_of(item.get("customClaims")),
        groups=tuple(group_name_of(group) for group in list_of("userGroups", item.get("userGroups"))),
        ldap_id=_text(item, "ldapId"),
        raw=item,
    )


def made_api_key_of(answer: Any) -> MadeApiKey:
    """An API key just created, with its token."""
    whole = object_of("API key", answer, "token")
    item = object_of("API key", whole.get("apiKey"), "id", "name")
    key = ApiKey(item["id"], item["name"], time_of(item.get("expiresAt")), _text(item, "description"))
    return MadeApiKey(key, SecretText(whole["token"]))


# --- APIs


def api_of(answer: Any) -> Api:
    """An API with its permissions, in order of their keys: the server's own order means nothing."""
    item = object_of("API", answer, "id", "resource")
    permissions = (_permission(one) for one in list_of("permissions", item.get("permissions")))
    return Api(
        id=item["id"],
        name=_text(item, "name"),
        resource=item["resource"],
        permissions=tuple(sorted(permissions, key=lambda one: one.key)),
        allow_cimd=bool(item.get("allowCimdClients")),
        created_at=time_of(item.get("createdAt")),
    )


def _permission(item: Any) -> Permission:
    found = object_of("permission", item, "id", "key")
    return Permission(
        found["key"],
        _text(found, "name"),
        _text(found, "description"),
        found["id"],
        bool(found.get("allowedForCimdClients")),
    )


def access_of(answer: Any) -> Access:
    """What was granted, as the server applied it."""
    item = object_of("grant", answer)
    return Access(
        user_delegated=bool(item.get("userDelegatedAccess")),
        client=bool(item.get("clientAccess")),
        user_delegated_permissions=_texts(item, "userDelegatedPermissionIds"),
        client_permissions=_texts(item, "clientPermissionIds"),
    )


def grant_of(answer: Any) -> Grant:
    """One row of a client's grants."""
    item = object_of("grant", answer)
    return Grant(api_of(item.get("api")), access_of(item), bool(item.get("cimdGrantedAccess")))


def holder_of(answer: Any) -> Holder:
    """One row of an API's clients."""
    item = object_of("grant", answer)
    client = object_of("client of a grant", item.get("client"), "id")
    return Holder(client["id"], _text(client, "name"), access_of(item))


def unique(items: Iterable[T]) -> bool:
    """No two of them have one id."""
    ids = [cast(Any, item).id for item in items]
    return len(set(ids)) == len(ids)


def _ids(item: JsonObject, name: str) -> frozenset[str] | None:
    listed = item.get(name)
    if listed is None:
        return None
    return frozenset(object_of(name, one, "id")["id"] for one in list_of(name, listed))


def _texts(item: JsonObject, name: str) -> frozenset[str]:
    return frozenset(one for one in list_of(name, item.get(name)) if isinstance(one, str))


def _text(item: JsonObject, name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


def _number(item: JsonObject, name: str) -> int:
    value = item.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
