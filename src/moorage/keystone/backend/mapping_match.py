"""One remote entry of a mapping rule against the values of its claim.

Enters: an entry in Keystone's JSON form, the values that were asserted. Leaves: whether it matches, what it gives, a sentence.
Source: spec/keystone.md 3.2; what Keystone 30's RuleProcessor answers.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from moorage.core.meta import JsonObject

Values: TypeAlias = list[str]
_CONDITIONS: Final = {"any_one_of": "anyOneOf", "not_any_of": "notAnyOf"}
_FILTERS: Final = ("blacklist", "whitelist")


class NotAPattern(Exception):
    """A text is no regular expression; the sentence says why."""


class TooSlow(Exception):
    """A search was given up; the sentence names the expression."""


Search: TypeAlias = Callable[[re.Pattern[str], str], bool]
"""Whether an expression matches somewhere in a value. It may raise TooSlow."""


def found(pattern: re.Pattern[str], value: str) -> bool:
    """The search as Keystone does it, which may take for ever."""
    return pattern.search(value) is not None


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression as Keystone's Python reads it.

    Raises:
        NotAPattern: it cannot be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's hints on style are no business of who logs in
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise NotAPattern(str(error)) from error


@dataclass(frozen=True, slots=True)
class EntryTrace:
    """How one entry fared.

    Args:
        values: what a placeholder stands for; None when the entry gives none.
        asserted: the values of the claim, None when it is absent.
        broken: it can be neither true nor false; Keystone fails here.
    """

    index: int
    type: str
    matched: bool
    why: str
    values: Values | None = None
    asserted: Values | None = None
    broken: bool = False

    @property
    def value(self) -> str | Values | None:
        """What the claim holds: one text, or a list where several values were asserted."""
        return self.asserted[0] if self.asserted and len(self.asserted) == 1 else self.asserted


def look(index: int, entry: JsonObject, asserted: Values | None, place: int, search: Search = found) -> EntryTrace:
    """Judge one entry.

    Args:
        asserted: the claim's values, None when it is absent.
        place: the number of the placeholder that this entry would fill.
        search: how regular expressions are searched for; one that it gives up breaks the entry.
    """
    kind = entry["type"]
    if asserted is None:
        return EntryTrace(index, kind, False, "the claim is absent")
    try:
        return _judge(index, entry, asserted, place, search)
    except NotAPattern as error:
        return EntryTrace(index, kind, False, f"not a regular expression: {error}", None, asserted, broken=True)
    except TooSlow as error:
        return EntryTrace(index, kind, False, str(error), None, asserted, broken=True)
    except TypeError:
        return EntryTrace(index, kind, False, "its list holds what is no text", None, asserted, broken=True)


def _judge(index: int, entry: JsonObject, asserted: Values, place: int, search: Search) -> EntryTrace:
    kind, by = entry["type"], search if entry.get("regex", False) else None
    for name in _CONDITIONS:
        if entry.get(name) is not None:
            held = _matches(entry[name], asserted, by)
            matched = bool(held) == (name == "any_one_of")
            return EntryTrace(index, kind, matched, _told(_CONDITIONS[name], held), None, asserted)
    for name in _FILTERS:
        if entry.get(name) is not None:
            kept = _matches(entry[name], asserted, by)
            if name == "blacklist":
                kept = sorted(set(asserted) - set(kept))
            left = len(set(asserted) - set(kept))
            why = f"gives {{{place}}}; the {name} takes out {left} of {len(set(asserted))} values"
            return EntryTrace(index, kind, True, why, kept, asserted)
    return EntryTrace(index, kind, True, f"gives {{{place}}}", asserted, asserted)


def _matches(wanted: Sequence[str], asserted: Values, search: Search | None) -> Values:
    """The asserted values that are wanted, sorted where Keystone leaves their order to chance (a set).

    A regular expression matches anywhere in a value unless it is anchored. Without `search` the list holds plain texts.
    """
    if search is None:
        return sorted(set(wanted) & set(asserted))
    return [value for value in asserted if any(search(compiled(pattern), value) for pattern in wanted)]


def _told(name: str, held: Values) -> str:
    values = ", ".join(map(repr, dict.fromkeys(held)))
    return f"{name} holds {values or 'none of the values'}"
