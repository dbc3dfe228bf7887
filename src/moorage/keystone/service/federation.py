"""The projection of all federated backends into one sidecar.

Enters: the backends that name a Keystone, with what they are made from, and what is the Keystone's own. Leaves: the files of the sidecar,
where they are mounted, what keystone.conf must say, and for each backend that is left out the reason. One bad backend never harms a
sibling; the order of the backends never matters. Source: spec/keystone.md 3.3 to 3.6, 4.5, 7 (S1, S2, C5, C8, C9, C10); decisions, Keystone 9, 10, 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from moorage.keystone.backend import federation as backend_federation
from moorage.keystone.backend import saml
from moorage.keystone.backend.authorities import certificates
from moorage.keystone.backend.federation import Part, base_of, provider_name, stripped
from moorage.keystone.backend.materials import Fault
from moorage.keystone.backend.render import Projected, project

from . import redirect
from .collisions import collisions, ranked
from .conf import FederationFacts
from .domains import BUDGET, Left
from .httpd import httpd_conf
from .proxy import Assembly, proxy_conf
from .seen import Attached
from .sp_metadata import SpMetadata, sp_metadata

CONFIG_VOLUME: Final = "federation-proxy-config"
METADATA_VOLUME: Final = backend_federation.METADATA_VOLUME
MELLON_VOLUME: Final = backend_federation.MELLON_VOLUME
CONFIG_KEY: Final = "proxy.conf"
BASE_KEY: Final = "httpd-base.conf"
AUTHORITIES_KEY: Final = "ca-bundle.pem"

Served: TypeAlias = tuple[str, Projected]
"""A backend's name and what it projects."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A file of the sidecar: a data key of the federation Secret, the volume that carries it, its path below the sidecar's folder."""

    volume: str
    key: str
    path: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What is the Keystone's own.

    Args:
        base: public URL without `/v3`.
        image: the sidecar's image is declared.
        running: a sidecar runs, declared or not.
        passphrase: of session cookies; None while its Secret does not exist, a Fault when the Secret cannot be used.
        next_certificate: PEM of the key pair that a rollover has staged, b"" without one.
    """

    base: str
    image: bool
    dashboards: tuple[str, ...] = ()
    passphrase: str | Fault | None = field(default=None, repr=False)
    next_certificate: bytes = b""
    running: bool = False


@dataclass(frozen=True, slots=True)
class Federation:
    """What is projected.

    Args:
        files: data of the federation Secret by key; empty: no sidecar. It may be there with nobody attached, see `project_all`.
        attached: names of the backends whose files these are.
        total: federated backends that are not being deleted.
        facts: what keystone.conf says; None without a sidecar.
        needs_passphrase: a backend waits for the Secret of the passphrase.
        needs_pair: a SAML backend wants the generated key pair.
        sp: the service provider's metadata, as soon as its key pair and the address are there.
    """

    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    mounts: tuple[Mount, ...] = ()
    attached: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    total: int = 0
    facts: FederationFacts | None = None
    needs_passphrase: bool = False
    needs_pair: bool = False
    sp: SpMetadata | None = None

    @property
    def saml(self) -> bool:
        """Whether a SAML backend is served: sessions live in one process tree (decisions, Keystone 11, 22)."""
        return any(mount.volume == MELLON_VOLUME for mount in self.mounts)


