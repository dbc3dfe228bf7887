"""Remote control of a fake in another process: `/_fake/journal`, `/_fake/faults`, `/_fake/server`, `/_fake/clients/...`.

Enters: a request below `/_fake/`. Leaves: JSON. In the test's own process, touch the Fake itself.

    GET    /_fake/journal                 {"entries": [{number, method, path, route, who, status, body}]}
    DELETE /_fake/journal
    POST   /_fake/faults                  members of `Fault`, e.g. {"kind": "drop_after", "method": "POST", "path": "*/secrets"}
    DELETE /_fake/faults
    POST   /_fake/server                  any of version, api_key, clock_offset, forced_prefixes, logos, documents, config, insecure_callbacks, refuse_first
    POST   /_fake/legacy-secret           {"client", "secret"}
    POST   /_fake/cimd-client             {"url", "name", "callbacks"}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from .exchange import Answer, Request, json_answer
from .fake import Fake

PREFIX = "/_fake/"


def controlled(fake: Fake, request: Request) -> Answer:
    """Do it."""
    body = json.loads(request.body) if request.body else {}
    handler = _HANDLERS.get((request.method, request.path.removeprefix(PREFIX)))
    if handler is None:
        return json_answer({"error": "no such control"}, 404)
    return json_answer(handler(fake, body) or {})


def _journal(fake: Fake, _body: Any) -> Any:
    return {"entries": [asdict(entry) for entry in fake.journal]}


def _server(fake: Fake, body: dict[str, Any]) -> None:
    if "version" in body:
        fake.upgrade(body["version"])
    fake.clock.offset = float(body.get("clock_offset", fake.clock.offset))
    fake.forced_prefixes.extend(body.get("forced_prefixes", ()))
    for name in ("logos", "documents", "config"):
        getattr(fake, name).update(body.get(name, {}))
    for name in ("api_key", "insecure_callbacks", "refuse_first"):
        setattr(fake, name, body.get(name, getattr(fake, name)))


_HANDLERS: dict[tuple[str, str], Callable[[Fake, Any], Any]] = {
    ("GET", "journal"): _journal,
    ("DELETE", "journal"): lambda fake, _body: fake.journal.clear(),
    ("POST", "faults"): lambda fake, body: {"rules": len(fake.faults.rules)} if fake.faults.add(**body) else None,
    ("DELETE", "faults"): lambda fake, _body: fake.faults.clear(),
    ("POST", "server"): _server,
    ("POST", "legacy-secret"): lambda fake, body: {"id": fake.place_legacy_secret(body["client"], body["secret"])},
    ("POST", "cimd-client"): lambda fake, body: fake.place_cimd_client(body["url"], body["name"], body["callbacks"]),
}
