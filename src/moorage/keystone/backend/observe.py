"""Reads everything that one pass over a backend needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. Objects of Kubernetes come from the shared cache, so a steady pass sends few requests to
Keystone (of an LDAP backend one: the domain by its id) and a login only when no token is left. Source: spec/keystone.md 4.1, 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.meta import Key, is_terminating
from moorage.core.secret import SecretText
from moorage.keystone.addresses import internal_endpoint
from moorage.keystone.identity import Identity, IdentityError, Login
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.runtime.world import World

from . import documents, metrics
from .aside import aside_of
from .directory import PROBE_AT, Target, target_of
from .ldap import credentials
from .materials import Data, Fault, Materials
from .memory import memory_of
from .observe_federation import look
from .observe_materials import materials_of
from .observe_mount import data_of, mount_of
from .observe_rivals import rivals_of
from .render import VARIANTS, project
from .seen import Directory, KeystoneFacts, Lookup, Seen, Unknown, own_ids
from .types import DOMAIN_READY, KIND, KeystoneIdentityBackend

USABLE: Final = ("KeystoneAPIReady", "BootstrapReady")
"""Conditions of a Keystone that say whether it can be asked."""


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one backend, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        _forget(world, key)
        metrics.forget(key)
        return None
    backend = KIND.parse(obj)
    if backend.metadata.deletion_timestamp:
        _forget(world, key)
    materials = materials_of(world, backend)
    wanted = project(backend, materials)
    seen = Seen(backend, _keystone(world, backend), wanted, mount_of(world, backend, wanted))
    seen = _with_identity(world, seen).after(
        aside=aside_of(world, seen, obj, materials),
        rivals=rivals_of(world, backend, obj, seen.mount),
        leaving=_leaving(backend, world.now()),
    )
    target = await _target(world, backend, materials)
    probes = memory_of(world).probes
    if isinstance(target, Target):
        probes.begin(key, target, world.now)  # it goes on while Keystone is asked
    seen = await _asked(world, seen)
    metrics.document(key, seen.aside.document, world.now())
    directory = await probes.look(key, target, world.now) if isinstance(target, Target) else target
    return seen.after(directory=directory)


def _leaving(backend: KeystoneIdentityBackend, now: datetime) -> float:
    asked = backend.metadata.deletion_timestamp
    return (now - datetime.fromisoformat(asked.replace("Z", "+00:00"))).total_seconds() if asked else 0.0


def _forget(world: World, key: Key) -> None:
    memory = memory_of(world)
    memory.probes.forget(key)
    memory.looks.forget(key)
    documents.forget(world, key)


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
        sidecar=bool((obj["spec"].get("federation") or {}).get("proxyImage")),
    )


def _usable(stored: Sequence[Condition]) -> tuple[bool, str]:
    """Whether the API answers and its administrator can log in: until the bootstrap Job ends every login is refused."""
    api, bootstrap = (conditions.find(stored, name) for name in USABLE)
    if api is None or not api.is_true:
        return False, api.message if api else ""
    if bootstrap is not None and not bootstrap.is_true:
        return False, f"its administrator is not set up yet: {bootstrap.message}"
    return True, ""


# --- Keystone


def _with_identity(world: World, seen: Seen) -> Seen:
    """The client for this pass, or why there is no password for it."""
    keystone = seen.keystone
    if keystone is None:
        return seen
    namespace = seen.backend.metadata.namespace
    password, fault = _password(data_of(world, namespace, keystone.admin_secret), keystone.admin_secret)
    if fault:
        return seen.after(admin_fault=fault)
    login = Login(internal_endpoint(keystone.name, namespace), keystone.admin_user, SecretText(password))
    counted = partial(metrics.called, seen.backend.key)
    return seen.after(identity=Identity(world.http.calls, login, memory_of(world).tokens, counted))


def _password(data: Data | None, name: str) -> tuple[str, str]:
    """The password, or what is wrong with the Secret."""
    if data is None:
        return "", f"admin Secret {name} does not exist"
    try:
        password = data.get("password", b"").decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return "", f"key password of admin Secret {name} is not UTF-8 text"
    return password, "" if password else f"key password of admin Secret {name} is missing or empty"


async def _asked(world: World, seen: Seen) -> Seen:
    """The snapshot with what Keystone says, when it can be asked and an answer is needed."""
    identity = seen.identity
    if identity is None or not _can_be_asked(seen):
        return seen
    looks = memory_of(world).looks
    if seen.wanted_objects is not None and not seen.terminating and (known := looks.recall(seen, world.now())):
        return seen.after(lookup=known[0], objects=known[1])
    try:
        seen = seen.after(lookup=await _domains(seen, identity))
        if seen.wanted_objects is not None:
            seen = seen.after(objects=await look(seen, identity, memory_of(world).names, world.now()))
            looks.keep(seen, world.now())
    except IdentityError as error:
        looks.forget(seen.backend.key)
        return seen.after(lookup=Unknown(str(error)), objects=None)
    return seen


def _can_be_asked(seen: Seen) -> bool:
    """Of a backend on its way out only what is to be deleted is of interest."""
    keystone = seen.keystone
    if keystone is None or keystone.terminating or not keystone.api_ready or seen.backend.spec.type not in VARIANTS:
        return False
    return not seen.terminating or seen.deletes_domain or seen.wanted_objects is not None


async def _domains(seen: Seen, identity: Identity) -> Lookup:
    """By the ids that prove ownership first; the name is asked for only when that does not settle it.

    Of an LDAP backend that no pass has reported on yet nothing is asked: its domain is created at once, and a conflict, which leaves
    Keystone as it was, is looked into (`apply`). A federated one has objects that are looked at anyway; there the name settles it.
    """
    ids = own_ids(seen.backend)
    if seen.adopts:
        return Lookup(None, await identity.domain_named(seen.domain_name))
    if not seen.terminating and seen.stored(DOMAIN_READY) is None:
        if seen.wanted_objects is None:
            return Lookup(None, None)
        named = await identity.domain_named(seen.domain_name)
        return Lookup(named if named is not None and named.id in ids else None, named)
    own = None
    for id in ids:
        own = own or await identity.domain(id)
    if seen.terminating or (own is not None and own.name == seen.domain_name):
        return Lookup(own, own)
    return Lookup(own, await identity.domain_named(seen.domain_name))


# --- the directory


async def _target(world: World, backend: KeystoneIdentityBackend, materials: Materials) -> Target | Directory | None:
    """Whom to ask, or what is known without asking; a terminating backend is not probed."""
    ldap = backend.spec.ldap
    if ldap is None or backend.metadata.deletion_timestamp:
        return None
    found = credentials(ldap, materials)
    if isinstance(found, Fault):
        return Directory("Unknown", "ProbeNotPossible", found.message)
    ca = materials.secrets.get(ldap.tls.ca_bundle_secret_ref.name) if ldap.tls else None
    target = target_of(ldap, backend.spec.extra_options or {}, found, (ca or {}).get("ca.crt"))
    addresses, asked = await _addresses(world, target), (backend.metadata.annotations or {}).get(PROBE_AT, "")
    return replace(target, addresses=addresses, asked=asked) if addresses or asked else target


async def _addresses(world: World, target: Target) -> tuple[tuple[str, str], ...]:
    """What Service names mean in one-machine mode."""
    hosts = dict.fromkeys(urlsplit(url).hostname or "" for url in target.urls)
    pairs = [(host, await world.http.address(host)) for host in hosts]
    return tuple((host, address) for host, address in pairs if address)
