"""AdmissionReview over HTTP.

Enters: requests of an API server. Leaves: reviews; for anything else a clean refusal: 404 unknown path, 405 not POST, 413 too
large, 408 too slow, 415 not JSON, 400 no AdmissionReview. It never redirects, and a bad request never ends the process (case B79).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from moorage.calling import wire
from moorage.schema.review import Admission
from moorage.serving.connection import Application, Exchange, Response

from .admission import Malformed, Siblings, Webhooks, no_siblings, utc_now

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
) -> Application:
    """The application of all webhooks, whose bodies may have MOST bytes; `counted` hears path and status of each review."""
    answers = Webhooks(admissions, siblings, now).answers()

    async def app(exchange: Exchange) -> Response:
        path = exchange.path
        try:
            decide = answers.get(path)
            if decide is None:
                raise _Refused(404, "no webhook has this path")
            status, body = 200, wire.dumps(decide(_decoded(exchange)))
        except Malformed as error:
            status, body = 400, _status(400, "BadRequest", str(error))
        except _Refused as error:
            status, body = error.status, _status(error.status, "BadRequest", error.why)
        counted(path if path in answers else "", status)
        return Response(status, body)

    return app


def _decoded(exchange: Exchange) -> dict[str, object]:
    if exchange.method != "POST":
        raise _Refused(405, "a review is sent by POST")
    if exchange.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise _Refused(415, "a review is application/json")
    if exchange.fault == "large":
        raise _Refused(413, f"a review has at most {MOST} bytes")
    if exchange.fault:
        raise _Refused(408, "the body did not come in time")
    try:
        return wire.loads(exchange.body)  # type: ignore[no-any-return]
    except (ValueError, RecursionError) as error:
        raise _Refused(400, "the body is not JSON") from error


def _status(code: int, reason: str, message: str) -> bytes:
    status = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure"}
    return wire.dumps({**status, "code": code, "reason": reason, "message": message})
