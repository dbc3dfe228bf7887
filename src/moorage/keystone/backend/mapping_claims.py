"""Claims as Keystone's environ holds them.

Enters: claims as a person has them: a token's JSON, an assertion's attributes, or environ keys. Leaves: environ keys and texts, and what
does not arrive. It is what mod_auth_openidc and mod_auth_mellon do on the way, as far as mapping rules see it. Source: spec/keystone.md 3.2,
3.4, 3.6; cases B17, B20, B38, B40.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

OIDC: Final = "HTTP_OIDC_"
MELLON: Final = "HTTP_MELLON_"
_ENVIRON: Final = re.compile(r"HTTP_[A-Z0-9_]+|REMOTE_USER")
_HEADER: Final = re.compile(r"(?i)(OIDC|MELLON)[-_]")
_OTHER: Final = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Environ:
    """`values`: environ key to text. `lost`: sentences about claims that do not arrive, or not as they were."""

    values: Mapping[str, str]
    lost: tuple[str, ...] = ()


def environ_key(name: str, prefix: str) -> str:
    """The key under which a claim arrives; a name that is one already stays as it is."""
    if _ENVIRON.fullmatch(name):
        return name
    plain = _OTHER.sub("_", name).upper()
    return f"HTTP_{plain}" if _HEADER.match(name) else prefix + plain


def environ(claims: Mapping[str, Any], prefix: str = OIDC) -> Environ:
    """All claims as they arrive.

    Args:
        prefix: of claims that are not spelled as environ keys or as headers: OIDC or MELLON.
    """
    values: dict[str, str] = {}
    lost: list[str] = []
    for name, value in claims.items():
        key = environ_key(name, prefix)
        if key in values:
            lost.append(f"{name}: another claim arrives as {key} already, one of them is lost")
        elif (text := _text(name, value, lost)) is not None:
            values[key] = " ".join(text.split("\n"))
    return Environ(values, tuple(lost))


def _text(name: str, value: Any, lost: list[str]) -> str | None:
    match value:
        case None:
            lost.append(f"{name}: null does not arrive")
            return None
        case bool():
            return "1" if value else "0"
        case float():
            return f"{value:f}"
        case str() | int():
            return str(value)
        case list():
            return _joined(name, value, lost)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _joined(name: str, values: list[Any], lost: list[str]) -> str:
    """Values of a list, with `;` between them; only texts and truths arrive."""
    texts: list[str] = []
    for value in values:
        if not isinstance(value, str | bool):
            lost.append(f"{name}: {json.dumps(value, ensure_ascii=False)} in a list does not arrive")
            continue
        text = value if isinstance(value, str) else "1" if value else "0"
        if ";" in text:
            lost.append(f"{name}: {text!r} holds a ; and arrives as several values")
        if text or texts:
            texts.append(text)
    return ";".join(texts)
