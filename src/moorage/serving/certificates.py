"""Certificates of our own servers: an authority, and what it issues to servers and to clients.

Enters: names and times. Leaves: PEM texts. Private keys stay in values that cannot be printed. Pure but for the random
numbers of key generation. Source: RFC 5280.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from moorage.core.secret import SecretText

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=90)
_BACKDATED = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate (PEM) and its private key (PEM)."""

    certificate: str
    key: SecretText

    @property
    def parsed(self) -> x509.Certificate:
        """The certificate."""
        return x509.load_pem_x509_certificate(self.certificate.encode())


def make_authority(name: str, now: datetime, life: timedelta = AUTHORITY_LIFE) -> Pair:
    """A new self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = subject_of(name)
    builder = (
        _builder(subject, subject, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
    )
    return Pair(_pem(builder.sign(key, hashes.SHA256())), key_pem(key))


def issue(authority: Pair, names: Sequence[str], now: datetime, life: timedelta = LEAF_LIFE) -> Pair:
    """A server certificate for DNS names and IP addresses; it never outlives its authority."""
    return _issue(authority, subject_of(names[0][:64]), names, now, life)


def identify(authority: Pair, subject: x509.Name, now: datetime, life: timedelta = LEAF_LIFE) -> Pair:
    """A client certificate; it never outlives its authority."""
    return _issue(authority, subject, (), now, life)


def _issue(authority: Pair, subject: x509.Name, names: Sequence[str], now: datetime, life: timedelta) -> Pair:
    issuer = authority.parsed
    signer = serialization.load_pem_private_key(authority.key.reveal().encode(), None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is not an elliptic curve key")
    life = min(life, issuer.not_valid_after_utc - now)
    key = ec.generate_private_key(ec.SECP256R1())
    purpose: ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(alternatives(names), critical=False)
    return Pair(_pem(builder.sign(signer, hashes.SHA256())), key_pem(key))


def is_ageing(pair: Pair, now: datetime) -> bool:
    """Whether two thirds of its life are over, so that it is time for the next one."""
    certificate = pair.parsed
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now >= certificate.not_valid_before_utc + life * 2 / 3


def live_bundle(bundle: str, now: datetime) -> str:
    """The certificates of a PEM bundle that still count; unreadable text counts as none."""
    try:
        found = x509.load_pem_x509_certificates(bundle.encode())
    except ValueError:
        return ""
    return "".join(_pem(item) for item in found if item.not_valid_after_utc > now)


def subject_of(name: str, organization: str = "") -> x509.Name:
    """A subject by common name, in an organization: Kubernetes reads them as user and group."""
    group = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*group, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def alternatives(names: Sequence[str]) -> x509.SubjectAlternativeName:
    """DNS names and IP addresses as a certificate holds them."""
    return x509.SubjectAlternativeName([_general_name(name) for name in names])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs, crl_sign=signs, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def key_pem(key: ec.EllipticCurvePrivateKey) -> SecretText:
    """A private key as PKCS #8 in PEM, unencrypted."""
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return SecretText(text.decode())
