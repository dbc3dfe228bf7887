"""AdmissionReview over HTTP.

Enters: requests of an API server. Leaves: reviews; for anything else a clean refusal: 404 unknown path, 405 not POST, 413 too
large, 415 not JSON, 400 no AdmissionReview. It never redirects, and a bad request never ends the process (case B79).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime

from moorage.schema.review import Admission

from .admission import Malformed, Siblings, Webhooks, no_siblings, utc_now
from .health import App, Receive, Scope, Send, answer

MOST = 7 * 1024 * 1024
"""Bytes of a review: two objects of at most 3 MiB and what goes with them."""

Counted = Callable[[str, int], None]


class _Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


def serve(
    admissions: Sequence[Admission],
    siblings: Siblings = no_siblings,
    *,
    now: Callable[[], datetime] = utc_now,
    counted: Counted = lambda _path, _status: None,
) -> App:
    """The ASGI app of all webhooks; `counted` hears path and status of each review."""
    answers = Webhooks(admissions, siblings, now).answers()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        try:
            decide = answers.get(path)
            if decide is None:
                raise _Refused(404, "no webhook has this path")
            status, body = 200, json.dumps(decide(await _decoded(scope, receive)), separators=(",", ":")).encode()
        except Malformed as error:
            status, body = 400, _status(400, "BadRequest", str(error))
        except _Refused as error:
            status, body = error.status, _status(error.status, "BadRequest", error.why)
        counted(path if path in answers else "", status)
        await answer(send, status, body, "application/json")

    return app


async def _decoded(scope: Scope, receive: Receive) -> dict[str, object]:
    if scope["method"] != "POST":
        raise _Refused(405, "a review is sent by POST")
    headers = dict(scope["headers"])
    if headers.get(b"content-type", b"").split(b";")[0].strip() != b"application/json":
        raise _Refused(415, "a review is application/json")
    body = await _body(receive)
    try:
        return json.loads(body)  # type: ignore[no-any-return]
    except (ValueError, RecursionError) as error:
        raise _Refused(400, "the body is not JSON") from error


async def _body(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refused(400, "the body ended early")
        part = message.get("body", b"")
        size += len(part)
        if size > MOST:
            raise _Refused(413, f"a review has at most {MOST} bytes")
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _status(code: int, reason: str, message: str) -> bytes:
    status = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure"}
    return json.dumps({**status, "code": code, "reason": reason, "message": message}).encode()
