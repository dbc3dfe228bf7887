"""A private certificate authority for tests, with server certificates for loopback names.

Enters: names and addresses. Leaves: PEM bytes and files. It must not be used outside tests: keys are unprotected.
"""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _san(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=30))
    )


@dataclass(frozen=True)
class Authority:
    """A certificate authority made when it is constructed."""

    name: str = "Moorage test authority"
    _key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    _made: list[x509.Certificate] = field(default_factory=list)

    @property
    def certificate(self) -> x509.Certificate:
        if not self._made:
            usage = x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            )
            builder = _certificate(_named(self.name), _named(self.name), self._key)
            builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            builder = builder.add_extension(usage, critical=True)
            identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
            self._made.append(builder.add_extension(identifier, critical=False).sign(self._key, hashes.SHA256()))
        return self._made[0]

    @property
    def pem(self) -> bytes:
        """The authority's certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def bundle(self) -> str:
        """The certificate as `caBundle` of a webhook configuration wants it: base64 of the PEM."""
        return base64.b64encode(self.pem).decode()

    def issue(self, folder: Path, stem: str, names: tuple[str, ...] = ("127.0.0.1", "localhost")) -> tuple[Path, Path]:
        """Write `<stem>.crt` and `<stem>.key` for a server of these names and addresses; returns both paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _certificate(_named(names[0]), _named(self.name), key)
        builder = builder.add_extension(x509.SubjectAlternativeName([_san(name) for name in names]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = builder.add_extension(issuer, critical=False).sign(self._key, hashes.SHA256())
        certificate_file, key_file = folder / f"{stem}.crt", folder / f"{stem}.key"
        certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(_pem(key))
        key_file.chmod(0o600)
        return certificate_file, key_file


def signing_pair(folder: Path, stem: str) -> tuple[Path, Path]:
    """Write a key pair for token signatures (`<stem>.key`, `<stem>.pub`); returns private and public path."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / f"{stem}.key", folder / f"{stem}.pub"
    private.write_bytes(_pem(key))
    private.chmod(0o600)
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public