def project_all(backends: Iterable[Attached], ground: Ground) -> Federation:
    """The projection of these backends, by name; terminating ones are left out silently.

    The sidecar stays, with nothing but denials, as long as a backend may still be open in Keystone: without it, its paths would be reachable
    with forged claims until the backend's own controller has closed them (S1). So it does when its image is no longer declared.
    """
    everyone = list(backends)
    items = sorted((item for item in everyone if item.backend.spec.type != "LDAP"), key=lambda item: item.name)
    alive = [item for item in items if not item.terminating]
    order = ranked(everyone) if alive else []
    clashes = collisions(order)
    served, left = _served(alive, clashes, ground)
    first = [item for item in alive if item.name not in clashes]
    sp = _sp(first, ground)
    frame = _Frame(ground, frozenset().union(*(stripped(item.backend) for item in items)), sp)
    kept, beyond = _fitting(served, frame, [item.name for item in order])
    stays = (ground.image or ground.running) and any(map(_open, items))
    files = frame.files(kept) if kept or stays else {}
    parts = [found.part for _, found in kept if found.part]
    return Federation(
        files=files,
        mounts=tuple(_mounts(kept, files)),
        attached=tuple(name for name, _ in kept),
        left=tuple(sorted([*left, *beyond], key=lambda item: item.name)),
        total=len(alive),
        facts=_facts(parts) if files else None,
        needs_passphrase=ground.passphrase is None and any(item.backend.spec.oidc for item in alive),
        needs_pair=any(_generates(item) for item in first),
        sp=sp,
    )


def _served(alive: Sequence[Attached], clashes: Mapping[str, str], ground: Ground) -> tuple[list[Served], list[Left]]:
    """Those that can be projected, and why the others cannot."""
    served: list[Served] = []
    left: list[Left] = []
    for item in alive:
        found = _one(item, clashes, ground)
        if isinstance(found, Left):
            left.append(found)
        else:
            served.append((item.name, found))
    return served, left


def _one(item: Attached, clashes: Mapping[str, str], ground: Ground) -> Projected | Left:
    if why := clashes.get(item.name):
        return Left(item.name, why, fault=True)
    if not item.domain_ready:
        return Left(item.name, f'domain "{item.domain}" is not ready')
    if not ground.image:
        why = "spec.federation.proxyImage of the Keystone is not set"
        if ground.running and _open(item):
            why += "; the sidecar stays until the identity provider is closed"
        return Left(item.name, why, reason="FederationProxyImageMissing")
    found = project(item.backend, item.materials)
    if isinstance(found, Projected) and item.backend.spec.oidc and not isinstance(ground.passphrase, str):
        found = ground.passphrase or Fault(
            "PassphraseUnavailable", "the Secret of the session passphrase does not exist yet"
        )
        return Left(item.name, found.message, fault=ground.passphrase is not None, reason=found.reason)
    if isinstance(found, Fault):
        return Left(item.name, found.message, fault=not found.pending, reason=found.reason)
    return found


def _open(item: Attached) -> bool:
    """Whether Keystone may let people in through this backend: it did, and nobody has said since that it does not.

    One that leaves says so as soon as its identity provider is disabled, and from then on needs no sidecar: the pods roll once, not twice.
    """
    found = {condition.type: condition for condition in item.backend.status.conditions}
    objects = found.get("FederationObjectsReady")
    if item.terminating and objects is not None and objects.reason == "IdentityProviderDisabled":
        return False
    said = (objects, found.get("ConfigProjected"))
    return any(condition is not None and condition.status == "True" for condition in said)


def _generates(item: Attached) -> bool:
    declared = item.backend.spec.saml
    return declared is not None and (declared.sp is None or declared.sp.certificate_secret_ref is None)


def _sp(first: Sequence[Attached], ground: Ground) -> SpMetadata | None:
    """Of the one SAML backend that may be served: it takes the key pair and the address, not the provider's metadata (C5)."""
    found = next((item for item in first if item.backend.spec.saml), None)
    base = base_of(ground.base)
    if found is None or base is None:
        return None
    backend = found.backend
    pair = saml.pair_of(backend, found.materials)
    if isinstance(pair, Fault) or backend.spec.saml is None:
        return None
    staged = (ground.next_certificate,) if ground.next_certificate else ()
    return sp_metadata(base.url, provider_name(backend), backend.spec.saml.protocol_id, (pair.certificate, *staged))


