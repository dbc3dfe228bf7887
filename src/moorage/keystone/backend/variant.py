"""What a type of backend is to the renderer: which Secrets it names, and how it is rendered.

Enters: nothing. Leaves: the shape that ldap.py, oidc.py and saml.py fill, one each, and the words they share for Secrets. It knows no
type by name and reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .federation import Part
from .materials import Data, Fault, Materials
from .types import KeystoneIdentityBackend


class Skip(Exception):
    """Ends a rendering with its fault."""

    def __init__(self, reason: str, message: str) -> None:
        self.fault = Fault(reason, message)
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Rendered:
    """Files of one backend by data key; `part` is what only federated backends have."""

    files: Mapping[str, bytes] = field(repr=False)
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One type of backend.

    Args:
        secrets: names of every Secret that a backend of this type names, without repetition.
        render: its files; raises Skip when this backend cannot be projected.
    """

    secrets: Callable[[KeystoneIdentityBackend], tuple[str, ...]]
    render: Callable[[KeystoneIdentityBackend, Materials], Rendered]


@dataclass(frozen=True, slots=True)
class Wanted:
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
            Skip: the Secret or its key does not exist, is empty, is no text.
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
        return text
