"""Client secrets, as the server keeps them: a hash, four characters, twenty a client.

Enters: a Call. Leaves: an answer; a value is seen in the answer to its creation only. Source: spec/pocketid.md 4.3; records 07, 22.
"""

from __future__ import annotations

import re
import secrets
import string
from datetime import datetime
from typing import Any

from .exchange import NOTHING, Answer, Call, json_answer
from .model import Client, Secret, digest
from .reading import as_members, missing, one_of, refused, unreadable

CAP = 20
ALPHABET = string.ascii_letters + string.digits
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def _client(call: Call) -> Client:
    client: Client = one_of(call.store.clients, call.params["id"], "OIDC client")
    return client


def read_all(call: Call) -> Answer:
    return json_answer(call.fake.shown.secrets(_client(call)))


def create(call: Call) -> Answer:
    body = as_members(call.json() if call.request.body else None)
    value, expires = body.text("secret") or None, body.text("expiresAt")
    moment = None if expires is None else _moment(expires)
    if value is not None and not all(" " <= char <= "~" for char in value):
        raise refused(("secret", "printascii"))
    if value is not None and len(value) < 16:
        raise refused(("secret", "too_short"))
    client = _client(call)
    if client.public or client.type == "cimd" or len(client.secrets) >= CAP:
        raise refused()
    if moment is not None and moment * 1e9 <= call.now:
        raise refused()
    return json_answer(minted(call, client, value, expires), 201)


def _moment(text: str) -> float:
    if not _RFC3339.fullmatch(text):
        raise unreadable()
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise unreadable() from None


def minted(call: Call, client: Client, value: str | None, expires: str | None) -> dict[str, Any]:
    """Add a secret; as the server tells it, this once."""
    value = value or generated(call)
    secret = Secret(digest(value), value[:4], call.now, expires)
    client.secrets.append(secret)
    call.fake.told.setdefault(client.id, []).append(value)
    return call.fake.shown.secret(secret) | {"secret": value}


def generated(call: Call) -> str:
    """32 letters and digits; a test may force how the next ones begin."""
    forced = call.fake.forced_prefixes.popleft() if call.fake.forced_prefixes else ""
    return forced + "".join(secrets.choice(ALPHABET) for _ in range(32 - len(forced)))


def delete(call: Call) -> Answer:
    client = _client(call)
    kept = [item for item in client.secrets if item.id != call.params["sid"]]
    if len(kept) == len(client.secrets):
        raise missing("Client secret")
    client.secrets = kept
    return NOTHING
