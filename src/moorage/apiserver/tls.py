"""The server's own certificates: a private CA made on first start, the server's and the administrator's.

Enters: the data folder and the names to be reached by. Leaves: files under DATA/pki (keys 0600) and an SSL context.
User and groups of a client certificate stand in CN and O, as Kubernetes reads them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from moorage.core.secret import SecretText
from moorage.serving.certificates import Pair, alternatives, identify, issue, key_pem, make_authority, subject_of

_LEAF_LIFE, _RENEW = timedelta(days=365), timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Pki:
    """Where the certificates stand, and their CA."""

    folder: Path
    authority: Pair

    def path(self, name: str) -> Path:
        return self.folder / name

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.2 and later; client certificates of our CA are verified when they are shown."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.path("server.crt"), self.path("server.key"))
        context.load_verify_locations(self.path("ca.crt"))
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        context.num_tickets = 0  # a sixth of the handshake, and neither kubectl nor an operator comes back with one
        return context


def ensure_pki(folder: Path, hosts: tuple[str, ...]) -> Pki:
    """Make what is missing or about to expire.

    Args:
        hosts: names and addresses of the server.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now, names = datetime.now(UTC), tuple(dict.fromkeys(hosts))
    pki = Pki(folder, _authority(folder, now))
    if not _still_good(pki, "server", now, names):
        _write(folder, "server", issue(pki.authority, names, now, _LEAF_LIFE))
    if not _still_good(pki, "admin", now):
        subject = subject_of("moorage-admin", "system:masters")
        _write(folder, "admin", identify(pki.authority, subject, now, _LEAF_LIFE))
    return pki


def signing_key(folder: Path) -> ec.EllipticCurvePrivateKey:
    """The key that signs ServiceAccount tokens, made on first use."""
    path = folder / "sa.key"
    if path.exists():
        found = serialization.load_pem_private_key(path.read_bytes(), None)
        if isinstance(found, ec.EllipticCurvePrivateKey):
            return found
    made = ec.generate_private_key(ec.SECP256R1())
    write_private(path, key_pem(made).reveal().encode())
    return made


def _authority(folder: Path, now: datetime) -> Pair:
    certificate, key = folder / "ca.crt", folder / "ca.key"
    if certificate.exists() and key.exists():
        found = Pair(certificate.read_text(), SecretText(key.read_text()))
        private = serialization.load_pem_private_key(key.read_bytes(), None)
        if private.public_key() == found.parsed.public_key():
            return found
    made = make_authority(f"moorage-ca-{int(now.timestamp())}", now)
    _write(folder, "ca", made)
    return made


def _write(folder: Path, name: str, pair: Pair) -> None:
    write_private(folder / f"{name}.key", pair.key.reveal().encode())
    write_private(folder / f"{name}.crt", pair.certificate.encode(), 0o644)


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file whole or not at all, never readable to others in between."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _still_good(pki: Pki, name: str, now: datetime, names: Sequence[str] = ()) -> bool:
    certificate, key = pki.path(f"{name}.crt"), pki.path(f"{name}.key")
    if not certificate.exists() or not key.exists():
        return False
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    if found.issuer != pki.authority.parsed.subject or found.not_valid_after_utc - now < _RENEW:
        return False
    if not names:
        return True
    present = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(alternatives(names)) <= set(present)