def _facts(parts: Sequence[Part]) -> FederationFacts:
    """SAML's attribute wins where both types share a protocol; the protocol in Keystone has its own in any case."""
    oidc = {
        name: part.remote_id_attribute for part in parts if part.type == "OIDC" for name in ("openid", part.protocol)
    }
    return FederationFacts(
        {**oidc, **{part.protocol: part.remote_id_attribute for part in parts if part.type == "SAML"}}
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """What surrounds the backends' own files."""

    ground: Ground
    headers: frozenset[str]
    sp: SpMetadata | None

    def files(self, served: Sequence[Served]) -> dict[str, bytes]:
        """All data of the federation Secret."""
        parts = tuple(found.part for _, found in served if found.part)
        base = base_of(self.ground.base)
        passphrase = self.ground.passphrase if isinstance(self.ground.passphrase, str) else ""
        assembly = Assembly(parts, self.headers, base, self.ground.dashboards, passphrase)
        files = {key: content for _, found in served for key, content in found.files.items()}
        files |= {CONFIG_KEY: proxy_conf(assembly).encode(), BASE_KEY: httpd_conf(base).encode()}
        if authorities := b"".join(_once(parts)):
            files[AUTHORITIES_KEY] = authorities
        for pair in (part.pair for part in parts if part.pair):
            files |= {"sp-key.pem": pair.key, "sp-cert.pem": pair.certificate}
            files |= {"sp-metadata.xml": self.sp.document} if self.sp else {}
        return files


def _once(parts: Sequence[Part]) -> Iterable[bytes]:
    """Each certificate of all bundles, once."""
    return dict.fromkeys(pem for part in parts if part.authorities for pem in certificates(part.authorities))


def _fitting(served: Sequence[Served], frame: _Frame, order: Sequence[str]) -> tuple[list[Served], list[Left]]:
    """Those that fit into one Secret together, taken in this order and given back by name."""
    kept: list[Served] = []
    left: list[Left] = []
    total = _size(frame.files(())) + (len(frame.sp.document) if frame.sp else 0) + _GLOBALS
    for name, found in sorted(served, key=lambda item: order.index(item[0])):
        if total + _weight(found) > BUDGET:
            why = f"all files of the sidecar together would have more than {BUDGET} bytes; who is served already stays: {_LIGHTER}"
            left.append(Left(name, why, fault=True, reason="TooLarge"))
        else:
            total += _weight(found)
            kept.append((name, found))
    return sorted(kept, key=lambda item: item[0]), left


_LIGHTER: Final = "make caBundleSecretRef or the metadata of a backend smaller, or use another Keystone"
_GLOBALS: Final = 16384
"""Bytes that the directives of a module as a whole take at most."""


def _weight(found: Projected) -> int:
    part = found.part
    shared = len(part.fragment.encode()) + len(part.alone.encode()) + len(part.authorities) if part else 0
    pair = len(part.pair.key) + len(part.pair.certificate) if part and part.pair else 0
    login = redirect.weight(part.remote_id) if part else 0
    return _size(found.files) + shared + pair + login


def _size(files: Mapping[str, bytes]) -> int:
    return sum(map(len, files.values()))


def _mounts(served: Sequence[Served], files: Mapping[str, bytes]) -> Iterator[Mount]:
    """Every file that the sidecar reads; the digests are read by controllers only."""
    own = {BASE_KEY: (CONFIG_VOLUME, BASE_KEY), CONFIG_KEY: (CONFIG_VOLUME, f"conf.d/{CONFIG_KEY}")}
    own |= {AUTHORITIES_KEY: (METADATA_VOLUME, f"metadata/{AUTHORITIES_KEY}")}
    own |= {key: (MELLON_VOLUME, f"mellon/{key}") for key in ("sp-key.pem", "sp-cert.pem", "sp-metadata.xml")}
    for part in (found.part for _, found in served if found.part):
        volume, folder = (METADATA_VOLUME, "metadata") if part.type == "OIDC" else (MELLON_VOLUME, "mellon")
        own |= {key: (volume, f"{folder}/{name}") for key, name in part.documents.items()}
    yield from (Mount(volume, key, path) for key, (volume, path) in sorted(own.items()) if key in files)
