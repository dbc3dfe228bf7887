"""The key pair of the SAML service provider: made, read, and its rollover in two steps.

Enters: data of Secrets, the time. Leaves: PEM texts and facts of a certificate; complaints never hold a value. It writes nothing; `make_pair`
alone draws randomness and is called by `apply.py` only. Source: seed 000, SAMLSPSpec; spec/keystone.md 1.3, 3.6; ADR 0013.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
_BITS: Final = 2048
_EARLY: Final = timedelta(hours=1)
_LIFE: Final = timedelta(days=3652)


@dataclass(frozen=True, slots=True)
class Pair:
    """Certificate and private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def make_pair(name: str, now: datetime) -> Pair:
    """A fresh RSA-2048 key with a self-signed certificate, common name `name`, good from an hour ago for ten years."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    return Pair(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))


def read_pair(data: Mapping[str, bytes]) -> Pair | str:
    """The pair in the data of a Secret of type kubernetes.io/tls, or why there is none, in one phrase without a value.

    The first certificate of a chain counts; the key must be RSA, unencrypted, and the certificate's own.
    """
    for name in (CERTIFICATE, KEY):
        if not data.get(name):
            return f"{name} is missing or empty"
    return _pair(data[CERTIFICATE], data[KEY])


@lru_cache(maxsize=64)
def _pair(certificate: bytes, key: bytes) -> Pair | str:
    """Reading an RSA key costs a tenth of a second, since it is proven to be one; passes read the same pair again and again."""
    try:
        found = x509.load_pem_x509_certificates(certificate)[0]
    except ValueError:
        return f"{CERTIFICATE} is no PEM certificate"
    try:
        private = load_pem_private_key(key, None)
    except (ValueError, TypeError):
        return f"{KEY} is no unencrypted PEM private key"
    if not isinstance(private, rsa.RSAPrivateKey):
        return f"{KEY} is no RSA key"
    if _public(private.public_key()) != _public(found.public_key()):
        return f"{KEY} does not belong to {CERTIFICATE}"
    return Pair(certificate, key)


def _public(key: object) -> bytes:
    shown: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return shown


def not_after(certificate: bytes) -> datetime | None:
    """When a PEM certificate ends, UTC; None when it cannot be read."""
    try:
        return x509.load_pem_x509_certificates(certificate)[0].not_valid_after_utc
    except ValueError:
        return None
