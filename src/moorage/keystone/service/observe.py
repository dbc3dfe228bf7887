"""Everything a pass over a Keystone reads: the shared cache, and once in a while the Identity API.

Enters: the world and a key. Leaves: the snapshot. It writes nothing, neither to the API server nor to Keystone.
Source: spec/keystone.md 1.2, 4.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import aiohttp

from moorage.core import conditions
from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.keystone.addresses import SAML_SUFFIX
from moorage.keystone.backend.federation import METADATA_SUFFIX, PAIR_SUFFIX
from moorage.keystone.backend.observe_materials import materials_of
from moorage.keystone.backend.precedence import precedence
from moorage.keystone.backend.render import secret_names
from moorage.keystone.backend.saml import pair_secret
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.key_pair import CERTIFICATE, not_after
from moorage.kube.errors import Forbidden
from moorage.runtime.projection import rolled_out
from moorage.runtime.room import Caches, Index, Watch, by_index, owned
from moorage.runtime.world import World

from . import federated_pods, metrics
from .domains import data_of
from .federation_secrets import PASSPHRASE_SECRET, STAGED_SECRET
from .keys import rotated_at
from .plan import Probe
from .pods import selector
from .proxy import ABSENT
from .render import wanted
from .seen import (
    CONFIG_MAP,
    CRON_JOB,
    DEPLOYMENT,
    JOB,
    NETWORK_POLICY,
    OWNED,
    PDB,
    POD,
    PVC,
    SECRET,
    SERVICE,
    Attached,
    Health,
    Inputs,
    Seen,
    job_state,
)
from .troubles import troubles
from .types import KIND, Keystone

TIMEOUT: Final = 10.0
"""Seconds that one look at the Identity API may take."""
BACKENDS_OF: Final = "keystone-service/backends-of"
BACKENDS_WITH: Final = "keystone-service/backends-with-secret"
WITH_SECRET: Final = "keystone-service/with-secret"  # noqa: S105 - the name of an index
WITH_POLICY: Final = "keystone-service/with-policy"

_SUFFIXES: Final[tuple[tuple[ResourceType, tuple[str, ...]], ...]] = (
    (
        SECRET,
        (
            "-db-connection", "-bootstrap", "-fernet-keys", "-fernet-keys-rotation",
            "-credential-keys", "-credential-keys-rotation",
            PASSPHRASE_SECRET, PAIR_SUFFIX, STAGED_SECRET, METADATA_SUFFIX,
        ),
    ),
    (JOB, ("-db-sync", "-bootstrap", "-credential-migrate")),
    (CRON_JOB, ("-trust-flush",)),
    (PVC, ("-data",)),
    (DEPLOYMENT, ("", SAML_SUFFIX)),
    (SERVICE, ("", SAML_SUFFIX)),
    (PDB, ("",)),
    (NETWORK_POLICY, ("",)),
)  # fmt: skip
"""Names of the children that are looked at, as what follows the name of the Keystone."""


@dataclass
class Memory:
    """What is remembered between passes: the last answer of each API, by uid of its Keystone. Losing it costs one look."""

    health: dict[str, Health] = field(default_factory=dict)
    names: dict[Key, str] = field(default_factory=dict)

    def forget(self, key: Key) -> None:
        """The Keystone of this key is gone."""
        self.health.pop(self.names.pop(key, ""), None)


async def observe(memory: Memory, world: World, key: Key) -> Seen | None:
    """The snapshot of one Keystone, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        memory.forget(key)
        metrics.forget(key)
        return None
    keystone = KIND.parse(obj)
    memory.names[key] = keystone.metadata.uid
    inputs, live = _inputs(world, keystone), _live(world, key)
    seen = Seen(
        inputs=inputs,
        wanted=wanted(inputs),
        now=world.now(),
        stored=conditions.from_wire((obj.get("status") or {}).get("conditions")),
        live=live,
        health=memory.health.get(keystone.metadata.uid),
        troubles=await _troubles(world, key, inputs) if _struggles(live) else {},
    )
    _measure(seen)
    return seen


