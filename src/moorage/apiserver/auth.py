"""Who asks: client certificate, bearer token, impersonation.

Enters: the verified certificate subject of the connection and the request's headers. Leaves: a User. No credentials, or
wrong ones, are 401; nothing anonymous passes but the paths that app.py names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from moorage.apiserver.errors import bad_request, unauthorized
from moorage.apiserver.request import Target, User
from moorage.apiserver.tokens import Tokens

AUTHENTICATED = "system:authenticated"
Require = Callable[[User, Target], None]
"""Raises 403 when the user may not do what the target says."""
_GROUP = "authentication.k8s.io"


def certificate_user(certificate: Mapping[str, Any] | None) -> User | None:
    """The user of a verified client certificate, as `ssl.SSLSocket.getpeercert` gives it."""
    if not certificate:
        return None
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for kind, value in subject if kind == "commonName"), "")
    groups = tuple(value for kind, value in subject if kind == "organizationName")
    return User(name, (*groups, AUTHENTICATED)) if name else None


class Authenticator:
    """Finds the user of a request."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def user(self, headers: Mapping[str, str], peer: User | None) -> User:
        """The user, before impersonation.

        Raises:
            StatusError: 401.
        """
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            found = self.tokens.user(token.strip())
            if found is None:
                raise unauthorized()
            return found
        if peer is not None:
            return peer
        raise unauthorized()


def impersonated(user: User, headers: Mapping[str, str], groups: tuple[str, ...], require: Require) -> User:
    """The user that a request acts as; `groups` are the values of Impersonate-Group.

    Raises:
        StatusError: 403, the real user may not; 400, groups or extras without a user.
    """
    name = headers.get("impersonate-user", "")
    extra = {
        unquote(key.removeprefix("impersonate-extra-")): tuple(value.split("\n"))
        for key, value in headers.items()
        if key.startswith("impersonate-extra-")
    }
    uid = headers.get("impersonate-uid", "")
    if not name:
        if groups or extra or uid:
            raise bad_request(f"requested {_go_user(uid, groups, extra)} without impersonating a user name")
        return user
    for wanted in (
        _identity(name),
        *(Target("", "impersonate", resource="groups", name=group) for group in groups),
        *([Target("", "impersonate", _GROUP, resource="uids", name=uid)] if uid else ()),
        *(
            Target("", "impersonate", _GROUP, resource="userextras", name=value, subresource=key)
            for key, values in extra.items()
            for value in values
        ),
    ):
        require(user, wanted)
    if name.startswith("system:serviceaccount:") and not groups:
        namespace = name.split(":")[2]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    if AUTHENTICATED not in groups and name != "system:anonymous":
        groups = (*groups, AUTHENTICATED)
    return User(name, groups, uid, extra)


def _go_user(uid: str, groups: tuple[str, ...], extra: Mapping[str, tuple[str, ...]]) -> str:
    """A user as Go prints one."""
    listed = ", ".join(f'"{name}"' for name in groups)
    shown = f"[]string{{{listed}}}" if groups else "[]string(nil)"
    quoted = {key: ", ".join(f'"{value}"' for value in values) for key, values in extra.items()}
    pairs = ", ".join(f'"{key}":[]string{{{values}}}' for key, values in quoted.items())
    more = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{shown}, Extra:{more}}}'


def _identity(name: str) -> Target:
    """The user or ServiceAccount of this name, to be impersonated."""
    parts = name.split(":")
    if len(parts) == 4 and name.startswith("system:serviceaccount:"):
        return Target("", "impersonate", namespace=parts[2], resource="serviceaccounts", name=parts[3])
    return Target("", "impersonate", resource="users", name=name)
