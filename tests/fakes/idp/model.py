"""What a fake realm knows: people, clients, service providers, keys, and what it does wrong on request.

Enters: what a test declares. Leaves: values that `oidc.py`, `saml.py` and `server.py` read. It does no I/O.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lxml import etree
from tests.fakes.idp.keys import SigningKey

MD = "urn:oasis:names:tc:SAML:2.0:metadata"
DS = "http://www.w3.org/2000/09/xmldsig#"
POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"


@dataclass(frozen=True)
class User:
    """A person; the password is `<name>-pw`."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def password(self) -> str:
        return f"{self.name}-pw"

    @property
    def email(self) -> str:
        return f"{self.name}@example.test"

    @property
    def claims(self) -> dict[str, Any]:
        return {
            "sub": f"id-of-{self.name}", "preferred_username": self.name, "email": self.email, "groups": list(self.groups)
        }  # fmt: skip


@dataclass(frozen=True)
class Client:
    """An OIDC client; `audience`: further clients that its access tokens are for."""

    id: str
    redirect_uris: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()

    @property
    def secret(self) -> str:
        return f"{self.id}-secret"


@dataclass(frozen=True)
class ServiceProvider:
    """A SAML service provider as its metadata describes it; `certificate` is base64 of DER, `logout_posts`: its logout takes POST."""

    entity_id: str
    acs: str
    logout: str = ""
    certificate: str = ""
    logout_posts: bool = False

    @classmethod
    def of(cls, metadata: bytes) -> ServiceProvider:
        """Read an SP's EntityDescriptor."""
        root = etree.fromstring(metadata)
        acs = next(item for item in root.iter(f"{{{MD}}}AssertionConsumerService") if item.get("Binding") == POST)
        logouts = {item.get("Binding"): item.get("Location", "") for item in root.iter(f"{{{MD}}}SingleLogoutService")}
        keys = [item for item in root.iter(f"{{{MD}}}KeyDescriptor") if item.get("use", "encryption") == "encryption"]
        text = next(keys[0].iter(f"{{{DS}}}X509Certificate")).text if keys else ""
        return cls(
            root.get("entityID", ""),
            acs.get("Location", ""),
            logouts.get(POST) or next(iter(logouts.values()), ""),
            "".join((text or "").split()),
            POST in logouts,
        )


class SamlFault(Enum):
    """What is wrong with the next responses, or unusual about them."""

    NONE = "signed as it should be"
    UNSIGNED = "neither response nor assertion is signed"
    FOREIGN_KEY = "signed by a key that no metadata names"
    EXPIRED = "NotOnOrAfter is an hour ago"
    EARLY = "NotBefore is in an hour"
    OTHER_AUDIENCE = "for another service provider"
    OTHER_RECIPIENT = "for another assertion consumer service"
    OTHER_ISSUER = "asserted by another entity"
    UNSOLICITED = "answers no request"
    WRAPPED_SIBLING = "a forged assertion stands before the signed one"
    WRAPPED_INSIDE = "the signed assertion stands inside the forged one's signature"
    WRAPPED_EXTENSIONS = "the signed assertion stands in the response's extensions"
    COMMENTED = "a comment stands inside the user name"
    ENCRYPTED_OAEP11 = "encrypted, key transport rsa-oaep of xmlenc 1.1, as Keycloak does by default"
    ENCRYPTED_MGF1P = "encrypted, key transport rsa-oaep-mgf1p"


def _set() -> threading.Event:
    made = threading.Event()
    made.set()
    return made


@dataclass
class Realm:
    """One issuer and one SAML entity; tests change `fault`, `down`, `answers` and `key` while it is served."""

    name: str
    users: tuple[User, ...] = ()
    clients: tuple[Client, ...] = ()
    providers: list[ServiceProvider] = field(default_factory=list)
    key: SigningKey = field(default_factory=SigningKey)
    fault: SamlFault = SamlFault.NONE
    down: bool = False
    answers: threading.Event = field(default_factory=_set)
    """Cleared: requests are taken and not answered, until it is set again."""
    lifetime: float = 300.0
    revoked: set[str] = field(default_factory=set)
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def rotate(self) -> None:
        """Sign with a new key from now on; the old one is gone from JWKS and metadata."""
        self.key = SigningKey()

    def user(self, name: str, password: str) -> User | None:
        """The person that these words prove, if any."""
        return next((item for item in self.users if (item.name, item.password) == (name, password)), None)

    def client(self, id: str, secret: str | None = None) -> Client | None:
        """The client of an id, its secret checked when one is given."""
        found = next((item for item in self.clients if item.id == id), None)
        return found if found and secret in (None, found.secret) else None


def now() -> int:
    """Seconds since the epoch."""
    return int(time.time())
