"""Logos: what the server downloads is told by a table, what people upload is kept.

Enters: a Call. Leaves: an answer, or the refusal of a download, after the row is committed. No network: addresses that are not public are refused by their text,
everything else by `fake.logos` (URL -> `ok`, `missing`, `slow`, `private`, `type`, `large`). Source: spec/pocketid.md 4.4; records 09.
"""

from __future__ import annotations

import email.parser
import email.policy
import ipaddress
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from .exchange import NOTHING, Answer, Call
from .model import Client
from .reading import Members, Problem, one_of, refused, unreadable

TYPES = {
    ".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
    ".ico": "image/x-icon", ".gif": "image/gif", ".avif": "image/avif", ".heic": "image/heic",
}  # fmt: skip
MOST = 2 * 1024 * 1024
_REFUSALS = {
    "missing": "logo_download_failed", "slow": "logo_download_failed", "type": "logo_type_not_supported", "large": "logo_too_large",
}  # fmt: skip
PNG = b"\x89PNG\r\n\x1a\n"


def fetch_logos(call: Call, client: Client, body: Members) -> None:
    """The downloads of a write, light first; the first failure hides the other side."""
    for side, member in (("light", "logoUrl"), ("dark", "darkLogoUrl")):
        url = body.text(member)
        if url is not None:
            client.logos[side] = _download(call, url)


def _download(call: Call, url: str) -> tuple[str, bytes]:
    call.fake.downloads.append(url)
    if not _public(url):
        raise refused(("logoUrl", "invalid_value"))
    outcome = call.fake.logos.get(url, "missing" if (urlsplit(url).hostname or "").endswith(".invalid") else "ok")
    if outcome == "private":
        raise refused(("logoUrl", "invalid_value"))
    if outcome in _REFUSALS:
        raise Problem(422, _REFUSALS[outcome])
    return TYPES.get(PurePosixPath(urlsplit(url).path).suffix.lower(), "image/png"), PNG


def _public(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not host or host == "localhost":
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return True


def _client(call: Call) -> Client:
    client: Client = one_of(call.store.clients, call.params["id"], "OIDC client")
    return client


def _side(call: Call) -> str:
    """A value that is no boolean counts as false."""
    return "light" if call.query.get("light", "true").lower() in ("true", "1", "t") else "dark"


def read(call: Call) -> Answer:
    logos = _client(call).logos
    kept = logos.get(_side(call)) or logos.get("light")
    if kept is None:
        raise Problem(404, "image_not_found")
    return Answer(
        200, kept[1], {"Content-Type": kept[0], "Cache-Control": "public, max-age=900, stale-while-revalidate=43200"}
    )


def upload(call: Call) -> Answer:
    """The name's extension alone tells the type."""
    part = _part(call)
    client = _client(call)
    if part is None:
        raise refused(("file", "required"))
    name, content = part
    kind = TYPES.get(PurePosixPath(name).suffix.lower())
    if len(content) > MOST:
        raise Problem(413, "file_too_large", max_size="2.00 MB")
    if kind is None:
        raise Problem(415, "file_type_not_supported")
    client.logos[_side(call)] = (kind, content)
    return NOTHING


def _part(call: Call) -> tuple[str, bytes] | None:
    if not (call.request.content_type or "").startswith("multipart/form-data"):
        raise unreadable()
    head = f"Content-Type: {call.request.content_type}\r\n\r\n".encode()
    whole = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + call.request.body)
    for part in whole.iter_parts():
        if part.get_param("name", header="content-disposition") == "file":
            content = part.get_payload(decode=True)
            return part.get_filename() or "", content if isinstance(content, bytes) else b""
    return None


def delete(call: Call) -> Answer:
    client = _client(call)
    if client.logos.pop(_side(call), None) is None:
        raise Problem(404, "image_not_found")
    return NOTHING
