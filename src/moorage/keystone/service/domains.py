"""The projection of all attached backends into one set of domain files.

Enters: the backends that name a Keystone, with their Secrets. Leaves: files, and for each backend that is left out the reason.
One bad backend never harms a sibling; the order of the backends never matters. Source: spec/keystone.md 4.5; decisions, Keystone 6.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from moorage.core.meta import JsonObject
from moorage.keystone.backend.authorities import readable
from moorage.keystone.backend.ldap import CA_SUFFIX, is_proven, is_secured, trusts_the_system
from moorage.keystone.backend.render import Fault, project

from .collisions import collisions, ranked
from .seen import Attached

AUTHORITIES: Final = "authorities.pem"
"""Data key of the authorities of all directories, where they differ; no domain's file is called so."""
BUDGET: Final = 1024 * 1024
"""Bytes of data that one Secret may hold."""


@dataclass(frozen=True, slots=True)
class Left:
    """A backend that is not projected. `fault`: a person must mend it, so an event says so; `reason`: that of the fault, if any."""

    name: str
    why: str
    fault: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Domains:
    """What is projected: files by data key, the backends behind them, and those that are left out.

    Args:
        paths: where the files stand in the pods, with the data key of each; empty: each stands where its key says.
        trusts_the_system: a directory is proven by the image's own authorities, beside others that are not.
    """

    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    attached: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    total: int = 0
    paths: Mapping[str, str] = field(default_factory=dict)
    trusts_the_system: bool = False


def project_all(backends: Iterable[Attached]) -> Domains:
    """The projection of these backends, by name; terminating ones are left out silently."""
    everyone = ranked(backends)
    ours = [item for item in everyone if item.backend.spec.type == "LDAP" and not item.terminating]
    clashes = collisions(everyone) if ours else {}
    projected = [(item, _one(item, clashes)) for item in ours]
    served = [item for item, found in projected if not isinstance(found, Left)]
    verifying = next((item.name for item in served if _verifies(item)), "")
    files, attached, left = _Files(public=any(map(_is_public, served))), [], []
    for item, found in projected:
        if verifying and _verifies(item) is False:
            left.append(Left(item.name, _TRUSTING.format(verifying), fault=True))
        elif isinstance(found, Left):
            left.append(found)
        elif (size := files.size_with(found)) > BUDGET:
            left.append(
                Left(
                    item.name,
                    f"all domain files together would have {size} bytes, at most {BUDGET} fit; who is served already stays",
                    True,
                )
            )
        else:
            files.add(found)
            attached.append(item.name)
    left.sort(key=lambda item: item.name)
    return Domains(files.whole(), tuple(sorted(attached)), tuple(left), len(ours), files.paths(), files.mixes_public)


@dataclass
class _Files:
    """The files of all domains, and one with the authorities of all directories where these differ.

    The TLS library makes up its mind once in a process: whoever logs in first would fix whose authority counts for all directories, and the users of
    the others would be refused by that worker for as long as it lives. So each domain finds all authorities where it looks for its own. It keeps
    its own data key, by which it is known to be projected.

    Args:
        public: some directory is proven by the authorities of the image.
    """

    public: bool
    _found: dict[str, bytes] = field(default_factory=dict)
    _own: int = 0
    _bundles: set[bytes] = field(default_factory=set)

    def add(self, files: Mapping[str, bytes]) -> None:
        self._found.update(files)
        self._own += sum(map(len, files.values()))
        self._bundles |= _bundles(files)

    def size_with(self, files: Mapping[str, bytes]) -> int:
        """Bytes, with these files."""
        shared = self._shared(self._bundles | _bundles(files))
        return self._own + sum(map(len, files.values())) + len(shared)

    @property
    def mixes_public(self) -> bool:
        """Whether the authorities of the image count beside others."""
        return self.public and bool(self._bundles)

    def whole(self) -> Mapping[str, bytes]:
        """Contents by data key."""
        if not self._differ(self._bundles):
            return self._found
        return {**self._found, AUTHORITIES: self._shared(self._bundles)}

    def paths(self) -> Mapping[str, str]:
        """Data keys by path in the pods; empty where each path is a key."""
        if not self._differ(self._bundles):
            return {}
        return {name: AUTHORITIES if name.endswith(CA_SUFFIX) else name for name in (*self._found, AUTHORITIES)}

    def _shared(self, bundles: set[bytes]) -> bytes:
        """The authorities of all, each once; nothing where they do not differ."""
        return (
            b"".join(sorted({one for bundle in bundles for one in readable(bundle)})) if self._differ(bundles) else b""
        )

    def _differ(self, bundles: set[bytes]) -> bool:
        return len(bundles) > (0 if self.public else 1)


def _bundles(files: Mapping[str, bytes]) -> set[bytes]:
    return {content for name, content in files.items() if name.endswith(CA_SUFFIX)}


def _verifies(item: Attached) -> bool | None:
    """Whether the directory must prove itself; None where nothing is proven, since there is no TLS."""
    spec = item.backend.spec
    extra = spec.extra_options or {}
    return is_proven(extra) if spec.ldap and is_secured(spec.ldap, extra) else None


_TRUSTING: Final = "spec.extraOptions[tls_req_cert] would count for backend {} as well, whose directory proves itself: leave it out, and name the authority in spec.ldap.tls"
"""The TLS library makes up its mind once in a process: one directory that needs no proof could make all others need none."""


def _is_public(item: Attached) -> bool:
    spec = item.backend.spec
    return spec.ldap is not None and trusts_the_system(spec.ldap, spec.extra_options or {})


def _one(item: Attached, clashes: Mapping[str, str]) -> Mapping[str, bytes] | Left:
    if why := clashes.get(item.name):
        return Left(item.name, why, fault=True)
    if not item.domain_ready:
        return Left(item.name, f'domain "{item.domain}" is not ready')
    found = project(item.backend, item.materials)
    if isinstance(found, Fault):
        return Left(item.name, found.message, fault=not found.pending, reason=found.reason)
    return found.files


def data_of(secret: JsonObject | None) -> Mapping[str, bytes] | None:
    """The decoded data of a Secret; None when it does not exist, a value that is no base64 is left out."""
    if secret is None:
        return None
    decoded: dict[str, bytes] = {}
    for key, value in (secret.get("data") or {}).items():
        try:
            decoded[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            continue
    return decoded
