"""Assertions of another issuer in place of a secret.

Enters: a client, one of its identities, a token. Leaves: nothing, or a Refusal. Keys come from the identity itself, from its `jwks`, or from its issuer; addresses
of this machine are not refused. Source: spec/pocketid.md 4.11; records 23.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aiohttp

from .clock import SECOND
from .jose import Refusal, verify

if TYPE_CHECKING:
    from .fake import Fake
    from .model import Client

JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TIMEOUT = aiohttp.ClientTimeout(total=10)


async def asserted(fake: Fake, client: Client, identity: dict[str, Any], token: str) -> None:
    """Whether the token speaks for the client: signature, subject, audience, end, and not a second time."""
    claims = verify(token, identity["publicKeys"] or await _keys(identity))
    audience = claims.get("aud")
    heard = audience if isinstance(audience, list) else [audience]
    if claims.get("sub") != (identity["subject"] or client.id) or (identity["audience"] or fake.app_url) not in heard:
        raise Refusal("of somebody else, or for somebody else")
    end = claims.get("exp")
    if not isinstance(end, (int, float)) or end * SECOND <= fake.clock.now():
        raise Refusal("it has ended, or never ends")
    if identity["replayProtection"]:
        used = (identity["issuer"], str(claims.get("jti") or ""))
        if not used[1] or used in fake.issued.used_assertions:
            raise Refusal("used before")
        fake.issued.used_assertions.add(used)


async def _keys(identity: dict[str, Any]) -> list[dict[str, Any]]:
    url = identity["jwks"] or f"{identity['issuer'].rstrip('/')}/.well-known/jwks.json"
    try:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session, session.get(url) as answer:
            keys = json.loads(await answer.read())["keys"]
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError):
        raise Refusal("no keys") from None
    return [key for key in keys if isinstance(key, dict)]
