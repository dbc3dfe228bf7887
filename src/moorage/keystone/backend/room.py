"""The controller of KeystoneIdentityBackend: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. Source: spec/keystone.md 4.6, and a watch on Deployments and
Secrets besides, so that a finished rollout or a changed password is seen at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moorage.core.meta import JsonObject, Key, key_of
from moorage.core.outcome import Outcome
from moorage.keystone.addresses import SAML_SUFFIX
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS, SECRETS
from moorage.runtime.projection import rolled_out
from moorage.runtime.room import Caches, Index, Report, Room, Watch, by_index, declared_change

from . import metrics
from .apply import apply
from .aside import BY_KEYSTONE
from .decide import decide
from .federation import METADATA_SUFFIX, PAIR_SUFFIX
from .observe import USABLE, observe
from .observe_rivals import BY_DOMAIN, domain_of
from .render import VARIANTS
from .report import report
from .seen import Plan, Seen
from .types import FINALIZER, KIND, READY

BY_SECRET: Final = "backend-by-secret"  # noqa: S105  the name of an index
BY_ADMIN_SECRET: Final = "keystone-by-admin-secret"  # noqa: S105  the name of an index


def _own_name(obj: JsonObject) -> str:
    return str(key_of(obj))


def _keystone_of_deployment(deployment: JsonObject) -> str:
    """The Deployment has the name of its Keystone; the one that answers SAML has a suffix."""
    return _own_name(deployment).removesuffix(SAML_SUFFIX)


def _keystone_of(backend: JsonObject) -> Iterable[str]:
    yield f"{backend['metadata'].get('namespace', '')}/{backend['spec']['keystoneRef']['name']}"


def _secrets_of(backend: JsonObject) -> Iterable[str]:
    """Secrets whose change matters to it, read from the object as it stands: each of our own writes asks anew, and a parse would
    cost more than the rest of taking it in. What this version cannot read names none: its own pass tells, and the others go on.
    """
    spec, type_ = backend["spec"], str(backend["spec"].get("type"))
    block = spec.get(type_.lower()) if type_ in VARIANTS else None
    if not isinstance(block, dict):
        return
    keystone, namespace = spec["keystoneRef"]["name"], backend["metadata"].get("namespace", "")
    names = list(_references(block))
    if type_ == "SAML":
        names += [f"{keystone}{PAIR_SUFFIX}", f"{keystone}{METADATA_SUFFIX}"]
    yield from (f"{namespace}/{name}" for name in names)


def _references(block: JsonObject) -> Iterator[str]:
    """Every `...SecretRef` of a type's block, at any depth."""
    for field, value in block.items():
        if isinstance(value, dict):
            if field.endswith("SecretRef") or field == "secretRef":
                yield value["name"]
            else:
                yield from _references(value)


def _admin_secret_of(keystone: JsonObject) -> Iterable[str]:
    name = keystone["spec"]["bootstrap"]["adminPasswordSecretRef"]["name"]
    yield f"{keystone['metadata'].get('namespace', '')}/{name}"


_REFERRING = by_index(KIND.resource, BY_SECRET, _own_name)
_ATTACHED = by_index(KIND.resource, BY_KEYSTONE, _own_name)
_OF_TWIN = by_index(KIND.resource, BY_KEYSTONE, _keystone_of_deployment)


def _rolled(deployment: JsonObject, caches: Caches) -> Iterable[Key]:
    """Backends of the Keystone that a Deployment belongs to; a Keystone may itself be called `x-saml`."""
    return {*_ATTACHED(deployment, caches), *_OF_TWIN(deployment, caches)}


def _by_secret(secret: JsonObject, caches: Caches) -> Iterable[Key]:
    """Backends that name the Secret, and those of a Keystone whose administrator's password it holds."""
    yield from _REFERRING(secret, caches)
    for keystone in caches.list(KEYSTONE.resource, index=BY_ADMIN_SECRET, value=_own_name(secret)):
        yield from _ATTACHED(keystone, caches)


def _keystone_changed(old: JsonObject | None, new: JsonObject | None) -> bool:
    """What a pass reads of a Keystone: its declaration, and whether its API can be asked. While pods roll it says much else, several times."""
    return old is None or new is None or declared_change(old, new) or _answers(old) != _answers(new)


def _answers(keystone: JsonObject) -> list[tuple[object, ...]]:
    stored = (keystone.get("status") or {}).get("conditions") or ()
    return [(item["type"], item["status"], item.get("message")) for item in stored if item["type"] in USABLE]


def _deployment_changed(old: JsonObject | None, new: JsonObject | None) -> bool:
    """What a pass reads of a Deployment: what its pods mount, and whether all run so; each look costs Keystone some requests, the counts between none."""
    return old is None or new is None or _runs(old) != _runs(new)


def _runs(deployment: JsonObject) -> tuple[object, ...]:
    spec = deployment["spec"]
    return spec.get("replicas"), spec["template"]["spec"].get("volumes"), rolled_out(deployment)


def _reported(seen: Seen, outcome: Outcome) -> Report:
    """The report, and the same in numbers."""
    said = report(seen, outcome)
    metrics.ready(seen.backend.key, any(item.type == READY and item.is_true for item in said.conditions))
    metrics.certificate(seen.backend.key, seen.aside.sp_ends)
    return said


ROOM: Final[Room[Seen, Plan]] = Room(
    name="keystoneidentitybackend",
    kind=KIND,
    finalizer=FINALIZER,
    observe=observe,
    decide=decide,
    apply=apply,
    report=_reported,
    watches=(
        Watch(KEYSTONE.resource, _ATTACHED, _keystone_changed),
        Watch(DEPLOYMENTS, _rolled, _deployment_changed),
        Watch(SECRETS, _by_secret),
    ),
    indices=(
        Index(KIND.resource, BY_KEYSTONE, _keystone_of, declared=True),
        Index(KIND.resource, BY_DOMAIN, domain_of, declared=True),
        Index(KIND.resource, BY_SECRET, _secrets_of, declared=True),
        Index(KEYSTONE.resource, BY_ADMIN_SECRET, _admin_secret_of, declared=True),
    ),
)
