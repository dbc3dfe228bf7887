"""Reads what the pods of a Keystone run of a backend: Deployments and the Secrets behind their volumes.

Enters: the world, a backend, what should be projected. Leaves: a Mount. From the shared cache; it asks no server. Source: spec/keystone.md 4.3.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject, Key, controller_of
from moorage.keystone.addresses import SAML_SUFFIX
from moorage.kube.resources import DEPLOYMENTS, SECRETS
from moorage.runtime.projection import replaced, rolled_out
from moorage.runtime.world import World

from .federation import data_key
from .ldap import conf_key
from .materials import Data
from .render import VARIANTS, Projected, Projection
from .seen import Mount
from .types import KeystoneIdentityBackend

VOLUMES: Final = {name: variant.volume for name, variant in VARIANTS.items()}
"""Volume of the Keystone pods that holds the projected files, by type of backend."""
_NOTHING: Final = Mount(exists=False, carries=False, current=False, rolled_out=False)


def mount_of(world: World, backend: KeystoneIdentityBackend, wanted: Projection) -> Mount:
    """What the pods run, in both Deployments where SAML has one of its own: their template is the same (ADR 0012)."""
    keystone, namespace = backend.spec.keystone_ref.name, backend.metadata.namespace
    deployment = world.cache.get(DEPLOYMENTS, Key(namespace, keystone))
    if deployment is None:
        return _NOTHING
    twin = world.cache.get(DEPLOYMENTS, Key(namespace, f"{keystone}{SAML_SUFFIX}"))
    if twin is not None and not _is_of(twin, keystone):
        twin = None
    found = [_mount(world, backend, wanted, item) for item in (deployment, twin) if item is not None]
    return Mount(
        exists=True,
        carries=any(item.carries for item in found),
        current=all(item.current for item in found) and not _twin_is_missing(backend, deployment, twin),
        rolled_out=all(item.rolled_out for item in found),
        replaced=all(item.replaced for item in found),
    )


def _is_of(deployment: JsonObject, keystone: str) -> bool:
    """Another Keystone may itself be called `<keystone>-saml`."""
    owner = controller_of(deployment)
    return owner is not None and (owner.kind, owner.key.name) == ("Keystone", keystone)


def _twin_is_missing(backend: KeystoneIdentityBackend, deployment: JsonObject, twin: JsonObject | None) -> bool:
    """With several replicas SAML is answered by a Deployment of its own (decisions, Keystone 22)."""
    replicas = int((deployment.get("spec") or {}).get("replicas", 1))
    return twin is None and backend.spec.type == "SAML" and replicas > 1


def _mount(world: World, backend: KeystoneIdentityBackend, wanted: Projection, deployment: JsonObject) -> Mount:
    secret = mounted_secret(deployment, VOLUMES[backend.spec.type])
    files = wanted.files if isinstance(wanted, Projected) else {}
    signs = _signs(backend)
    data = data_of(world, backend.metadata.namespace, secret, {*signs, *files}) if secret else {}
    current = data is not None and isinstance(wanted, Projected) and wanted.stands_in(data)
    carries = data is None or any(name in data for name in signs)
    return Mount(True, carries, current, rolled_out(deployment), replaced(deployment))


def _signs(backend: KeystoneIdentityBackend) -> tuple[str, ...]:
    """Data keys of which at least one is there while the backend is projected."""
    if backend.spec.type == "LDAP":
        return (conf_key(backend.spec.domain.name),)
    return tuple(data_key(backend, name) for name in ("provider", "client", "conf", "idp-metadata.xml", "digest"))


def mounted_secret(deployment: JsonObject, volume: str) -> str:
    """Name of the Secret behind a volume of the template, "" when there is none."""
    for item in deployment["spec"]["template"]["spec"].get("volumes") or ():
        if item["name"] == volume:
            return str((item.get("secret") or {}).get("secretName", ""))
    return ""


# --- Secrets


def data_of(world: World, namespace: str, name: str, only: Iterable[str] | None = None) -> Data | None:
    """The decoded data of a Secret, or these keys of it; None when there is none."""
    secret = world.cache.get(SECRETS, Key(namespace, name))
    return None if secret is None else decoded(secret, only)


def decoded(secret: JsonObject, only: Iterable[str] | None = None) -> dict[str, bytes]:
    """Secret data as bytes; a value that is no base64 is left out, as if its key were missing.

    `only` limits it to these keys: a Secret with the files of many domains is not decoded whole for each of them.
    """
    stored = secret.get("data") or {}
    found = {}
    for key, value in stored.items() if only is None else [(key, stored[key]) for key in only if key in stored]:
        try:
            found[key] = base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            continue
    return found
