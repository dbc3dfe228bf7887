"""What a hostile Keystone or provider writes does not reach people through conditions and events: no secret, no markup, no more than one bounded line.

Of a provider nothing is repeated at all; of Keystone only the sentence of its own error, cleaned (defect S7).
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moorage.keystone.backend import metadata_oidc, metadata_saml
from moorage.keystone.backend.materials import Document
from moorage.keystone.identity_errors import SENTENCE_LIMIT
from moorage.runtime.room import Event

from .descriptors import ENTITY, ISSUER, descriptor, discovered, key_descriptor, provider, sign_on
from .scene import KEY, Scene, scene
from .waiting import settle

pytestmark = pytest.mark.case("S7")

EVE = "eve-was-here"
PASSWORD = "admin-password"
HOSTILE = f"line\r\nReady=True\x1b[31m\x00 {EVE} {PASSWORD} $TOKEN \u2028<script>{'A' * 5000}"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
FRAME = 600
"""Characters of our own words around a foreign sentence, at most."""


# --- Keystone

BODIES = {
    "its own error": json.dumps({"error": {"code": 1, "message": HOSTILE, "title": HOSTILE}}),
    "a page": f"<html>{HOSTILE}</html>",
    "another shape": json.dumps({EVE: HOSTILE, "error": HOSTILE}),
    "nothing": "",
}
STATUSES = (302, 400, 401, 403, 409, 413, 500, 503)
REQUESTS = (
    "GET /v3/domains",
    "POST /v3/domains",
    "GET .*/identity_providers",
    "PUT .*/identity_providers/acme$",
    "PATCH .*/identity_providers",
    "PUT .*/mappings/",
    "PUT .*/protocols/",
    "GET /v3/groups",
    "POST /v3/groups",
    "GET /v3/roles",
    "PUT .*/roles/",
    "POST /v3/auth/tokens",
)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made


async def _said(here: Scene, told: list[Event]) -> list[str]:
    """Everything that a person can read after these passes."""
    stored = await here.stored()
    assert stored is not None
    conditions = [item["message"] for item in (stored.get("status") or {}).get("conditions") or ()]
    return [*conditions, *(event.message for event in told), json.dumps(stored.get("status") or {}, ensure_ascii=False)]


def _harmless(text: str, whole: str, *tokens: str) -> None:
    for secret in (PASSWORD, *tokens):
        assert secret not in text, whole
    assert not _CONTROL.search(text), whole
    assert "A" * (SENTENCE_LIMIT + 1) not in text, whole


@pytest.mark.parametrize("body", BODIES)
async def test_what_keystone_answers_is_one_bounded_line_without_a_secret(here: Scene, body: str) -> None:
    """At each request of an attach, with each status; the attach ends well once Keystone is itself again."""
    await here.oidc()
    told: list[Event] = []
    for pattern in REQUESTS:
        for status in STATUSES:
            here.stub.fail(pattern, status, body=BODIES[body], times=3)
            await settle(here, told)
            here.stub.failures.clear()
            for text in await _said(here, told):
                _harmless(text, f"{pattern} {status}: {text}", *here.stub.tokens)
        await here.attach(KEY.name)
    await settle(here, told)
    assert all(len(event.message) <= SENTENCE_LIMIT + FRAME for event in told)
    assert any("Keystone answered" in event.message for event in told), "nothing was told at all"


# --- providers


def _discovery() -> Iterator[tuple[str, bytes]]:
    """Discovery documents with foreign text at every place, none of which is acceptable."""
    good = json.loads(discovered())
    for name in ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "introspection_endpoint"):
        for value in (HOSTILE, f"javascript:{EVE}", f"https://{EVE}@idp.example.org/", [EVE], {EVE: EVE}):
            yield f"{name} {type(value).__name__}", json.dumps({**good, name: value}).encode()
    yield "text", HOSTILE.encode()
    yield "a list", json.dumps([HOSTILE]).encode()
    yield "twice", f'{{"{EVE}": 1, "{EVE}": 2}}'.encode()
    yield "a number", json.dumps({**good, EVE: 10**40}).encode()
    yield "deep", json.dumps({**good, EVE: _deep(300)}).encode()
    yield "large", json.dumps({**good, EVE: "A" * 600_000}).encode()
    yield "bytes", b"\xff\xfe\x00" + EVE.encode()


def _deep(levels: int) -> Any:
    value: Any = EVE
    for _ in range(levels):
        value = [value]
    return value


def _descriptors() -> Iterator[tuple[str, str]]:
    """SAML documents of the same kind."""
    yield "entityID", descriptor(entity=f"https://{EVE}")
    yield "validUntil", descriptor(more=f'validUntil="{EVE}"')
    yield "protocol", descriptor(provider(protocol=EVE))
    yield "location", descriptor(provider(key_descriptor("AAAA"), sign_on(f"javascript:{EVE}")))
    yield "binding", descriptor(provider(key_descriptor("AAAA"), sign_on(binding=EVE)))
    yield "certificate", descriptor(provider(key_descriptor(EVE), sign_on()))
    yield "a second one", descriptor(f'<md:EntityDescriptor entityID="{EVE}"/>')
    yield "broken", f"<{EVE}><{EVE}>"
    yield "entity", f"<!DOCTYPE {EVE} [<!ENTITY {EVE} '{EVE}'>]><x>&{EVE};</x>"
    yield "undefined entity", descriptor(f"&{EVE};")
    yield "root", f"<{EVE} xmlns='urn:{EVE}'/>"
    yield "encoding", f"<?xml version='1.0' encoding='{EVE}'?><x/>"
    yield "text", HOSTILE


@pytest.mark.parametrize(
    ("name", "content"), [*_discovery()], ids=lambda value: value if isinstance(value, str) else ""
)
def test_of_a_discovery_document_nothing_is_repeated(name: str, content: bytes) -> None:
    """Neither values nor names of members; the sentence says which of ours is meant."""
    found = metadata_oidc.parse(content, ISSUER)
    assert not isinstance(found, Document), name
    _harmless(found.message, found.message)
    assert EVE not in found.message
    assert len(found.message) <= SENTENCE_LIMIT + FRAME


@pytest.mark.parametrize(("name", "content"), [*_descriptors()], ids=lambda value: value[:20])
def test_of_saml_metadata_nothing_is_repeated(name: str, content: str) -> None:
    """The XML reader's own words are not passed on either: they quote the document."""
    found = metadata_saml.parse(content, ENTITY, now=datetime(2030, 1, 1, tzinfo=UTC))
    assert not isinstance(found, Document), name
    _harmless(found.message, found.message)
    assert EVE not in found.message
    assert len(found.message) <= SENTENCE_LIMIT + FRAME
