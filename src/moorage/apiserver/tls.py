"""The server's own certificates: a private CA made on first start, the server's and the administrator's.

Enters: the data folder and the names to be reached by. Leaves: files under DATA/pki (keys 0600) and an SSL context.
Source: RFC 5280; user and groups stand in CN and O, as Kubernetes reads them.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CA_DAYS, _LEAF_DAYS, _RENEW_DAYS = 3650, 365, 30


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True, slots=True)
class Pki:
    """Where the certificates stand."""

    folder: Path
    authority: Authority

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
        return context


def ensure_pki(folder: Path, hosts: tuple[str, ...]) -> Pki:
    """Make what is missing or about to expire.

    Args:
        hosts: names and addresses of the server.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pki = Pki(folder, _authority(folder))
    names = [_alternative(host) for host in dict.fromkeys(hosts)]
    if not _still_good(pki, "server", names):
        _issue(pki, "server", x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "moorage")]), names)
    if not _still_good(pki, "admin", []):
        subject = [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(NameOID.COMMON_NAME, "moorage-admin"),
        ]
        _issue(pki, "admin", x509.Name(subject), [])
    return pki


def signing_key(folder: Path) -> ec.EllipticCurvePrivateKey:
    """The key that signs ServiceAccount tokens, made on first use."""
    return _key(folder / "sa.key")


def _authority(folder: Path) -> Authority:
    key, path = _key(folder / "ca.key"), folder / "ca.crt"
    if path.exists():
        found = x509.load_pem_x509_certificate(path.read_bytes())
        if found.public_key() == key.public_key():
            return Authority(found, key)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"moorage-ca-{int(datetime.now(UTC).timestamp())}")])
    builder = _builder(name, name, key.public_key(), _CA_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    made = builder.sign(key, hashes.SHA256())
    write_private(path, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return Authority(made, key)


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    if path.exists():
        found = serialization.load_pem_private_key(path.read_bytes(), None)
        if isinstance(found, ec.EllipticCurvePrivateKey):
            return found
    made = ec.generate_private_key(ec.SECP256R1())
    write_private(path, _pem(made), 0o600)
    return made


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


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


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _still_good(pki: Pki, name: str, names: list[x509.GeneralName]) -> bool:
    certificate, key = pki.path(f"{name}.crt"), pki.path(f"{name}.key")
    if not certificate.exists() or not key.exists():
        return False
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    if found.issuer != pki.authority.certificate.subject:
        return False
    if found.not_valid_after_utc - datetime.now(UTC) < timedelta(days=_RENEW_DAYS):
        return False
    if not names:
        return True
    present = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names) <= set(present)


def _issue(pki: Pki, name: str, subject: x509.Name, names: list[x509.GeneralName]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = pki.authority
    builder = _builder(subject, authority.certificate.subject, key.public_key(), _LEAF_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=False), critical=True)
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(authority.key, hashes.SHA256())
    write_private(pki.path(f"{name}.key"), _pem(key))
    write_private(pki.path(f"{name}.crt"), made.public_bytes(serialization.Encoding.PEM), 0o644)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=days))


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