def _inputs(world: World, keystone: Keystone) -> Inputs:
    spec, namespace = keystone.spec, keystone.metadata.namespace
    overrides = spec.policy_overrides
    policy = overrides.config_map_ref.name if overrides and overrides.config_map_ref else None
    found = world.cache.list(BACKEND.resource, index=BACKENDS_OF, value=f"{namespace}/{keystone.metadata.name}")
    return Inputs(
        keystone=keystone,
        database=_secret(world, namespace, spec.database.secret_ref.name if spec.database.secret_ref else None),
        admin=_secret(world, namespace, spec.bootstrap.admin_password_secret_ref.name),
        policy=world.cache.get(CONFIG_MAP, Key(namespace, policy)) if policy else None,
        backends=tuple(_attached(world, item) for item in found),
        passphrase=_secret(world, namespace, keystone.metadata.name + PASSPHRASE_SECRET),
        pair=_secret(world, namespace, keystone.metadata.name + PAIR_SUFFIX),
        staged=_secret(world, namespace, keystone.metadata.name + STAGED_SECRET),
        running=federated_pods.image_of(world.cache.get(DEPLOYMENT, keystone.key)),
    )


def _attached(world: World, obj: JsonObject) -> Attached:
    backend = BACKEND.parse(obj)
    return Attached(backend, materials_of(world, backend))


def _secret(world: World, namespace: str, name: str | None) -> JsonObject | None:
    return world.cache.get(SECRET, Key(namespace, name)) if name else None


def _live(world: World, key: Key) -> dict[tuple[str, str], JsonObject]:
    found = {}
    for kind, suffixes in _SUFFIXES:
        for suffix in suffixes:
            obj = world.cache.get(kind, Key(key.namespace, key.name + suffix))
            if obj is not None:
                found[kind.kind, key.name + suffix] = obj
    return found


def _struggles(live: Mapping[tuple[str, str], JsonObject]) -> bool:
    """Whether something is not as it shall be yet: only then are pods asked for."""
    return any(
        (kind == JOB.kind and job_state(obj) in ("running", "failed"))
        or (kind == DEPLOYMENT.kind and not rolled_out(obj))
        for (kind, _), obj in live.items()
    )


async def _troubles(world: World, key: Key, inputs: Inputs) -> dict[str, str]:
    """What our pods say; nothing when we may not read them."""
    chosen = ",".join(f"{name}={value}" for name, value in selector(key.name).items())
    try:
        found = await world.client.list(POD, key.namespace, labels=chosen)
    except Forbidden:
        return {}
    secrets = [data_of(secret) or {} for secret in (inputs.database, inputs.admin, inputs.passphrase)]
    secrets += [data or {} for item in inputs.backends for data in item.materials.secrets.values()]
    held = [data[key] for data in secrets for key in ("password", "passphrase", "clientSecret") if key in data]
    return troubles(found.items, [value.decode(errors="replace").rstrip("\r\n") for value in held])


def _measure(seen: Seen) -> None:
    _measure_pair(seen)
    for key_type in ("fernet", "credential"):
        live = seen.child(SECRET, f"{seen.name}-{key_type}-keys")
        if live is not None:
            metrics.age(seen.key, key_type, rotated_at(live), seen.now)
    job, before = seen.child(JOB, f"{seen.name}-db-sync"), conditions.find(seen.stored, "DatabaseReady")
    state = job_state(job)
    if job is None or state not in ("complete", "failed"):
        return
    if state == "complete" and before is not None and not before.is_true:
        metrics.db_sync_ended(seen.key, "success", _seconds(job))
    if state == "failed" and (before is None or before.reason != "DBSyncFailed"):
        metrics.db_sync_ended(seen.key, "failure", None)


def _measure_pair(seen: Seen) -> None:
    """When the certificate of the service provider ends: the consumed one, else ours while a SAML backend uses it."""
    found = [item for item in seen.inputs.backends if item.backend.spec.type == "SAML" and not item.terminating]
    first = min(found, key=lambda item: precedence(item.backend), default=None)
    data = (first.materials.secrets.get(pair_secret(first.backend)) or {}) if first else {}
    metrics.certificate_ends(seen.key, not_after(data.get(CERTIFICATE, b"")) if first else None)


def _seconds(job: JsonObject) -> float | None:
    status = job.get("status") or {}
    if not status.get("startTime") or not status.get("completionTime"):
        return None
    start, end = (
        datetime.fromisoformat(status[name].replace("Z", "+00:00")) for name in ("startTime", "completionTime")
    )
    return (end - start).total_seconds()


async def probe(world: World, ask: Probe) -> Health:
    """Two looks at the Identity API, at most 10 s each. Sentences are the same as long as the state is.

    `GET /v3` needs no database. The second question is about an identity provider that nobody has: a 404 that the database gave. It
    needs no token, and Keystone logs nothing about it.
    """
    session = world.http.get("keystone-health")
    ok, reason, message = await _look(session, ask.url)
    if ok and not await _finds_nothing(session, ask.url.removesuffix("/v3") + ABSENT):
        reason = "DatabaseUnavailable"
        ok, message = False, f"Keystone answers, but nothing that needs its database ({ask.database})"
    return Health(ok, reason, message, world.now())


