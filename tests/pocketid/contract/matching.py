"""Whether an answer is the recorded one, names of ids, times and secrets aside.

Enters: a recorded value with its placeholders, an answer's value. Leaves: differences as sentences; names that got a value on the way. The placeholders are those of
recorded/ (README of records/pocketid): `<id1>`, `<time sec Z>`, `<secret1: 32 letters and digits>`, `<prefix of secret1>`, `<text>` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

UUID = r"[0-9A-Za-z]{8}(?:-[0-9A-Za-z]{4}){3}-[0-9A-Za-z]{12}"
_ID = re.compile(r"<id\d+>")
_SECRET = re.compile(r"<(secret\d+): 32 letters and digits>")
_PREFIX = re.compile(r"<prefix of (secret\d+)>")
_LONG = re.compile(r"(.{20})\.\.\.<(\d+) chars>")
_SHAPES = {
    "<time sec Z>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "<time frac Z>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z",
    "<time sec offset>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d",
    "<time frac offset>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}[+-]\d\d:\d\d",
    "<text>": r"(?s).+",
    "<whole seconds>": r"\d+",
    "<code>": r"\S+",
    "<access_token>": r"[\w-]+\.[\w-]+\.[\w-]+",
    "<id_token>": r"[\w-]+\.[\w-]+\.[\w-]+",
    "<refresh_token>": r"\S+",
}
_BOUND = ("<code>", "<access_token>", "<id_token>", "<refresh_token>")


class Names:
    """What the placeholders of one file stand for."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def bind(self, name: str, value: str) -> bool:
        """Give a name its value; whether it has that value."""
        return self.values.setdefault(name, value) == value

    def filled(self, value: Any) -> Any:
        """A recorded value with every known placeholder in place."""
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, str):
            return value
        if found := _LONG.fullmatch(value):
            return found[1][0] * int(found[2])
        for name, known in self.values.items():
            value = value.replace(name, known)
        return value


def differences(names: Names, want: Any, got: Any, *, unordered: bool = False, path: str = "") -> list[str]:
    """What is not as recorded."""
    for name, value in _secrets(want, got):
        names.values[name] = value
    return list(_differ(names, want, got, unordered, path))


def _secrets(want: Any, got: Any) -> Iterator[tuple[str, str]]:
    """Generated secrets, before their prefixes are compared."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key, value in want.items():
            if isinstance(value, str) and _SECRET.fullmatch(value) and isinstance(got.get(key), str):
                yield value, got[key]


def _differ(names: Names, want: Any, got: Any, unordered: bool, path: str) -> Iterator[str]:
    match want:
        case dict() if isinstance(got, dict):
            for key in want.keys() | got.keys():
                here = f"{path}.{key}" if path else key
                if key not in got and want[key] != "<absent>":
                    yield f"{here}: missing"
                elif key not in want:
                    yield f"{here}: not in the record ({got[key]!r})"
                elif key in got:
                    yield from _differ(names, want[key], got[key], unordered, here)
        case list() if isinstance(got, list):
            yield from _differ_lists(names, want, got, unordered, path)
        case str():
            if why := _differ_text(names, want, got, unordered):
                yield f"{path}: {why}"
        case _:
            if want != got or isinstance(want, bool) != isinstance(got, bool):
                yield f"{path}: recorded {want!r}, answered {got!r}"


def _differ_lists(names: Names, want: list[Any], got: list[Any], unordered: bool, path: str) -> Iterator[str]:
    if len(want) != len(got):
        yield f"{path}: recorded {len(want)} entries, answered {len(got)}"
        return
    left = list(got)
    for index, item in enumerate(want):
        chosen = _partner(names, item, left) if unordered else 0
        yield from _differ(names, item, left.pop(chosen), unordered, f"{path}[{index}]")


def _partner(names: Names, want: Any, left: list[Any]) -> int:
    """The entry that fits, the first when none does."""
    for index, item in enumerate(left):
        trial = Names()
        trial.values = dict(names.values)
        if not differences(trial, want, item, unordered=True):
            return index
    return 0


def _differ_text(names: Names, want: str, got: Any, unordered: bool) -> str:
    said = f"recorded {want!r}, answered {got!r}"
    if want.startswith("<") and (fits := _placeholder(names, want, got)) is not None:
        return "" if fits else said
    if not isinstance(got, str):
        return said
    if "<6 chars>" in want:
        return "" if re.fullmatch(re.escape(want).replace("<6\\ chars>", ".{6}"), got) else said
    if unordered and " " in want and sorted(names.filled(want).split()) == sorted(got.split()):
        return ""
    return "" if names.filled(want) == got else said


def _placeholder(names: Names, want: str, got: Any) -> bool | None:
    """Whether a value fits a placeholder; None when it is none."""
    if want == "<unix seconds>":
        return isinstance(got, int)
    if found := re.fullmatch(r"<(\d+) or (\d+)>", want):
        return got in (int(found[1]), int(found[2]))
    if not isinstance(got, str):
        return False
    if want == "<same as header X-Request-ID>":
        return got == names.values.get(want)
    if _ID.fullmatch(want):
        return (want in names.values and names.values[want] == got) or (
            bool(re.fullmatch(UUID, got)) and names.bind(want, got)
        )
    if found := _PREFIX.fullmatch(want):
        return got == names.values.get(f"<{found[1]}: 32 letters and digits>", got)[:4]
    if _SECRET.fullmatch(want):
        return bool(re.fullmatch("[A-Za-z0-9]{32}", got)) and names.values[want] == got
    if want in _SHAPES:
        if want in _BOUND:
            names.values[want] = got
        return bool(re.fullmatch(_SHAPES[want], got))
    return None


def projected(members: list[str], body: Any) -> Any:
    """Only these members: of the answer, or of each row; a single one of a row stands alone."""
    if isinstance(body, list):
        return [_members(members, row) for row in body]
    if isinstance(body, dict) and "data" in body and "data" not in members:
        rows = [_members(members, row) for row in body["data"]]
        return {**body, "data": [row[members[0]] for row in rows] if len(members) == 1 else rows}
    return _members(members, body)


def _members(members: list[str], item: Any) -> Any:
    return {name: item[name] for name in members if name in item} if isinstance(item, dict) else item
