"""Reads everything that one pass over a backend needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. Objects of Kubernetes come from the shared cache, so a steady pass sends
one request to Keystone (the domain by its id) and a login only when no token is left. Source: spec/keystone.md 4.1, 4.3.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.meta import JsonObject, Key, is_terminating
from moorage.core.secret import SecretText
from moorage.keystone.identity import Identity, IdentityError, Login, Tokens, internal_url
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS, SECRETS
from moorage.net.sessions import Sessions
from moorage.runtime.projection import rolled_out
from moorage.runtime.world import World

from .directory import PROBE_AT, Probes, Target, target_of
from .ldap import conf_key, credentials
from .materials import Data, Fault, Materials
from .render import Projected, Projection, project, secret_names
from .seen import Directory, KeystoneFacts, Lookup, Mount, Seen, Unknown, own_ids
from .types import KIND, KeystoneIdentityBackend

VOLUME: Final = "domains"
"""Volume of the Keystone pods that holds the projected files."""


@dataclass(frozen=True)
class Memory:
    """What outlives a pass: tokens and the last probes. One for each World."""

    tokens: Tokens
    probes: Probes


_MEMORIES: WeakKeyDictionary[Sessions, Memory] = WeakKeyDictionary()


def memory_of(world: World) -> Memory:
    """The memory that belongs to this world."""
    found = _MEMORIES.get(world.http)
    if found is None:
        found = _MEMORIES[world.http] = Memory(Tokens(world.now), Probes())
    return found


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one backend, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        memory_of(world).probes.forget(key)
        return None
    backend = KIND.parse(obj)
    materials = _materials(world, backend)
    wanted = project(backend, materials)
    seen = Seen(backend, _keystone(world, backend), wanted, _mount(world, backend, wanted))
    seen = _with_identity(world, seen)
    lookup, directory = await asyncio.gather(_lookup(seen), _directory(world, backend, materials))
    return replace(seen, lookup=lookup, directory=directory)


# --- Kubernetes


def _keystone(world: World, backend: KeystoneIdentityBackend) -> KeystoneFacts | None:
    name = backend.spec.keystone_ref.name
    obj = world.cache.get(KEYSTONE.resource, Key(backend.metadata.namespace, name))
    if obj is None:
        return None
    bootstrap = obj["spec"]["bootstrap"]
    usable, why = _usable(conditions.from_wire((obj.get("status") or {}).get("conditions")))
    return KeystoneFacts(
        name=name,
        terminating=is_terminating(obj),
        api_ready=usable,
        api_message=why,
        admin_user=bootstrap.get("adminUser", "admin"),
        admin_secret=bootstrap["adminPasswordSecretRef"]["name"],
    )


def _usable(stored: Sequence[Condition]) -> tuple[bool, str]:
    """Whether the API answers and its administrator can log in: until the bootstrap Job ends every login is refused."""
    api, bootstrap = conditions.find(stored, "KeystoneAPIReady"), conditions.find(stored, "BootstrapReady")
    if api is None or not api.is_true:
        return False, api.message if api else ""
    if bootstrap is not None and not bootstrap.is_true:
        return False, f"its administrator is not set up yet: {bootstrap.message}"
    return True, ""


def _data(world: World, namespace: str, name: str, only: Iterable[str] | None = None) -> Data | None:
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


def _materials(world: World, backend: KeystoneIdentityBackend) -> Materials:
    names, namespace = secret_names(backend), backend.metadata.namespace
    return Materials({name: _data(world, namespace, name) for name in names})


def _mount(world: World, backend: KeystoneIdentityBackend, wanted: Projection) -> Mount:
    namespace = backend.metadata.namespace
    deployment = world.cache.get(DEPLOYMENTS, Key(namespace, backend.spec.keystone_ref.name))
    if deployment is None:
        return Mount(exists=False, carries=False, current=False, rolled_out=False)
    secret = _mounted_secret(deployment)
    wanted_files = wanted.files if isinstance(wanted, Projected) else {}
    names = {conf_key(backend.spec.domain.name), *wanted_files}
    data = _data(world, namespace, secret, names) if secret else {}
    current = data is not None and isinstance(wanted, Projected) and wanted.stands_in(data)
    carries = data is None or conf_key(backend.spec.domain.name) in data
    return Mount(True, carries, current, rolled_out(deployment))


def _mounted_secret(deployment: JsonObject) -> str:
    for volume in deployment["spec"]["template"]["spec"].get("volumes") or ():
        if volume["name"] == VOLUME:
            return str((volume.get("secret") or {}).get("secretName", ""))
    return ""


# --- Keystone


def _with_identity(world: World, seen: Seen) -> Seen:
    """The client for this pass, or why there is no password for it."""
    keystone = seen.keystone
    if keystone is None:
        return seen
    namespace = seen.backend.metadata.namespace
    password, fault = _password(_data(world, namespace, keystone.admin_secret), keystone.admin_secret)
    if fault:
        return replace(seen, admin_fault=fault)
    login = Login(internal_url(keystone.name, namespace), keystone.admin_user, SecretText(password))
    return replace(seen, identity=Identity(world.http.get("keystone"), login, memory_of(world).tokens))


def _password(data: Data | None, name: str) -> tuple[str, str]:
    """The password, or what is wrong with the Secret."""
    if data is None:
        return "", f"admin Secret {name} does not exist"
    try:
        password = data.get("password", b"").decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return "", f"key password of admin Secret {name} is not UTF-8 text"
    return password, "" if password else f"key password of admin Secret {name} is missing or empty"


async def _lookup(seen: Seen) -> Lookup | Unknown | None:
    """Ask Keystone, when it can be asked and an answer is needed; None when not."""
    keystone = seen.keystone
    if keystone is None or seen.identity is None or keystone.terminating or not keystone.api_ready:
        return None
    if seen.backend.spec.type != "LDAP" or (seen.terminating and not seen.deletes_domain):
        return None
    try:
        return await _domains(seen, seen.identity)
    except IdentityError as error:
        return Unknown(str(error))


async def _domains(seen: Seen, identity: Identity) -> Lookup:
    """By the ids that prove ownership first; the name is asked for only when that does not settle it."""
    if seen.adopts:
        return Lookup(None, await identity.domain_named(seen.domain_name))
    own = None
    for id in own_ids(seen.backend):
        own = own or await identity.domain(id)
    if seen.terminating or (own is not None and own.name == seen.domain_name):
        return Lookup(own, own)
    return Lookup(own, await identity.domain_named(seen.domain_name))


# --- the directory


async def _directory(world: World, backend: KeystoneIdentityBackend, materials: Materials) -> Directory | None:
    """What the last probe found; a terminating backend is not probed."""
    ldap = backend.spec.ldap
    if ldap is None or backend.metadata.deletion_timestamp:
        return None
    found = credentials(ldap, materials)
    if isinstance(found, Fault):
        return Directory("Unknown", "ProbeNotPossible", found.message)
    ca = materials.secrets.get(ldap.tls.ca_bundle_secret_ref.name) if ldap.tls else None
    target = target_of(ldap, backend.spec.extra_options or {}, found, (ca or {}).get("ca.crt"))
    target = replace(await _addressed(world, target), asked=(backend.metadata.annotations or {}).get(PROBE_AT, ""))
    return await memory_of(world).probes.look(backend.key, target, world.now)


async def _addressed(world: World, target: Target) -> Target:
    """The target with the addresses that Service names have in one-machine mode."""
    hosts = dict.fromkeys(urlsplit(url).hostname or "" for url in target.urls)
    pairs = [(host, await world.http.address(host)) for host in hosts]
    return replace(target, addresses=tuple((host, address) for host, address in pairs if address))