async def _finds_nothing(session: aiohttp.ClientSession, url: str) -> bool:
    """Whether a question that needs the database is answered, be it with a refusal. Without one Keystone drops the connection or hangs."""
    try:
        async with session.get(url, timeout=aiohttp.ClientTimeout(total=TIMEOUT), allow_redirects=False) as answer:
            return answer.status < 500
    except (TimeoutError, aiohttp.ClientError, OSError):
        return False


async def _look(session: aiohttp.ClientSession, url: str) -> tuple[bool, str, str]:
    limit = aiohttp.ClientTimeout(total=TIMEOUT)
    try:
        async with session.get(url, timeout=limit, allow_redirects=False) as answer:
            status = answer.status
    except TimeoutError:
        return False, "HealthCheckTimeout", f"GET {url} was not answered within {TIMEOUT:.0f} s"
    except aiohttp.ClientConnectorDNSError:
        return False, "EndpointNotReady", f"GET {url}: the name does not resolve yet"
    except aiohttp.ClientConnectorError:
        return False, "ConnectionFailed", f"GET {url}: no connection"
    except (aiohttp.ClientError, OSError) as error:
        return False, "HealthCheckFailed", f"GET {url}: {type(error).__name__}"
    if status in (200, 300):
        return True, "APIHealthy", ""
    return False, "APIUnhealthy", f"GET {url} answered {status}"


# --- what wakes a Keystone


def _by_secret(obj: JsonObject, caches: Caches) -> Iterable[Key]:
    """Owners of a Secret, Keystones that name it, and Keystones of backends that name it."""
    yield from owned(KIND)(obj, caches)
    yield from by_index(KIND.resource, WITH_SECRET, _full_name)(obj, caches)
    for backend in caches.list(BACKEND.resource, index=BACKENDS_WITH, value=_full_name(obj)):
        yield from _keystone_of(backend, caches)


def _by_config_map(obj: JsonObject, caches: Caches) -> Iterable[Key]:
    yield from owned(KIND)(obj, caches)
    yield from by_index(KIND.resource, WITH_POLICY, _full_name)(obj, caches)


def _keystone_of(obj: JsonObject, _caches: Caches) -> Iterable[Key]:
    return (Key(obj["metadata"].get("namespace", ""), obj["spec"]["keystoneRef"]["name"]),)


def _full_name(obj: JsonObject) -> str:
    return str(key_of(obj))


def _names(obj: JsonObject, *paths: tuple[str, ...]) -> Iterable[str]:
    """Full names of the objects that an object names at these paths of its spec."""
    for path in paths:
        node = obj["spec"]
        for part in path:
            node = node.get(part) or {}
        if node:
            yield f"{obj['metadata'].get('namespace', '')}/{node}"


def _secrets_of(obj: JsonObject) -> Iterable[str]:
    return _names(obj, ("database", "secretRef", "name"), ("bootstrap", "adminPasswordSecretRef", "name"))


def _policy_of(obj: JsonObject) -> Iterable[str]:
    return _names(obj, ("policyOverrides", "configMapRef", "name"))


def _backend_secrets(obj: JsonObject) -> Iterable[str]:
    namespace = obj["metadata"].get("namespace", "")
    try:
        names = secret_names(BACKEND.parse(obj))
    except ValueError:  # stored under another schema: nothing is projected from it either
        return ()
    return [f"{namespace}/{name}" for name in names]


def _parent(obj: JsonObject) -> Iterable[str]:
    return _names(obj, ("keystoneRef", "name"))


INDICES: Final = (
    Index(KIND.resource, WITH_SECRET, _secrets_of),
    Index(KIND.resource, WITH_POLICY, _policy_of),
    Index(BACKEND.resource, BACKENDS_OF, _parent),
    Index(BACKEND.resource, BACKENDS_WITH, _backend_secrets),
)
WATCHES: Final = (
    Watch(SECRET, _by_secret),
    Watch(CONFIG_MAP, _by_config_map),
    *(Watch(kind, owned(KIND)) for kind in OWNED if kind not in (SECRET, CONFIG_MAP)),
    Watch(BACKEND.resource, _keystone_of),
)
