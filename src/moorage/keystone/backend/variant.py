"""What a type of backend is to the renderer: which Secrets it names, and how it is rendered.

Enters: nothing. Leaves: the shape that ldap.py, oidc.py and saml.py fill, one each, and the words they share for Secrets. It knows no
type by name and reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moorage.schema.fielderror import FieldError

from . import federation
from .federation import Base, Part
from .finding import control_characters
from .materials import Data, Document, Fault, Materials
from .types import KeystoneIdentityBackend


class Skip(Exception):
    """Ends a rendering with its fault."""

    def __init__(self, reason: str, message: str, *, pending: bool = False) -> None:
        self.fault = Fault(reason, message, pending)
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Rendered:
    """Files of one backend by data key; `part` is what only federated backends have, `fields` where each file comes from."""

    files: Mapping[str, bytes] = field(repr=False)
    part: Part | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


class Variant(NamedTuple):
    """One type of backend.

    Args:
        secrets: names of every Secret that a backend of this type names, without repetition.
        render: its files; raises Skip when this backend cannot be projected.
        volume: volume of the Keystone pods that holds its files.
        sign: data key of a file by whose presence people see that the backend is projected.
        document: what the provider's metadata document is called there; "" for a type without one.
    """

    secrets: Callable[[KeystoneIdentityBackend], tuple[str, ...]]
    render: Callable[[KeystoneIdentityBackend, Materials], Rendered]
    volume: str
    sign: Callable[[KeystoneIdentityBackend], str]
    document: str = ""


class Wanted(NamedTuple):
    """A Secret as a variant speaks of it: `what` it is in a sentence, and the reason when it is not usable."""

    what: str
    name: str
    reason: str

    def data(self, materials: Materials) -> Data:
        """Its data.

        Raises:
            Skip: it does not exist.
        """
        found = materials.secrets.get(self.name)
        if found is None:
            raise Skip(self.reason, f"{self.what} {self.name} does not exist")
        return found

    def content(self, materials: Materials, key: str) -> bytes:
        """The bytes under a key.

        Raises:
            Skip: the Secret or its key does not exist, or holds nothing.
        """
        content = self.data(materials).get(key)
        if not content:
            raise Skip(self.reason, f"key {key} of {self.what} {self.name} is missing or empty")
        return content

    def line(self, materials: Materials, key: str, *, empty: str = "") -> str:
        """One line of text; line ends at its end are the `--from-file` habit and are dropped (decisions, Keystone 6).

        Args:
            empty: said after "is empty", why that cannot be.

        Raises:
            Skip: the Secret or its key does not exist, is empty, is no text, holds a control character.
        """
        where = f"key {key} of {self.what} {self.name}"
        data = self.data(materials)
        if key not in data:
            raise Skip(self.reason, f"{where} is missing")
        try:
            text = data[key].decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise Skip("UnsafeValue", f"{where} is not UTF-8 text") from None
        if not text:
            raise Skip(self.reason, f"{where} is empty{empty}")
        if next(control_characters("", text), None):
            raise Skip("UnsafeValue", f"{where} holds a control character")
        return text


# --- what the federated ones share


def public(backend: KeystoneIdentityBackend, materials: Materials) -> Base:
    """The public address that redirect URI and endpoints are made from.

    Raises:
        Skip: it is not known, or no federation works behind it.
    """
    if not materials.base:
        raise Skip("PublicEndpointUnknown", "the public address of the Keystone is not known yet", pending=True)
    base = federation.base_of(materials.base)
    if base is None:
        where = f"bootstrap.publicEndpoint of Keystone {backend.spec.keystone_ref.name}"
        raise Skip("PublicEndpointUnsupported", f"{where} {federation.endpoint_doubt(materials.base)}")
    return base


def document(materials: Materials) -> Document:
    """The provider's metadata.

    Raises:
        Skip: there is none; the fault says why.
    """
    found = materials.document
    if isinstance(found, Document):
        return found
    fault = found or Fault("MetadataUnavailable", "the provider's metadata has not been read yet", pending=True)
    raise Skip(fault.reason, fault.message, pending=fault.pending)


def checked(backend: KeystoneIdentityBackend, complaints: Iterable[FieldError]) -> None:
    """The names that a federated backend gives to files, paths and headers, and whatever its own check found.

    Raises:
        Skip: one of them cannot be used.
    """
    for complaint in complaints:
        raise Skip("UnsafeValue", f"{complaint.path}: {complaint.detail}")
    block, name = federation.federated(backend), backend.metadata.name
    for what, text in (
        ("provider", federation.provider_name(backend)),
        ("protocol", block.protocol_id if block else ""),
    ):
        if not federation.ID.fullmatch(text):
            raise Skip("UnsafeValue", f"the {what} name may hold letters, digits, - and _ only")
    if federation.data_key(backend, "conf") in federation.RESERVED_KEYS:
        raise Skip(
            "NameUnusable",
            f"a federated backend may not be called {name}: its files would take the sidecar's own place",
        )
    if len(federation.data_key(backend, "idp-metadata.xml")) > federation.KEY_LIMIT:
        raise Skip("NameUnusable", "the name of this backend is too long for the data keys of a Secret")
    if why := federation.claims_fault(backend):
        raise Skip("ClaimUnusable", why)
