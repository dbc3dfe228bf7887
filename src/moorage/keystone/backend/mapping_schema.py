"""Whether a value has the form of Keystone's mapping rules (attribute mapping schema 1.0).

Enters: decoded JSON. Leaves: the first fault in words, or nothing. Rules that come from a declared backend need no such check: they were
admitted. Source: the API reference of Keystone, OS-FEDERATION mappings; the suite holds it against Keystone's own schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .mapping_rules import LISTS

_Check = Callable[[Any, str], Iterator[str]]


def fault(rules: Any) -> str:
    """The first fault with its place, "" when the rules are well-formed."""
    return next(_list(_rule, least=1)(rules, "rules"), "")


def _text(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{path} is not text"


def _list(check: _Check, least: int = 0) -> _Check:
    def checked(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{path} is not a list"
        elif len(value) < least:
            yield f"{path} is empty"
        else:
            for index, item in enumerate(value):
                yield from check(item, f"{path}[{index}]")

    return checked


def _object(fields: Mapping[str, _Check], *required: str) -> _Check:
    def checked(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{path} is not an object"
            return
        for name in required:
            if name not in value:
                yield f"{path}.{name} is missing"
        for name, item in value.items():
            if name not in fields:
                yield f"{path} has no field {name}"
            else:
                yield from fields[name](item, f"{path}.{name}")

    return checked


def _user_type(value: Any, path: str) -> Iterator[str]:
    if value not in ("ephemeral", "local"):
        yield f"{path} is neither ephemeral nor local"


def _truth(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{path} is neither true nor false"


def _anything(_value: Any, _path: str) -> Iterator[str]:
    return iter(())


def _group(value: Any, path: str) -> Iterator[str]:
    by_id = isinstance(value, dict) and "id" in value
    yield from (_GROUP_BY_ID if by_id else _GROUP_BY_NAME)(value, path)


def _remote(value: Any, path: str) -> Iterator[str]:
    yield from _REMOTE(value, path)
    if isinstance(value, dict):
        filled = [name for name in LISTS if name in value]
        if len(filled) > 1:
            yield f"{path} has more than one of {', '.join(LISTS)}"
        if "regex" in value and not filled:
            yield f"{path}.regex stands without a list"


_DOMAIN: Final = _object({"id": _text, "name": _text})
_GROUP_BY_ID: Final = _object({"id": _text}, "id")
_GROUP_BY_NAME: Final = _object({"name": _text, "domain": _DOMAIN}, "name", "domain")
_USER: Final = _object({"id": _text, "name": _text, "email": _text, "domain": _DOMAIN, "type": _user_type})
_ROLE: Final = _object({"name": _text}, "name")
_PROJECT: Final = _object({"name": _text, "roles": _list(_ROLE)}, "name", "roles")
_LOCAL: Final = _object(
    {
        "user": _USER,
        "group": _group,
        "groups": _text,
        "group_ids": _text,
        "domain": _DOMAIN,
        "projects": _list(_PROJECT),
    }
)
_REMOTE: Final = _object({"type": _text, "regex": _truth, **dict.fromkeys(LISTS, _list(_anything))}, "type")
_rule: Final = _object({"local": _list(_LOCAL), "remote": _list(_remote, least=1)}, "local", "remote")
