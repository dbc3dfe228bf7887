"""XML signatures and XML encryption, as far as SAML needs them.

Enters: lxml elements, a signing key, a certificate. Leaves: signed or encrypted elements. Sources: XML Signature 1.1 (enveloped, exclusive
canonicalization, RSA-SHA256), XML Encryption 1.1. It signs for tests only: nothing is verified here.
"""

from __future__ import annotations

import base64
import hashlib
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from lxml import etree
from tests.fakes.idp.keys import SigningKey
from tests.fakes.idp.model import DS

C14N = "http://www.w3.org/2001/10/xml-exc-c14n#"
XENC = "http://www.w3.org/2001/04/xmlenc#"
XENC11 = "http://www.w3.org/2009/xmlenc11#"


def canonical(element: etree._Element) -> bytes:
    """Exclusive canonical form, without comments."""
    return etree.tostring(element, method="c14n", exclusive=True, with_comments=False)


def sign(element: etree._Element, key: SigningKey) -> None:
    """Put an enveloped signature into the element, after its Issuer; its ID is what is referred to."""
    digest = base64.b64encode(hashlib.sha256(canonical(element)).digest()).decode()
    signature = etree.fromstring(
        f'<ds:Signature xmlns:ds="{DS}"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="{C14N}"/>'
        '<ds:SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"/>'
        f'<ds:Reference URI="#{element.get("ID")}"><ds:Transforms>'
        f'<ds:Transform Algorithm="{DS}enveloped-signature"/><ds:Transform Algorithm="{C14N}"/></ds:Transforms>'
        f'<ds:DigestMethod Algorithm="{XENC}sha256"/><ds:DigestValue>{digest}</ds:DigestValue></ds:Reference></ds:SignedInfo>'
        "<ds:SignatureValue/><ds:KeyInfo><ds:X509Data><ds:X509Certificate>"
        f"{key.certificate()}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></ds:Signature>"
    )
    element.insert(1, signature)
    info, value = signature[0], signature[1]
    value.text = base64.b64encode(key.sign(canonical(info))).decode()


def encrypted(element: etree._Element, certificate: str, *, oaep11: bool) -> etree._Element:
    """The element as EncryptedData with its key beside it: AES-128-CBC, key transport by RSA-OAEP of either version."""
    secret, vector = os.urandom(16), os.urandom(16)
    plain = etree.tostring(element)
    fill = 16 - len(plain) % 16
    cipher = Cipher(algorithms.AES(secret), modes.CBC(vector)).encryptor()
    content = vector + cipher.update(plain + bytes(fill - 1) + bytes([fill])) + cipher.finalize()
    method, wrapped = _transport(secret, certificate, oaep11=oaep11)
    return etree.fromstring(
        f'<xenc:EncryptedData xmlns:xenc="{XENC}" Type="{XENC}Element">'
        f'<xenc:EncryptionMethod Algorithm="{XENC}aes128-cbc"/><ds:KeyInfo xmlns:ds="{DS}"><xenc:EncryptedKey>{method}'
        f"<xenc:CipherData><xenc:CipherValue>{base64.b64encode(wrapped).decode()}</xenc:CipherValue></xenc:CipherData>"
        "</xenc:EncryptedKey></ds:KeyInfo><xenc:CipherData>"
        f"<xenc:CipherValue>{base64.b64encode(content).decode()}</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>"
    )


def _transport(secret: bytes, certificate: str, *, oaep11: bool) -> tuple[str, bytes]:
    public = x509.load_der_x509_certificate(base64.b64decode(certificate)).public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    digest: hashes.HashAlgorithm = hashes.SHA256() if oaep11 else hashes.SHA1()
    oaep = padding.OAEP(mgf=padding.MGF1(algorithm=digest), algorithm=digest, label=None)
    name = f"{XENC}sha256" if oaep11 else f"{DS}sha1"
    generator = f'<xenc11:MGF xmlns:xenc11="{XENC11}" Algorithm="{XENC11}mgf1sha256"/>' if oaep11 else ""
    algorithm = f"{XENC11}rsa-oaep" if oaep11 else f"{XENC}rsa-oaep-mgf1p"
    method = (
        f'<xenc:EncryptionMethod Algorithm="{algorithm}"><ds:DigestMethod xmlns:ds="{DS}" Algorithm="{name}"/>'
        f"{generator}</xenc:EncryptionMethod>"
    )
    return method, public.encrypt(secret, oaep)
