"""ServiceAccount tokens: signed JWTs, bound to an account, a time and an audience.

Enters: accounts and wishes. Leaves: tokens, and the users that valid tokens stand for. Source: RFC 7515, 7519; TokenRequest.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from moorage.apiserver.hub import Hub
from moorage.apiserver.request import User
from moorage.core.meta import JsonObject

ISSUER = "https://kubernetes.default.svc"
_SIZE = 32


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True, slots=True)
class Claim:
    """What a token is to say."""

    namespace: str
    account: str
    uid: str
    audiences: tuple[str, ...]
    seconds: int
    bound: JsonObject | None = None


class Tokens:
    """Signs and checks tokens with the server's key."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, hub: Hub, clock: Callable[[], datetime]) -> None:
        self._key, self._hub, self._clock = key, hub, clock

    def issue(self, claim: Claim) -> tuple[str, int]:
        """A token and the second (since the epoch) at which it expires."""
        now = int(self._clock().timestamp())
        about: JsonObject = {
            "namespace": claim.namespace,
            "serviceaccount": {"name": claim.account, "uid": claim.uid},
        }
        if claim.bound:
            about[claim.bound["kind"].lower()] = {"name": claim.bound["name"], "uid": claim.bound["uid"]}
        body = {
            "aud": list(claim.audiences), "exp": now + claim.seconds, "iat": now, "iss": ISSUER, "jti": str(uuid.uuid4()),
            "kubernetes.io": about, "nbf": now, "sub": f"system:serviceaccount:{claim.namespace}:{claim.account}",
        }  # fmt: skip
        head = {"alg": "ES256", "typ": "JWT"}
        text = ".".join(_encode(json.dumps(part, separators=(",", ":")).encode()) for part in (head, body))
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_encode(r.to_bytes(_SIZE) + s.to_bytes(_SIZE))}", now + claim.seconds

    def user(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> User | None:
        """The user of a token that is ours, in its time, for one of the audiences, and whose account still exists."""
        body = self._verified(token)
        if body is None or not set(body["aud"]) & set(audiences):
            return None
        now, about = self._clock().timestamp(), body["kubernetes.io"]
        if not body["nbf"] - 60 <= now < body["exp"]:
            return None
        namespace, account = about["namespace"], about["serviceaccount"]
        if not self._alive("serviceaccounts", namespace, account):
            return None
        for kind, storage in (("pod", "pods"), ("secret", "secrets")):
            if kind in about and not self._alive(storage, namespace, about[kind]):
                return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        extra = {"authentication.kubernetes.io/credential-id": (f"JTI={body['jti']}",)}
        if "pod" in about:
            extra["authentication.kubernetes.io/pod-name"] = (about["pod"]["name"],)
            extra["authentication.kubernetes.io/pod-uid"] = (about["pod"]["uid"],)
        return User(body["sub"], groups, account["uid"], extra)

    def audiences(self, token: str) -> tuple[str, ...]:
        """The audiences of a token that was signed here; empty for any other."""
        body = self._verified(token)
        return tuple(body["aud"]) if body else ()

    def _alive(self, storage: str, namespace: str, named: JsonObject) -> bool:
        entry = self._hub.get(storage, f"{namespace}/{named['name']}")
        return entry is not None and entry.parse()["metadata"]["uid"] == named["uid"]

    def _verified(self, token: str) -> JsonObject | None:
        text, _, signature = token.rpartition(".")
        try:
            head, body = (json.loads(_decode(part)) for part in text.split("."))
            raw = _decode(signature)
            if head.get("alg") != "ES256" or len(raw) != 2 * _SIZE:
                return None
            pair = encode_dss_signature(int.from_bytes(raw[:_SIZE]), int.from_bytes(raw[_SIZE:]))
            self._key.public_key().verify(pair, text.encode(), ec.ECDSA(hashes.SHA256()))
        except (ValueError, TypeError, AttributeError, binascii.Error, InvalidSignature):
            return None
        found: JsonObject = body
        return found if found.get("iss") == ISSUER else None
