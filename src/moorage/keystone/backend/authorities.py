"""CA bundles of people, as one file for several of them may hold them: of OIDC providers for the sidecar, of directories for Keystone.

Enters: bytes that a person put into a Secret. Leaves: certificates, each one read by OpenSSL, which the sidecar's curl uses, and written anew;
nothing else of the bytes. Readers refuse a whole file for one certificate that they cannot read, and one file serves all providers, or all directories:
so what cannot be read must never come here. Pure; it opens no connection. Source: decisions, Keystone 10; spec/keystone.md 7 (P4).
"""

from __future__ import annotations

import base64
import binascii
import re
import textwrap
from functools import lru_cache
from typing import Final

_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_MARK: Final = b"-----BEGIN "


class UnusableBundle(ValueError):
    """A bundle that the sidecar could not read; the text says which part and what to put there, never a value."""


@lru_cache(maxsize=64)
def certificates(bundle: bytes) -> tuple[bytes, ...]:
    """PEM of each certificate, in the order of the bundle, none twice. Text around them is dropped.

    Raises:
        UnusableBundle: there is none, one cannot be read, or something else than a certificate is among them.
    """
    found = _BLOCK.findall(bundle)
    if not found:
        raise UnusableBundle("holds no certificate: put the PEM certificates of the provider's authority there")
    if bundle.count(_MARK) != len(found):
        raise UnusableBundle("holds a PEM block that is no whole certificate: leave certificates only")
    return tuple(dict.fromkeys(_certificate(block, number) for number, block in enumerate(found, start=1)))


def blocks(bundle: bytes) -> bytes:
    """The PEM certificates of a bundle, readable or not, without what stands around them."""
    return b"\n".join(found[0] for found in _BLOCK.finditer(bundle))


@lru_cache(maxsize=256)
def readable(bundle: bytes) -> tuple[bytes, ...]:
    """PEM of each certificate that every TLS library reads, whatever else stands there: libldap has GnuTLS in Debian, which refuses what OpenSSL passes over."""
    return tuple(found for block in _BLOCK.findall(bundle) for found in _readable(block))


def _readable(block: bytes) -> tuple[bytes, ...]:
    try:
        found = _certificate(block, 0)
    except UnusableBundle:
        return ()
    return (found,) if _is_sound(base64.b64decode(b"".join(block.split()))) else ()


def _is_sound(content: bytes) -> bool:
    """Whether it is one certificate and nothing behind it, and each part of it can be read."""
    import warnings

    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # public authorities have a serial number of zero
            found = x509.load_der_x509_certificate(content)
            parts = found.public_key(), found.extensions, found.subject, found.issuer, found.signature_hash_algorithm
            signed, lasts = found.tbs_certificate_bytes, found.not_valid_before_utc < found.not_valid_after_utc
            extended = found.version is x509.Version.v3 or not len(found.extensions)
            numbered = found.serial_number >= 0
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension):
        return False
    rest = content[content.index(signed) + len(signed) :]
    agrees = rest[: 2 + rest[1]] in signed  # the algorithm of its signature, told outside and inside
    whole = found.public_bytes(Encoding.DER) == content
    return bool(parts) and lasts and extended and numbered and agrees and whole


def _certificate(block: bytes, number: int) -> bytes:
    import ssl  # nothing of it but the parser is used

    try:
        content = base64.b64decode(b"".join(block.split()), validate=True)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content)
    except (binascii.Error, ssl.SSLError, ValueError):
        raise UnusableBundle(f"certificate {number} of the bundle cannot be read: put it there in PEM, whole") from None
    lines = textwrap.wrap(base64.b64encode(content).decode(), 64)
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]).encode()
