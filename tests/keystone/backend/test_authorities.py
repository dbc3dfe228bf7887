"""CA bundles of OIDC providers: what OpenSSL cannot read never comes into the one file of the sidecar."""

from __future__ import annotations

import base64
from pathlib import Path

import certifi
import pytest
from tests.keystone.service.test_federation import GROUND, backend, reasons
from tests.real.certificates import Authority

from moorage.keystone.backend.authorities import UnusableBundle, certificates, readable
from moorage.keystone.service.federation import project_all
from moorage.keystone.service.seen import Attached

ONE, OTHER = Authority("one").pem, Authority("other").pem
BROKEN = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
UNUSABLE = {
    "the placeholder of the example": b"put the PEM certificate of the provider's authority here",
    "no certificate": BROKEN,
    "a good one before a bad one": ONE + BROKEN,
    "a bad one before a good one": BROKEN + ONE,
    "no base64": BROKEN.replace(b"AAAA", b"?!"),
    "cut short": ONE + OTHER[: len(OTHER) // 2],
    "a key": ONE + b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "something that OpenSSL reads otherwise": ONE + ONE.replace(b"CERTIFICATE", b"TRUSTED CERTIFICATE"),
}


def trusting(name: str, bundle: bytes) -> Attached:
    """A backend with this bundle."""
    found = backend(name, caBundleSecretRef={"name": f"ca-{name}"})
    secrets = {**found.materials.secrets, f"ca-{name}": {"ca.crt": bundle}}
    return Attached(found.backend, type(found.materials)(secrets, found.materials.base, found.materials.document))


@pytest.mark.case("P4")
@pytest.mark.parametrize("what", UNUSABLE)
def test_an_unreadable_bundle_is_the_fault_of_its_own_backend(what: str) -> None:
    """The sentence names field, Secret and fix; the sibling's bundle is as it was."""
    found = project_all([trusting("good", ONE), trusting("bad", UNUSABLE[what])], GROUND)
    assert found.attached == ("good",)
    assert found.files["ca-bundle.pem"] == ONE
    assert [(left.name, left.reason, left.fault) for left in found.left] == [("bad", "CABundleUnusable", True)]
    assert reasons(found)["bad"].startswith("spec.oidc.caBundleSecretRef: key ca.crt of CA Secret ca-bad")


def test_text_around_certificates_and_line_ends_of_others_are_dropped() -> None:
    """As `openssl s_client -showcerts` and Windows write them; a certificate counts once, over all bundles as well."""
    bundle = b"# one\r\n" + ONE.replace(b"\n", b"\r\n") + b"subject=CN = other\n" + OTHER + ONE
    assert certificates(bundle) == (ONE, OTHER)
    found = project_all([trusting("a", bundle), trusting("b", ONE)], GROUND)
    assert found.files["ca-bundle.pem"] == ONE + OTHER
    assert not any(name.endswith(".ca.pem") for name in found.files)


def test_a_refusal_never_repeats_the_bundle() -> None:
    """It may be a key that somebody put there by mistake."""
    with pytest.raises(UnusableBundle) as refused:
        certificates(b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
    assert "c2VjcmV0" not in str(refused.value)


def der(pem: bytes) -> bytes:
    return base64.b64decode(b"".join(pem.strip().splitlines()[1:-1]))


def pem(content: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(content) + b"-----END CERTIFICATE-----\n"


SIGNATURE = bytes.fromhex("06082a8648ce3d040302")
VERSION = bytes.fromhex("a003020102")
FOUND = der(ONE)
OUTSIDE = FOUND.rindex(SIGNATURE)
SERIAL = FOUND.index(b"\x02", FOUND.index(VERSION) + len(VERSION)) + 2
MONTH = FOUND.index(b"\x30\x1e\x17\x0d") + 6
UNSOUND = {
    "two certificates in one block": FOUND + der(OTHER),
    "something behind it": FOUND + b"\n",
    "another algorithm outside than inside": FOUND[:OUTSIDE]
    + SIGNATURE[:-1]
    + b"\x03"
    + FOUND[OUTSIDE + len(SIGNATURE) :],
    "an unknown algorithm": FOUND.replace(SIGNATURE, SIGNATURE[:-1] + b"\x09"),
    "version 4": FOUND.replace(VERSION, VERSION[:-1] + b"\x03"),
    "version 1 with extensions": FOUND.replace(VERSION, VERSION[:-1] + b"\x00"),
    "month 99": FOUND[:MONTH] + b"99" + FOUND[MONTH + 2 :],
    "a negative serial": FOUND[:SERIAL] + bytes([FOUND[SERIAL] | 0x80]) + FOUND[SERIAL + 1 :],
}
"""GnuTLS refuses a file for one of these (tried on the Keystone image's); OpenSSL passes over most of them."""


@pytest.mark.parametrize("what", UNSOUND)
def test_what_one_tls_library_refuses_never_comes_into_the_file_of_all_directories(what: str) -> None:
    """One such certificate in somebody's bundle would end the logins of all directories."""
    assert readable(OTHER + pem(UNSOUND[what])) == (OTHER,)


def test_every_public_authority_is_sound() -> None:
    """Some have a serial number of zero, which no authority may give today."""
    bundle = Path(certifi.where()).read_bytes()
    assert len(readable(bundle)) == bundle.count(b"-----BEGIN CERTIFICATE-----")
