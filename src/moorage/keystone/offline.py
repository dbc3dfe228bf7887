"""What the controllers would project from files, without a server: for `moorage render` and `moorage diff`.

Enters: admitted Keystones and backends, the Secrets and ConfigMaps beside them, files that stand for fetched documents, the time. Leaves:
every child that does not hold random keys, the files of projected bundles, and each backend that would be skipped with its reason. Domains
are taken as ready: no server is asked. Same input, same bytes. Contract: spec/cli.md, `moorage render`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from moorage.core.conditions import true
from moorage.core.meta import JsonObject, Key, key_of
from moorage.keystone import placeholders
from moorage.keystone.backend.document_memory import Source
from moorage.keystone.backend.documents import source_of
from moorage.keystone.backend.federation import PAIR_SUFFIX
from moorage.keystone.backend.materials import Data, Document, Fault, Materials
from moorage.keystone.backend.render import secret_names
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.backend.types import KeystoneIdentityBackend
from moorage.keystone.service import federated_pods, manifests
from moorage.keystone.service.conf import ConfigFault
from moorage.keystone.service.domains import data_of
from moorage.keystone.service.federation_secrets import PASSPHRASE_SECRET, STAGED_SECRET
from moorage.keystone.service.network import Serving, network_policy
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


@dataclass(frozen=True, slots=True)
class Beside:
    """What resources refer to: Secrets and ConfigMaps by kind and key, documents by URL.

    Args:
        now: a document that has ended by then is refused.
    """

    objects: Mapping[tuple[str, Key], JsonObject] = field(repr=False)
    documents: Mapping[str, bytes] = field(repr=False)
    now: datetime

    def secret(self, namespace: str, name: str | None) -> JsonObject | None:
        """A Secret, None when it is not there."""
        return self.objects.get(("Secret", Key(namespace, name))) if name else None


def render(
    objects: Sequence[JsonObject],
    others: Iterable[JsonObject],
    documents: Mapping[str, bytes] | None = None,
    now: datetime | None = None,
) -> Rendered:
    """Everything that these objects call for.

    Args:
        objects: admitted Keystones and KeystoneIdentityBackends.
        others: Secrets and ConfigMaps that they may refer to.
        documents: content of what the operator would fetch, by URL.
        now: for documents that end; the present by default.
    """
    held = {(obj["kind"], _key(obj)): _as_stored(obj) for obj in others}
    keystones = {_key(obj): obj for obj in objects if obj["kind"] == KEYSTONE.kind}
    for key in keystones:
        held = {("Secret", Key(key.namespace, name)): obj for name, obj in placeholders.secrets(key).items()} | held
    beside = Beside(held, documents or {}, now or datetime.now(UTC))
    backends = [obj for obj in objects if obj["kind"] == BACKEND.kind]
    children: list[JsonObject] = []
    files: dict[tuple[str, str, str], bytes] = {}
    skipped = [_orphan(obj) for obj in backends if _parent(obj) not in keystones]
    for key, obj in sorted(keystones.items()):
        keystone = KEYSTONE.parse(_identified(obj))
        inputs = _inputs(keystone, [item for item in backends if _parent(item) == key], beside)
        found = wanted(inputs)
        skipped += [Skipped(BACKEND.kind, Key(key.namespace, left.name), left.why) for left in found.left]
        faults = list(_faults(found))
        skipped += [Skipped(KEYSTONE.kind, key, why) for why in faults]
        if not faults:
            children += map(_without_pair, _children(inputs, found))
        for bundle in (found.config, found.domain_files, found.federation_files):
            if isinstance(bundle, Bundle):
                data = placeholders.without_pair(bundle.data)
                files |= {(key.namespace, bundle.base, name): content for name, content in data.items()}
    return Rendered(tuple(children), files, tuple(skipped))


def _without_pair(child: JsonObject) -> JsonObject:
    if child["kind"] != "Secret":
        return child
    plain = placeholders.without_pair({name: base64.b64decode(value) for name, value in child["data"].items()})
    return {**child, "data": {name: base64.b64encode(plain[name]).decode() for name in child["data"]}}


def _faults(found: Wanted) -> Iterator[str]:
    for value in (found.connection, found.password, found.config):
        if isinstance(value, SecretFault | ConfigFault):
            yield str(value)


def _children(inputs: Inputs, found: Wanted) -> Iterator[JsonObject]:
    keystone, sidecar = inputs.keystone, found.sidecar
    for ensured in (*base_children(keystone, found), *workload(keystone, found)):
        yield ensured.manifest
    for projected in bundles(keystone, found):
        yield projected.manifest
    if found.federation.sp is not None:
        yield manifests.sp_metadata(keystone, found.federation.sp)
    yield manifests.db_sync(keystone, found.mounts.config)
    serving = Serving((federated_pods.PORT,), sidecar.elsewhere) if sidecar else Serving()
    for manifest in (
        network_policy(keystone, inputs.backends, serving),
        manifests.trust_flush(keystone, found.mounts.config),
    ):
        if manifest is not None:
            yield manifest


def _inputs(keystone: Keystone, backends: Iterable[JsonObject], beside: Beside) -> Inputs:
    namespace, name, spec = keystone.metadata.namespace, keystone.metadata.name, keystone.spec
    policy = spec.policy_overrides.config_map_ref if spec.policy_overrides else None
    return Inputs(
        keystone=keystone,
        database=beside.secret(namespace, spec.database.secret_ref.name if spec.database.secret_ref else None),
        admin=beside.secret(namespace, spec.bootstrap.admin_password_secret_ref.name),
        policy=beside.objects.get(("ConfigMap", Key(namespace, policy.name))) if policy else None,
        backends=tuple(_attached(item, keystone.public_base, beside) for item in backends),
        passphrase=beside.secret(namespace, name + PASSPHRASE_SECRET),
        pair=beside.secret(namespace, name + PAIR_SUFFIX),
        staged=beside.secret(namespace, name + STAGED_SECRET),
    )


def _attached(obj: JsonObject, base: str, beside: Beside) -> Attached:
    ready = {**true("DomainReady", "DomainProvisioned").to_wire(), "lastTransitionTime": "1970-01-01T00:00:00Z"}
    backend = BACKEND.parse({**_identified(obj), "status": {"conditions": [ready]}})
    space = backend.metadata.namespace
    secrets = {name: data_of(beside.secret(space, name)) for name in secret_names(backend)}
    return Attached(backend, Materials(secrets, base, _document(backend, secrets, beside)))


def _document(
    backend: KeystoneIdentityBackend, secrets: Mapping[str, Data | None], beside: Beside
) -> Document | Fault | None:
    """What is declared, or the file that stands for what the operator would fetch."""
    source = source_of(backend, secrets, beside.now)
    if not isinstance(source, Source):
        return source
    content = beside.documents.get(source.url)
    if content is None:
        why = f"the operator would fetch {source.url}: give it by --document {source.url}=FILE"
        return Fault("MetadataUnavailable", why)
    return source.read(content, beside.now)


def _orphan(obj: JsonObject) -> Skipped:
    name = obj["spec"]["keystoneRef"]["name"]
    return Skipped(BACKEND.kind, _key(obj), f'Keystone "{name}" is not among the files, or was refused')


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
