"""Generated mapping rules and claims, in Keystone's JSON form. Claims are drawn near the rules, so that rules match often enough.

Each is built from one seed: to draw every leaf by itself costs many times what Keystone takes to judge the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

Made = TypeVar("Made")

TYPES = ("HTTP_OIDC_ISS", "HTTP_OIDC_GROUPS", "REMOTE_USER", "HTTP_MELLON_NAME_ID")
VALUES = (
    "a", "b", "ab", "A", "", " a ", "2024", "0", "España", "日本", "None", "True", "x'y", 'x"y', "['a', 'b']", '["c"]', "[1, [2]]",
    "[]", "('a',)", "{'a': 1}", "{[1]}", "1,2", "a\\b", "\x00", "a\nb", "{0}", "{", "..",
)  # fmt: skip
PATTERNS = ("a", "^a", "b$", "^ab?$", "", ".", "[", "(?i)A", r"\d+", "^$", "ñ", "a|b")
SAFE = ("{0}", "x{0}", "plain", "2024", "España", "['x']", "a;b")
TEXTS = (
    "{0}", "{1}", "{2}", "{0}{1}", "x{0}", "{0}-{0}", "plain", "2024", "España", "", "{{0}}", "{{", "}}{0}", "['a', '{0}']",
    "a;b", "{00}", "['x']", "{5}",
)  # fmt: skip
ODD = (*TEXTS, "{", "}", "{x}", "{}", "{0[x]}", "{-1}", "{0!r}", "{0.x}", "{0:>4}")
COMMON = ("a", "b", "ab")
LISTS = ("any_one_of", "not_any_of", "blacklist", "whitelist")
CHARACTERS = "0aAzé;:,'\"\\[]{}()\x00\t\n\x1f\x7f\x85\xa0ß٣İ\u2028日\ufeff\uffff\U0001f600"
"""Of every kind that some reader of text treats in its own way."""


def of_seed(make: Callable[[Random], Made]) -> st.SearchStrategy[Made]:
    """What `make` builds of a seed; a failure shows what was built."""
    return st.integers(0, 2**64 - 1).map(lambda seed: make(Random(seed)))


def _value(random: Random) -> str:
    match random.randrange(4):
        case 0 | 1:
            return random.choice(COMMON)
        case 2:
            return random.choice(VALUES)
        case _:
            return "".join(_character(random) for _ in range(random.randint(0, 4)))


def _character(random: Random) -> str:
    if random.random() < 0.7:
        return random.choice(CHARACTERS)
    code = random.randrange(0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)  # all but surrogates


def _some(random: Random, make: Callable[[Random], Made], least: int, most: int) -> list[Made]:
    return [make(random) for _ in range(random.randint(least, most))]


def _maybe(random: Random, **makers: Callable[[Random], Any]) -> dict[str, Any]:
    """Each member as often as not."""
    return {name: make(random) for name, make in makers.items() if random.random() < 0.5}


def _one_of(texts: Sequence[str]) -> Callable[[Random], str]:
    return lambda random: random.choice(texts)


def _claim(random: Random) -> str:
    return ";".join(_some(random, _value, 1, 4))


def claims(random: Random) -> dict[str, str]:
    """What arrives in Keystone's environ."""
    return {name: _claim(random) for name in TYPES if name in TYPES[:2] or random.random() < 0.5}


def _text(random: Random) -> str:
    return random.choice(SAFE if random.randrange(4) else TEXTS)


def _user_name(random: Random) -> str:
    return random.choice(ODD) if random.randrange(5) == 0 else _text(random)


def _domain(random: Random) -> dict[str, Any]:
    return _maybe(random, id=_text, name=_text)


def _remote(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {"type": random.choice((*TYPES[:2], *TYPES[:2], *TYPES))}
    if random.random() < 0.5:
        return found
    name = random.choice(LISTS)
    if random.random() < 0.5:
        return {**found, name: _some(random, _one_of(PATTERNS), 0, 3), "regex": True}
    return {**found, name: _some(random, _value, 0, 3), **_maybe(random, regex=lambda _: False)}


def _user(random: Random) -> dict[str, Any]:
    kinds = _one_of(("local", "ephemeral"))
    return _maybe(random, id=_text, name=_user_name, email=_text, domain=_domain, type=kinds)


def _group(random: Random) -> dict[str, Any]:
    if random.random() < 0.5:
        return {"id": _text(random)}
    return {"name": _text(random), "domain": _domain(random)}


def _project(random: Random) -> dict[str, Any]:
    return {"name": _text(random), "roles": _some(random, lambda each: {"name": _text(each)}, 0, 2)}


def _local(random: Random) -> dict[str, Any]:
    return _maybe(
        random,
        user=_user,
        group=_group,
        groups=_text,
        group_ids=_text,
        domain=_domain,
        projects=lambda each: _some(each, _project, 0, 2),
    )


def _rule(random: Random) -> dict[str, Any]:
    return {"local": _some(random, _local, 0, 3), "remote": _some(random, _remote, 1, 3)}


def rules(random: Random) -> list[dict[str, Any]]:
    """Rules that Keystone's mapping schema accepts; they need not make sense."""
    return _some(random, _rule, 1, 3)
