"""What a backend projects into its Keystone: files for the pods, and its part of the sidecar when it is federated.

Enters: a declared backend and what it is made from. Leaves: files and their digest, or the one reason why nothing may be projected. It
must never put out a value that reads back as another one, nor a secret in a message. It is the last line of defence: it runs for
resources that bypassed admission too. Both rooms call it and so agree on every byte. Source: seed 000; spec/keystone.md 3; decisions 6, 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from moorage.core.digest import content_hash
from moorage.render.apache import UnsafeText

from . import federation, ldap, oidc, saml
from .federation import Part
from .materials import Fault, Materials
from .types import KeystoneIdentityBackend
from .variant import Rendered, Skip, Variant

__all__ = ["SIZE_LIMIT", "VARIANTS", "Fault", "Projected", "Projection", "project", "secret_names"]

SIZE_LIMIT: Final = 262144
"""Bytes that one backend may project."""
_LINE: Final = 30
"""Bytes of a line that strips a header, besides the header's name."""

VARIANTS: Final[Mapping[str, Variant]] = {"LDAP": ldap.VARIANT, "OIDC": oidc.VARIANT, "SAML": saml.VARIANT}
"""The types of backend. A further one is a file of its own, a line here, its block in types.py and its rules in admission.py."""


@dataclass(frozen=True)
class Projected:
    """Files of one backend by data key, and a digest of names and contents; `part` when it is federated."""

    files: Mapping[str, bytes] = field(repr=False)
    digest: str
    part: Part | None = None

    def stands_in(self, data: Mapping[str, bytes]) -> bool:
        """Whether `data` holds exactly these contents for this backend."""
        return all(data.get(name) == content for name, content in self.files.items())


Projection: TypeAlias = Projected | Fault


def project(backend: KeystoneIdentityBackend, materials: Materials) -> Projection:
    """The files of one backend, or why it has none; nothing is raised."""
    variant = VARIANTS.get(backend.spec.type)
    if variant is None:
        return Fault("UnsupportedType", "this version knows no such type of backend")
    try:
        found = variant.render(backend, materials)
    except Skip as skip:
        return skip.fault
    except UnsafeText as error:
        return Fault("UnsafeValue", str(error))
    files = found.files if found.part is None else {**found.files, **_digest(backend, found.files, found.part)}
    size = sum(map(len, files.values())) + _weight(backend, found.part)
    if size > SIZE_LIMIT:
        return Fault(
            "TooLarge",
            f"what this backend projects has {size} bytes, at most {SIZE_LIMIT} fit: {_heaviest(backend, found)}",
        )
    return Projected(files, content_hash(files), found.part)


def _digest(backend: KeystoneIdentityBackend, files: Mapping[str, bytes], part: Part) -> Mapping[str, bytes]:
    """One more file, for all that shapes the sidecar and stands in no file of this backend."""
    shaping = {
        "fragment": part.fragment.encode(),
        "alone": part.alone.encode(),
        "stripped": "\n".join(sorted(federation.stripped(backend))).encode(),
        "shared": json.dumps(part.shared, sort_keys=True).encode(),
        "remoteIDAttribute": part.remote_id_attribute.encode(),
        "authorities": part.authorities,
        "certificate": part.pair.certificate if part.pair else b"",
        "key": part.pair.key if part.pair else b"",
    }
    return {federation.data_key(backend, "digest"): federation.digest({**files, **shaping})}


def _weight(backend: KeystoneIdentityBackend, part: Part | None) -> int:
    """Bytes that this backend adds to the sidecar's configuration."""
    if part is None:
        return 0
    return len(part.fragment) + len(part.alone) + len(part.authorities) + _lines(backend)


def _lines(backend: KeystoneIdentityBackend) -> int:
    """Bytes of the lines that strip its headers."""
    return sum(federation.spelled(name) * (len(name) + _LINE) for name in federation.stripped(backend))


def _heaviest(backend: KeystoneIdentityBackend, found: Rendered) -> str:
    """The field that brings most of it, and how much."""
    sizes = {found.fields.get(name, "spec"): len(content) for name, content in found.files.items()}
    if found.part is not None:
        block = f"spec.{backend.spec.type.lower()}"
        sizes |= {f"{block}.caBundleSecretRef": len(found.part.authorities), "spec.mappings": _lines(backend)}
    field, most = max(sizes.items(), key=lambda item: item[1])
    return f"{field} brings {most} of them, make that smaller"


def secret_names(backend: KeystoneIdentityBackend) -> tuple[str, ...]:
    """Names of every Secret that this backend is made from, in its own namespace."""
    variant = VARIANTS.get(backend.spec.type)
    return variant.secrets(backend) if variant else ()
