"""Signing keys of a realm: an RSA pair, its JWK, a self-made certificate for SAML.

Enters: nothing, or bytes to sign. Leaves: JWTs, signatures, base64 texts. Keys live in memory and end with the test.
"""

from __future__ import annotations

import base64
import itertools
import json
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID


def b64url(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _integer(value: int) -> str:
    return b64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@dataclass(frozen=True)
class SigningKey:
    """One RSA pair with a key id."""

    kid: str = field(default_factory=lambda: secrets.token_hex(4))
    private: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    @property
    def jwk(self) -> dict[str, str]:
        """The public half as a JSON Web Key."""
        numbers = self.private.public_key().public_numbers()
        return {
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": _integer(numbers.n), "e": _integer(numbers.e)
        }  # fmt: skip

    def sign(self, data: bytes) -> bytes:
        """RSASSA-PKCS1-v1_5 with SHA-256."""
        return self.private.sign(data, padding.PKCS1v15(), hashes.SHA256())

    def jwt(self, claims: dict[str, Any]) -> str:
        """A signed token of these claims."""
        header = {"alg": "RS256", "typ": "JWT", "kid": self.kid}
        head = ".".join(b64url(json.dumps(part).encode()) for part in (header, claims))
        return f"{head}.{b64url(self.sign(head.encode()))}"

    def certificate(self, days: int = 30) -> str:
        """A self-made certificate as the base64 of its DER; it ended already when `days` is negative."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fake-idp-{self.kid}")])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=400))
            .not_valid_after(now + timedelta(days=days))
        )
        made = builder.sign(self.private, hashes.SHA256())
        return base64.b64encode(made.public_bytes(serialization.Encoding.DER)).decode()


_TURN = itertools.count()


@cache
def _pair(_number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def kept() -> SigningKey:
    """A key of one of four pairs of this process, in turn: to make a pair takes longer than most tests, and where nobody forges it need not be new."""
    return SigningKey(private=_pair(next(_TURN) % 4))
