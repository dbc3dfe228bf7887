"""One recorded file played against a fresh fake, over real HTTP.

Enters: lines of recorded/. Leaves: differences, each as `file n: sentence`. What the records leave unsaid (who `other key` is, what was set up between two lines) is
told by the files' own scripts: `before(file, n)` runs ahead of a line, `fact(file, n)` in place of one that sums up several exchanges.
"""

from __future__ import annotations

import base64
import io
import json
import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import aiohttp
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.logos import PNG
from tests.pocketid.contract.matching import Names, differences, projected
from yarl import URL

RECORDED = Path(__file__).parent / "recorded"
LARGE = 1_000_000
"""Bytes from which a body is streamed."""
Script = Callable[["Replay"], Awaitable[Any]]
_FACTS: dict[tuple[str, int], Script] = {}
_BEFORE: dict[tuple[str, int], Script] = {}
FAKES: dict[str, Callable[[], Fake]] = {
    "18-rate-limit": lambda: _fake(limited=True),
    "19-env-config": lambda: _fake(
        config={"cimdUrlAllowlist": '["https://app.example/"]', "requireUserEmail": "false"}
    ),
    "20-time-zone": lambda: _fake(zone_minutes=330),
}


def _fake(**options: Any) -> Fake:
    """A server as the recorded ones: a build that does not know its version, with what 2.14 can."""
    return Fake("unknown", level=(2, 14), **options)


def fact(file: str, *numbers: int) -> Callable[[Script], Script]:
    """Check what these lines sum up; the script returns what the record calls `fact`."""
    return _register(_FACTS, file, numbers)


def before(file: str, *numbers: int) -> Callable[[Script], Script]:
    """Do what the record does not show, ahead of these lines."""
    return _register(_BEFORE, file, numbers)


def _register(table: dict[tuple[str, int], Script], file: str, numbers: tuple[int, ...]) -> Callable[[Script], Script]:
    def keep(script: Script) -> Script:
        table.update({(file, number): script for number in numbers})
        return script

    return keep


@dataclass
class Reply:
    """An answer as it came."""

    status: int
    headers: Any
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Replay:
    """The state of one file's replay. `line` is the one being played."""

    fake: Fake
    url: str
    http: aiohttp.ClientSession
    names: Names = field(default_factory=Names)
    other_key: str = "another-key-0123456789"
    bearer: str = "no-token"
    line: dict[str, Any] = field(default_factory=dict)
    last: Reply | None = None
    found: list[str] = field(default_factory=list)

    async def send(
        self, method: str, path: str, *, auth: str = "", headers: dict[str, str] | None = None, **body: Any
    ) -> Reply:
        """One request; `path` is as it goes on the wire. `auth`: "" is the valid key, `none`, `other key`, `bearer`, `basic id:secret`."""
        sent = {**self._auth(auth), **(headers or {})}
        if "json" in body:
            body = {"data": json.dumps(body["json"]).encode()}
            sent = {"Content-Type": "application/json", **sent}
        if len(body.get("data") or b"") > LARGE:
            body = {"data": io.BytesIO(body["data"])}
        url = URL(f"{self.url}{path}", encoded=True)
        async with self.http.request(method, url, headers=sent, allow_redirects=False, **body) as answer:
            return Reply(answer.status, answer.headers, await answer.read())

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The JSON of an API call with the valid key."""
        reply = (
            await self.send(method, path, json=body, **options)
            if body is not None
            else await self.send(method, path, **options)
        )
        assert reply.status < 300, (method, path, reply.status, reply.content)
        return reply.json if reply.content else None

    async def log_in(self, user: str) -> str:
        """A session of that user."""
        code = (await self.ask("POST", f"/api/users/{user}/one-time-access-token", {"ttl": "60m"}))["token"]
        reply = await self.send("POST", f"/api/one-time-access-token/{code}", auth="none")
        return re.match(r"access_token=([^;]+)", reply.headers["Set-Cookie"])[1]  # type: ignore[index]

    def _auth(self, how: str) -> dict[str, str]:
        if how.startswith("basic "):
            return {"Authorization": "Basic " + base64.b64encode(self.names.filled(how[6:]).encode()).decode()}
        return {
            "": {"X-API-Key": self.fake.api_key}, "none": {}, "other key": {"X-API-Key": self.other_key},
            "bearer": {"Authorization": f"Bearer {self.bearer}"},
        }[how]  # fmt: skip


async def replay(file: str) -> list[str]:
    """Play a file; its differences."""
    lines = [json.loads(line) for line in (RECORDED / f"{file}.jsonl").read_text().splitlines()]
    fake = FAKES.get(file, _fake)()
    fake.insecure_callbacks = file != "25-insecure-callbacks-off"
    jar = aiohttp.DummyCookieJar()
    async with serving(fake) as url, aiohttp.ClientSession(cookie_jar=jar, skip_auto_headers=["Content-Type"]) as http:
        played = Replay(fake, url, http)
        played.names.values |= {"<app>": url, "<the valid key>": fake.api_key}
        for line in lines:
            played.line = line
            if (file, line["n"]) in _BEFORE:
                await _BEFORE[file, line["n"]](played)
            told = await _fact(played, file) if "fact" in line else await _exchange(played)
            played.found += [f"{file} {line['n']}: {why}" for why in told]
    return played.found


async def _fact(played: Replay, file: str) -> list[str]:
    script = _FACTS.get((file, played.line["n"]))
    if script is None:
        return ["a fact that nothing checks"]
    return differences(played.names, played.names.filled(played.line["fact"]), await script(played))


async def _exchange(played: Replay) -> list[str]:
    line = played.line
    path = line["path"] if "~" in line["path"] or "%" in line["path"] else _path(played, line)
    query = _pairs(played, line.get("query", []))
    headers, body = _body(played, line)
    headers |= played.names.filled(line.get("headers", {}))
    reply = await played.send(
        line["method"], path + (f"?{query}" if query else ""), auth=line.get("auth", ""), headers=headers, data=body
    )
    played.last = reply
    return _compare(played, line, reply)


def _path(played: Replay, line: dict[str, Any]) -> str:
    """The template with its values, ids made up where the record's were."""
    args = {name: _known(played, value) for name, value in line.get("args", {}).items()}
    if "{id}" in line["path"] and "id" not in args:
        args["id"] = played.names.values["<id1>"]
    return re.sub(r"\{(\w+)\}", lambda found: quote(args[found[1]], safe="~"), line["path"])


