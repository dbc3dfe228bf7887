"""Takes out of an answer what may differ between two right servers: identities, times, addresses, tokens.

Enters: decoded answers of one case, in order. Leaves: the same trees with names such as `<uid 1>`: the same thing has the same name
throughout a case, so "the version did not change" and "the owner is that object" are still compared.
"""

from __future__ import annotations

import re
from typing import Any

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_FIXED = re.compile(r"\b20(2[0-4]|9\d)-")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
_CERTIFICATE = re.compile(r"(-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?)+")
_IP = re.compile(r"\b10\.0\.0\.\d+\b(?!/)")
_AGE = re.compile(r"(?<=\s)(\d+[smh])+(?=\s|$)|<invalid>")
_PRINTED = re.compile(r'(resourceVersion: |Resource Version: +)"?\d+"?')
_LONG_TIME = re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}")
_DIFFED = re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}")
_CURRENT = re.compile(r"(?<=, current: )\d+|(?<=in record \()\d+")
LONG = 3000


class Normaliser:
    """Names given so far in one case."""

    def __init__(self, replaced: dict[str, str]) -> None:
        self._replaced = replaced
        self._uids: dict[str, str] = {}
        self._versions: dict[str, dict[str, str]] = {}
        self._named: dict[str, str] = {}
        self._called: dict[str, str] = {}
        self._stems: list[str] = []
        self._aged: list[int] = []

    def expect(self, body: Any, raw: str = "") -> None:
        """A request that lets the server choose a name: that name is random wherever it stands from now on."""
        meta = body.get("metadata") if isinstance(body, dict) else None
        stems = [meta.get("generateName")] if isinstance(meta, dict) else re.findall(r'"generateName":"([^"]+)"', raw)
        self._stems += [stem for stem in stems if isinstance(stem, str) and stem and stem not in self._stems]

    def text(self, text: str) -> str:
        """One string."""
        for found, name in self._replaced.items():
            text = text.replace(found, name)
        for stem in self._stems:
            text = re.sub(rf"\b{re.escape(stem)}[bcdfghjklmnpqrstvwxz2456789]{{5}}\b", f"{stem}<random>", text)
        text = _CERTIFICATE.sub("<certificate>", text)
        text = _UUID.sub(lambda m: self._uid(m[0]), text)
        text = _TIME.sub(lambda m: m[0] if _FIXED.match(m[0]) else "<time>", text)
        text = _CURRENT.sub("<version>", _IP.sub("<ip>", _TOKEN.sub("<token>", text)))
        return text if len(text) <= LONG else f"<{len(text)} characters>"

    def _version(self, thing: str, version: str) -> str:
        """Numbered for each object, so that one write more or less is told once, not of every later object."""
        known = self._versions.setdefault(thing, {})
        return known.setdefault(version, f"<version {len(known) + 1}>")

    def _learn(self, value: Any) -> None:
        """Objects give their uid a name that other objects and messages then refer to."""
        if isinstance(value, list):
            for item in value:
                self._learn(item)
        elif isinstance(value, dict):
            meta = value.get("metadata")
            if isinstance(meta, dict) and isinstance(uid := meta.get("uid"), str) and _UUID.fullmatch(uid):
                kind, name = value.get("kind", ""), self.text(str(meta.get("name", "")))
                self._named.setdefault(uid, f"{kind} {name}".strip())
            for item in value.values():
                self._learn(item)

    def _uid(self, uid: str) -> str:
        if uid not in self._uids:
            wanted = self._named.get(uid, "thing")
            number = 1 + sum(name == wanted for name in self._called.values())
            self._called[uid] = wanted
            self._uids[uid] = f"<uid of {wanted}>" if number == 1 else f"<uid of {wanted}, number {number}>"
        return self._uids[uid]

    def tree(self, value: Any) -> Any:
        """A whole answer."""
        self._learn(value)
        return self._walk(value)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            return self._object(value)
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        out = {self.text(key): self._walk(item) for key, item in value.items()}
        meta = value.get("metadata")
        if isinstance(meta, dict) and isinstance(meta.get("resourceVersion"), str):
            thing, version = str(meta.get("uid") or meta.get("name") or ""), meta["resourceVersion"]
            out["metadata"]["resourceVersion"] = (
                self._version(thing, version) if thing else ("<version>" if version else "")
            )
        if isinstance(meta, dict) and meta.get("continue"):
            out["metadata"]["continue"] = "<continue>"
        if value.get("kind") == "Table":
            self._table(out)
        return out

    def _table(self, table: dict[str, Any]) -> None:
        """Ages are not compared; of a watch only the first table says which columns they are."""
        if columns := table.get("columnDefinitions"):
            self._aged = [i for i, column in enumerate(columns) if column.get("name") in _TIMED]
        for row in table.get("rows") or []:
            for i in self._aged:
                if i < len(row.get("cells", [])):
                    row["cells"][i] = "<age>"

    def terminal(self, text: str) -> str:
        """What a command printed: ages and the width of columns are not compared."""
        text = _DIFFED.sub("<time>", re.sub(r"/tmp/(LIVE|MERGED)-\d+", r"/tmp/\1", text))
        text = _PRINTED.sub(lambda m: f"{m[1]}<version>", _LONG_TIME.sub("<time>", text))
        lines = [re.sub(r" {2,}|\t+", "  ", line.rstrip()) for line in _AGE.sub("<age>", self.text(text)).splitlines()]
        return "\n".join(lines)


_TIMED = {"Age", "Last Seen", "First Seen", "Duration"}
