"""Tokens: what the server signs, and how it checks an assertion of somebody else.

Enters: claims, or a token and keys. Leaves: a token, or claims; a Refusal when it does not hold. RS256 and ES256.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

CURVES = {"P-256": ec.SECP256R1}


class Refusal(Exception):
    """The token does not hold."""


def unb64(text: str) -> bytes:
    """Base64 for URLs; padding may be left out."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims_of(token: str) -> dict[str, Any]:
    """The claims, unchecked."""
    try:
        claims = json.loads(unb64(token.split(".")[1]))
    except (ValueError, IndexError):
        raise Refusal("no JWT") from None
    if not isinstance(claims, dict):
        raise Refusal("no claims")
    return claims


def verify(token: str, keys: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The claims, signed by one of these keys."""
    claims = claims_of(token)
    try:
        head, _, signature = token.rpartition(".")
        header, raw = json.loads(unb64(head.split(".")[0])), unb64(signature)
    except ValueError:
        raise Refusal("no JWT") from None
    for key in keys:
        if header.get("kid") in (None, key.get("kid")) and _signed(key, header.get("alg"), head.encode(), raw):
            return claims
    raise Refusal("no key fits")


def _signed(key: dict[str, Any], alg: Any, data: bytes, signature: bytes) -> bool:
    try:
        if key.get("kty") == "RSA" and alg == "RS256":
            public = rsa.RSAPublicNumbers(_integer(key["e"]), _integer(key["n"])).public_key()
            public.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
            return True
        if key.get("kty") == "EC" and alg == "ES256":
            numbers = ec.EllipticCurvePublicNumbers(_integer(key["x"]), _integer(key["y"]), CURVES[key["crv"]]())
            halves = (int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
            numbers.public_key().verify(encode_dss_signature(*halves), data, ec.ECDSA(hashes.SHA256()))
            return True
    except (InvalidSignature, KeyError, ValueError):
        return False
    return False


def _integer(text: str) -> int:
    return int.from_bytes(unb64(text), "big")