def _known(played: Replay, value: Any) -> Any:
    """Filled in; an id that no answer told is one that does not exist."""
    if isinstance(value, dict):
        return {key: _known(played, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_known(played, item) for item in value]
    if isinstance(value, str) and re.fullmatch(r"<id\d+>", value):
        return played.names.values.setdefault(value, str(uuid.uuid4()))
    if isinstance(value, str) and value.startswith("<time "):
        return _moment(played.line["case"], value)
    return played.names.filled(value)


def _moment(case: str, shape: str) -> str:
    away = timedelta(days=-1) if "past" in case else timedelta(seconds=2) if "in 2 s" in case else timedelta(days=30)
    zone = timezone(timedelta(hours=2)) if "offset" in shape else UTC
    text = (datetime.now(UTC) + away).astimezone(zone).replace(microsecond=123456 if "frac" in shape else 0).isoformat()
    return text.replace("+00:00", "Z")


def _body(played: Replay, line: dict[str, Any]) -> tuple[dict[str, str], Any]:
    if "form" in line:
        return {"Content-Type": "application/x-www-form-urlencoded"}, _pairs(played, line["form"]).encode()
    if "request" in line:
        return {"Content-Type": "application/json"}, json.dumps(_known(played, line["request"])).encode()
    kind = line.get("contentType")
    if "raw" not in line:
        return {}, None
    if kind == "multipart/form-data":
        return _multipart(line["raw"])
    if found := re.fullmatch(r"<(\d+) bytes>", line["raw"]):
        head, tail = f'{{"name":"{line["response"]["name"]}","x":"'.encode(), b'"}'
        return {"Content-Type": kind}, head + b"x" * (int(found[1]) - len(head) - len(tail)) + tail
    return ({"Content-Type": kind} if kind else {}), line["raw"].encode()


def _pairs(played: Replay, pairs: list[list[str]]) -> str:
    return urlencode([tuple(pair) for pair in played.names.filled(pairs)])


def _multipart(raw: str) -> tuple[dict[str, str], bytes]:
    found = re.fullmatch(r"<part (\w+), file name (\S+), (\d+) bytes in all>", raw)
    assert found
    size = 41 if found[2] == "d.svg" else 3 * 1024 * 1024 if int(found[3]) > 2_000_000 else 68
    head = f'--b0\r\nContent-Disposition: form-data; name="{found[1]}"; filename="{found[2]}"\r\n\r\n'.encode()
    return {"Content-Type": "multipart/form-data; boundary=b0"}, head + PNG.ljust(size, b"x") + b"\r\n--b0--\r\n"


# --- the answer


def _compare(played: Replay, line: dict[str, Any], reply: Reply) -> list[str]:
    names = played.names
    names.values["<same as header X-Request-ID>"] = reply.headers.get("X-Request-ID", "")
    found = [] if reply.status == line["status"] else [f"status: recorded {line['status']}, answered {reply.status}"]
    if "response" in line:
        found += _compare_json(names, line, reply)
    for name, value in line.get("responseHeaders", {}).items():
        found += differences(names, value, reply.headers.get(name), path=name)
    for member, header in (
        ("cacheControl", "Cache-Control"),
        ("retryAfter", "Retry-After"),
        ("responseType", "Content-Type"),
    ):
        if member in line:
            found += differences(names, line[member], reply.headers.get(header), path=header)
    if sized := re.match(r"<(\d+) bytes", line.get("responseBody", "")):
        found += differences(names, int(sized[1]), len(reply.content), path="size")
    if line.get("responseBody") == "<html>" and not reply.content:
        found.append("no page")
    if "setCookie" in line:
        wanted = re.escape(line["setCookie"][0]).replace("<value>", "[^;]+")
        found += [] if re.fullmatch(wanted, reply.headers.get("Set-Cookie", "")) else ["Set-Cookie: another"]
    return found + (
        _compare_location(names, line["location"], reply.headers.get("Location", "")) if "location" in line else []
    )


def _compare_json(names: Names, line: dict[str, Any], reply: Reply) -> list[str]:
    try:
        body = reply.json
    except ValueError:
        return ["the answer is no JSON"]
    body = projected(line["project"], body) if "project" in line else body
    return differences(names, line["response"], body, unordered=line.get("arbitraryOrder", False))


def _compare_location(names: Names, want: str, got: str) -> list[str]:
    """Address and parameters, in whatever encoding."""
    wanted, given = urlsplit(want.replace("<app>", names.values["<app>"])), urlsplit(got)
    found = differences(
        names, f"{wanted.scheme}://{wanted.netloc}{wanted.path}", f"{given.scheme}://{given.netloc}{given.path}"
    )
    params = [dict(parse_qsl(part, keep_blank_values=True)) for part in (wanted.query, given.query)]
    return found + differences(names, params[0], params[1], path="Location")
