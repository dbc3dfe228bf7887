"""What stands in rendered files for what the operator draws at random: the passphrase and key pair of federation.

Enters: nothing, or rendered files. Leaves: Secrets that are the same on every machine, so that names made from contents are too, and the files
with every trace of the key pair replaced: a rendered file must not look as if somebody could sign with it. Anybody can compute this key.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from moorage.core.meta import JsonObject, Key

from .key_pair import CERTIFICATE, KEY

PASSPHRASE: Final = "made-by-the-operator"  # noqa: S105 - of nobody
TEXT: Final = "made by the operator\n"
_OFFSETS: Final = ((b"moorage render: p", 152), (b"moorage render: q", 54))
"""From the number that a label hashes to up to the next prime."""
_CERTIFICATE: Final = re.compile(rb"<ds:X509Certificate>[^<]*</ds:X509Certificate>")


def secrets(keystone: Key) -> Mapping[str, JsonObject]:
    """The two Secrets that the operator would make, by name."""
    certificate, key = _pair()
    return {
        f"{keystone.name}-oidc-crypto-passphrase": _secret(
            keystone, "-oidc-crypto-passphrase", {"passphrase": PASSPHRASE.encode()}
        ),
        f"{keystone.name}-saml-sp": _secret(keystone, "-saml-sp", {CERTIFICATE: certificate, KEY: key}),
    }


def without_pair(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """These files by name, the placeholder of the key pair replaced by a sentence; a pair that a person brought stays."""
    return {name: _blotted(content) for name, content in files.items()}


def _blotted(content: bytes) -> bytes:
    certificate, key = _pair()
    if content in (certificate, key):
        return TEXT.encode()
    der = base64.b64encode(x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER))
    if der not in content:
        return content
    return _CERTIFICATE.sub(b"<ds:X509Certificate>made by the operator</ds:X509Certificate>", content)


def _secret(keystone: Key, suffix: str, data: Mapping[str, bytes]) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": keystone.name + suffix, "namespace": keystone.namespace},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


@cache
def _pair() -> tuple[bytes, bytes]:
    """Certificate and key, PEM."""
    p, q = (_number(label) + offset for label, offset in _OFFSETS)
    exponent = 65537
    d = pow(exponent, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(exponent, p * q)
    key = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public).private_key()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "made by the operator")])
    long_ago, far_off = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, long_ago, far_off).sign(key, hashes.SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return made.public_bytes(Encoding.PEM), private


def _number(label: bytes) -> int:
    """A number of 1024 bits, odd, its two highest bits set."""
    return int.from_bytes(hashlib.shake_256(label).digest(128), "big") | (3 << 1022) | 1
