"""The controller of KeystoneIdentityBackend: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. Source: spec/keystone.md 4.6, and a watch on Deployments and
Secrets besides, so that a finished rollout or a changed password is seen at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject, Key
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS, SECRETS
from moorage.runtime.room import Caches, Index, Room, Watch, by_index

from .apply import apply
from .decide import decide
from .observe import observe
from .report import report
from .seen import Plan, Seen
from .types import FINALIZER, KIND

BY_KEYSTONE: Final = "backend-by-keystone"
BY_SECRET: Final = "backend-by-secret"  # noqa: S105  the name of an index
BY_ADMIN_SECRET: Final = "keystone-by-admin-secret"  # noqa: S105  the name of an index


def _own_name(obj: JsonObject) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _keystone_of(backend: JsonObject) -> Iterable[str]:
    yield f"{backend['metadata'].get('namespace', '')}/{backend['spec']['keystoneRef']['name']}"


def _secrets_of(backend: JsonObject) -> Iterable[str]:
    ldap = backend["spec"].get("ldap") or {}
    for ref in (ldap.get("bindCredentialsSecretRef"), (ldap.get("tls") or {}).get("caBundleSecretRef")):
        if ref:
            yield f"{backend['metadata'].get('namespace', '')}/{ref['name']}"


def _admin_secret_of(keystone: JsonObject) -> Iterable[str]:
    name = keystone["spec"]["bootstrap"]["adminPasswordSecretRef"]["name"]
    yield f"{keystone['metadata'].get('namespace', '')}/{name}"


_REFERRING = by_index(KIND.resource, BY_SECRET, _own_name)
_ATTACHED = by_index(KIND.resource, BY_KEYSTONE, _own_name)


def _by_secret(secret: JsonObject, caches: Caches) -> Iterable[Key]:
    """Backends that name the Secret, and those of a Keystone whose administrator's password it holds."""
    yield from _REFERRING(secret, caches)
    for keystone in caches.list(KEYSTONE.resource, index=BY_ADMIN_SECRET, value=_own_name(secret)):
        yield from _ATTACHED(keystone, caches)


ROOM: Final[Room[Seen, Plan]] = Room(
    name="keystoneidentitybackend",
    kind=KIND,
    finalizer=FINALIZER,
    observe=observe,
    decide=decide,
    apply=apply,
    report=report,
    watches=(
        Watch(KEYSTONE.resource, _ATTACHED),
        Watch(DEPLOYMENTS, _ATTACHED),
        Watch(SECRETS, _by_secret),
    ),
    indices=(
        Index(KIND.resource, BY_KEYSTONE, _keystone_of),
        Index(KIND.resource, BY_SECRET, _secrets_of),
        Index(KEYSTONE.resource, BY_ADMIN_SECRET, _admin_secret_of),
    ),
)
