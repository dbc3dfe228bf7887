"""What the controllers would project from files, without a server: for `moorage render` and `moorage diff`.

Enters: admitted Keystones and backends, and the Secrets and ConfigMaps beside them. Leaves: every child that does not hold random
keys, the files of projected bundles, and each backend that would be skipped with its reason. Domains are taken as ready: no
server is asked. Same input, same bytes. Contract: spec/cli.md, `moorage render`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from moorage.core.conditions import true
from moorage.core.meta import JsonObject, Key, key_of
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.render import secret_names
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service import manifests
from moorage.keystone.service.conf import ConfigFault
from moorage.keystone.service.domains import data_of
from moorage.keystone.service.network import network_policy
from moorage.keystone.service.render import Wanted, base_children, bundles, wanted, workload
from moorage.keystone.service.seen import Attached, Inputs, SecretFault
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.keystone.service.types import Keystone
from moorage.render.bundle import Bundle


@dataclass(frozen=True, slots=True)
class Skipped:
    """A resource from which nothing is projected, and why."""

    kind: str
    key: Key
    why: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """Children as manifests, files of bundles as (namespace, base, key) to content, and what was skipped."""

    children: tuple[JsonObject, ...] = field(repr=False)
    files: Mapping[tuple[str, str, str], bytes] = field(repr=False)
    skipped: tuple[Skipped, ...]


def render(objects: Sequence[JsonObject], others: Iterable[JsonObject]) -> Rendered:
    """Everything that these objects call for.

    Args:
        objects: admitted Keystones and KeystoneIdentityBackends.
        others: Secrets and ConfigMaps that they may refer to.
    """
    beside = {(obj["kind"], _key(obj)): _as_stored(obj) for obj in others}
    keystones = {_key(obj): obj for obj in objects if obj["kind"] == KEYSTONE.kind}
    backends = [obj for obj in objects if obj["kind"] == BACKEND.kind]
    children: list[JsonObject] = []
    files: dict[tuple[str, str, str], bytes] = {}
    skipped = [_orphan(obj) for obj in backends if _parent(obj) not in keystones]
    for key, obj in sorted(keystones.items()):
        mine = [_attached(item, beside) for item in backends if _parent(item) == key]
        inputs = _inputs(KEYSTONE.parse(_identified(obj)), tuple(mine), beside)
        found = wanted(inputs)
        skipped += [Skipped(BACKEND.kind, Key(key.namespace, left.name), left.why) for left in found.domains.left]
        faults = list(_faults(found))
        skipped += [Skipped(KEYSTONE.kind, key, why) for why in faults]
        if not faults:
            children += _children(inputs, found)
        for bundle in (found.config, found.domain_files):
            if isinstance(bundle, Bundle):
                files |= {(key.namespace, bundle.base, name): data for name, data in bundle.data.items()}
    return Rendered(tuple(children), files, tuple(skipped))


def _faults(found: Wanted) -> Iterator[str]:
    for value in (found.connection, found.password, found.config):
        if isinstance(value, SecretFault | ConfigFault):
            yield str(value)


def _children(inputs: Inputs, found: Wanted) -> Iterator[JsonObject]:
    keystone = inputs.keystone
    for ensured in (*base_children(keystone, found), *workload(keystone, found)):
        yield ensured.manifest
    for projected in bundles(keystone, found):
        yield projected.manifest
    yield manifests.db_sync(keystone, found.mounts.config)
    for manifest in (
        network_policy(keystone, inputs.backends),
        manifests.trust_flush(keystone, found.mounts.config),
    ):
        if manifest is not None:
            yield manifest


def _inputs(keystone: Keystone, backends: tuple[Attached, ...], beside: Mapping[tuple[str, Key], JsonObject]) -> Inputs:
    namespace, spec = keystone.metadata.namespace, keystone.spec

    def find(kind: str, name: str | None) -> JsonObject | None:
        return beside.get((kind, Key(namespace, name))) if name else None

    policy = spec.policy_overrides.config_map_ref if spec.policy_overrides else None
    return Inputs(
        keystone=keystone,
        database=find("Secret", spec.database.secret_ref.name if spec.database.secret_ref else None),
        admin=find("Secret", spec.bootstrap.admin_password_secret_ref.name),
        policy=find("ConfigMap", policy.name if policy else None),
        backends=backends,
    )


def _attached(obj: JsonObject, beside: Mapping[tuple[str, Key], JsonObject]) -> Attached:
    ready = {**true("DomainReady", "DomainProvisioned").to_wire(), "lastTransitionTime": "1970-01-01T00:00:00Z"}
    backend = BACKEND.parse({**_identified(obj), "status": {"conditions": [ready]}})
    space = backend.metadata.namespace
    secrets = {name: data_of(beside.get(("Secret", Key(space, name)))) for name in secret_names(backend)}
    return Attached(backend, Materials(secrets))


def _orphan(obj: JsonObject) -> Skipped:
    name = obj["spec"]["keystoneRef"]["name"]
    return Skipped(BACKEND.kind, _key(obj), f'Keystone "{name}" is not among the files')


def _parent(obj: JsonObject) -> Key:
    return Key(_key(obj).namespace, obj["spec"]["keystoneRef"]["name"])


def _key(obj: JsonObject) -> Key:
    key = key_of(obj)
    return Key(key.namespace or "default", key.name)


def _identified(obj: JsonObject) -> JsonObject:
    """With the uid that only a server gives, so that owner references have their shape."""
    meta = {"uid": "00000000-0000-0000-0000-000000000000", **obj["metadata"]}
    return {**obj, "metadata": {**meta, "namespace": _key(obj).namespace}}


def _as_stored(obj: JsonObject) -> JsonObject:
    """A Secret as a server stores it: `stringData` moved into `data`."""
    plain = obj.get("stringData") or {}
    data = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
    return {**obj, "data": {**(obj.get("data") or {}), **data}}
