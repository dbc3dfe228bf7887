"""The key pair of the SAML service provider: how it is made, and what is said of one that cannot serve."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from moorage.keystone.key_pair import CERTIFICATE, KEY, Pair, make_pair, not_after, read_pair

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return make_pair("keystone-saml-sp", NOW)


def data(pair: Pair) -> dict[str, bytes]:
    return {CERTIFICATE: pair.certificate, KEY: pair.key}


def test_a_fresh_pair_is_self_signed_rsa_2048_good_from_an_hour_ago_for_ten_years(pair: Pair) -> None:
    found = x509.load_pem_x509_certificate(pair.certificate)
    assert found.subject.rfc4514_string() == found.issuer.rfc4514_string() == "CN=keystone-saml-sp"
    assert found.not_valid_before_utc == NOW - timedelta(hours=1)
    assert found.not_valid_after_utc == not_after(pair.certificate) == NOW + timedelta(days=3652)
    assert found.public_key().key_size == 2048  # type: ignore[union-attr]
    assert pair.key.startswith(b"-----BEGIN RSA PRIVATE KEY-----")


def test_a_fresh_pair_reads_back(pair: Pair) -> None:
    assert read_pair(data(pair)) == pair


def test_a_long_name_still_makes_a_certificate() -> None:
    """X.520 allows 64 characters."""
    assert b"BEGIN CERTIFICATE" in make_pair("k" * 253, NOW).certificate


@pytest.mark.case("C10")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({CERTIFICATE: b""}, "tls.crt is missing or empty"),
        ({KEY: b""}, "tls.key is missing or empty"),
        ({CERTIFICATE: b"no certificate"}, "tls.crt is no PEM certificate"),
        ({KEY: b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"}, "tls.key is no unencrypted"),
    ],
)
def test_a_pair_that_cannot_serve_is_named_without_a_value(pair: Pair, change: dict[str, bytes], why: str) -> None:
    found = read_pair({**data(pair), **change})
    assert isinstance(found, str)
    assert found.startswith(why)


@pytest.mark.case("C10")
def test_a_key_of_another_certificate_is_refused(pair: Pair) -> None:
    assert read_pair({CERTIFICATE: pair.certificate, KEY: make_pair("other", NOW).key}) == (
        "tls.key does not belong to tls.crt"
    )


@pytest.mark.case("C10")
def test_a_key_that_mellon_cannot_use_is_refused(pair: Pair) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert read_pair({**data(pair), KEY: pem}) == "tls.key is no RSA key"


def test_a_key_is_never_printed(pair: Pair) -> None:
    assert "PRIVATE" not in repr(pair)
