"""Keystone's mapping engine (attribute mapping schema 1.0): what rules make of one login, and why.

Enters: mapping rules in Keystone's own JSON form, the claims as Keystone's environ holds them. Leaves: a frozen `Mapped`, never an
exception. It asks no server, so it cannot say whether a group, a project or a local user exists. Written from what Keystone 30's
RuleProcessor answers; the suite holds both against each other. Source: spec/keystone.md 3.2; decisions, Keystone 14; cases B31, B33.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from moorage.core.meta import JsonObject

from .mapping_match import EntryTrace, Search, Values, found, look

FailureKind: TypeAlias = Literal["Unmatched", "OutOfRange", "Invalid", "Unusable", "NoUser", "OtherProvider"]
NO_ANSWER: Final = 502
"""Keystone breaks off without an answer, which the sidecar in front of it reports as 502."""
_NAMED: Final = ("name", "id")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why nobody is logged in: the status that Keystone answers with, and a sentence."""

    kind: FailureKind
    code: int
    message: str


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """How one rule fared. `values` are what its placeholders stand for, in order."""

    index: int
    matched: bool
    remote: tuple[EntryTrace, ...]
    values: tuple[str | list[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Mapped:
    """The outcome. The first five fields are as Keystone's RuleProcessor gives them; with a failure they hold what was reached.

    `ignored` are users that later entries name: Keystone takes the first that is not empty.
    """

    matched: tuple[int, ...] = ()
    user: JsonObject = field(default_factory=dict)
    group_ids: tuple[Any, ...] = ()
    group_names: tuple[JsonObject, ...] = ()
    projects: tuple[JsonObject, ...] = ()
    failure: Failure | None = None
    rules: tuple[RuleTrace, ...] = ()
    ignored: tuple[JsonObject, ...] = ()


class _Stop(Exception):
    """Ends the evaluation with its failure."""

    def __init__(self, kind: FailureKind, code: int, message: str) -> None:
        self.failure = Failure(kind, code, message)
        super().__init__(message)


def process(rules: Sequence[JsonObject], claims: Mapping[str, object], search: Search = found) -> Mapped:
    """What RuleProcessor makes of the claims.

    Args:
        rules: rules that Keystone's mapping schema accepts.
        claims: environ key to text; several values of one claim are joined by `;`. What is no text does not count.
        search: how regular expressions are searched for; the plain search may take for ever, as it does in Keystone.
    """
    asserted = {name: text.split(";") for name, text in claims.items() if isinstance(text, str)}
    traces: list[RuleTrace] = []
    entries: list[JsonObject] = []
    try:
        for index, rule in enumerate(rules):
            trace = _trace(index, rule, asserted, search)
            traces.append(trace)
            if broken := _broken(trace):
                raise _Stop("Unusable", NO_ANSWER, f"rule {index}, remote[{broken.index}] {broken.type}: {broken.why}")
            if trace.matched:
                entries += _locals(trace, rule)
        if not entries:
            raise _Stop("Unmatched", 401, "no rule matches these claims" if rules else "there is no rule")
        mapped = _assemble(entries)
    except _Stop as stop:
        mapped = Mapped(failure=stop.failure)
    return replace(mapped, matched=tuple(item.index for item in traces if item.matched), rules=tuple(traces))


def login(rules: Sequence[JsonObject], claims: Mapping[str, object], search: Search = found) -> Mapped:
    """As `process`, and what Keystone then refuses without asking anybody: a user that nothing identifies."""
    mapped = process(rules, claims, search)
    if mapped.failure:
        return mapped
    return replace(mapped, failure=_refusal(mapped.user, str(claims.get("REMOTE_USER") or "")))


def _refusal(user: JsonObject, remote_user: str) -> Failure | None:
    if not (user.get("name") or user.get("id") or remote_user):
        return Failure("NoUser", 401, "the rules that match give the user neither a name nor an id")
    domain = user.get("domain")
    if domain is not None and not any(domain.get(part) for part in _NAMED):
        return Failure("Unusable", NO_ANSWER, "the user's domain has neither an id nor a name")
    if user.get("type") == "local" and domain is None:
        return Failure("Invalid", 400, "a user of type local needs user.domain")
    return None


def _trace(index: int, rule: JsonObject, asserted: Mapping[str, Values], search: Search) -> RuleTrace:
    """Every entry is looked at, for the explanation; the first that fails decides, as for Keystone."""
    seen: list[EntryTrace] = []
    for position, entry in enumerate(rule["remote"]):
        place = sum(item.values is not None for item in seen)
        seen.append(look(position, entry, asserted.get(entry["type"]), place, search))
    matched = all(item.matched for item in seen)
    values = tuple(_shown(item.values) for item in seen if item.values is not None) if matched else ()
    return RuleTrace(index, matched, tuple(seen), values)


def _broken(trace: RuleTrace) -> EntryTrace | None:
    """The entry at which Keystone fails instead of going on to the next rule."""
    first = next((item for item in trace.remote if not item.matched), None)
    return first if first and first.broken else None


def _shown(values: Values) -> str | list[str]:
    """One value stands for itself; several, or none, for a list in Python's notation."""
    return values[0] if len(values) == 1 else values


def _locals(trace: RuleTrace, rule: JsonObject) -> Iterator[JsonObject]:
    for position, local in enumerate(rule["local"]):
        yield _filled(local, trace, f"local[{position}]")


def _filled(node: Any, trace: RuleTrace, path: str) -> Any:
    """A copy of the local entry with every text's placeholders replaced."""
    if isinstance(node, dict):
        return {name: _filled(child, trace, f"{path}.{name}") for name, child in node.items()}
    if isinstance(node, list):
        return [_filled(child, trace, f"{path}[{index}]") for index, child in enumerate(node)]
    try:
        return node.format(*trace.values)
    except IndexError as error:
        raise _Stop("OutOfRange", 500, _out_of_range(node, trace, path)) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _Stop(
            "Unusable", NO_ANSWER, f"rule {trace.index}, {path}: {node!r} is no text with placeholders"
        ) from error


def _out_of_range(text: str, trace: RuleTrace, path: str) -> str:
    count = len(trace.values)
    usable = f"gives {count} value{'s' * (count != 1)}"
    if count:
        usable += f", {{0}}{f' to {{{count - 1}}}' if count > 1 else ''}"
    left_out = [f"remote[{item.index}] ({item.type})" for item in trace.remote if item.values is None]
    silent = f"; anyOneOf and notAnyOf give none: {', '.join(left_out)}" if left_out else ""
    return f"rule {trace.index}, {path}: {text!r} refers to a value that is not there: the rule {usable}{silent}"


def _assemble(entries: Sequence[JsonObject]) -> Mapped:
    users: list[JsonObject] = [entry["user"] for entry in entries if entry.get("user")]
    projects: list[JsonObject] = next((entry["projects"] for entry in reversed(entries) if "projects" in entry), [])
    names, ids = _groups(entries)
    user = dict(users[0]) if users else {}
    kind = user.setdefault("type", "ephemeral")
    if kind not in ("ephemeral", "local"):
        raise _Stop("Invalid", 401, f"user.type {kind!r} is neither ephemeral nor local")
    return Mapped((), user, ids, names, tuple(projects), ignored=tuple(users[1:]))


def _groups(entries: Sequence[JsonObject]) -> tuple[tuple[JsonObject, ...], tuple[Any, ...]]:
    """Named groups, and ids. Entry by entry: the first that cannot be used decides, as for Keystone."""
    by_domain: dict[Any, dict[str, JsonObject]] = {}
    names: list[JsonObject] = []
    ids: dict[Any, None] = {}
    for entry in entries:
        names += _named(entry, by_domain)
        ids |= _ids(entry)
    return tuple(names), tuple(sorted(ids, key=repr))


def _named(entry: JsonObject, by_domain: dict[Any, dict[str, JsonObject]]) -> Iterator[JsonObject]:
    """Named groups of one entry. A named `group` tells again of all those so far, one of a name in a domain, the latest one."""
    group = entry.get("group")
    if group is not None and "id" not in group:
        domain = group["domain"]
        by_domain.setdefault(domain.get("name") or domain.get("id"), {})[group["name"]] = group
        for groups in by_domain.values():
            yield from groups.values()
    if "groups" in entry:
        if "domain" not in entry:
            raise _Stop("Invalid", 401, "an entry has groups but no domain beside it")
        yield from ({"name": name, "domain": entry["domain"]} for name in _listed(entry["groups"]))


def _ids(entry: JsonObject) -> dict[Any, None]:
    found: dict[Any, None] = {}
    if "id" in (entry.get("group") or {}):
        found[entry["group"]["id"]] = None
    if "group_ids" in entry:
        try:
            found |= dict.fromkeys(_listed(entry["group_ids"]))
        except TypeError as error:
            raise _Stop("Unusable", NO_ANSWER, f"group_ids {entry['group_ids']!r} holds what is no id") from error
    return found


def _listed(text: str) -> list[Any]:
    """What a text means as a list: a list in Python's notation is one, be it from several values or from the claim itself."""
    try:
        with warnings.catch_warnings():  # of an escape such as \{, which Python reads all the same
            warnings.simplefilter("ignore")
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return [text]
    except (TypeError, MemoryError, RecursionError) as error:
        raise _Stop("Unusable", NO_ANSWER, f"{text!r} cannot be read as a list") from error
    return found if isinstance(found, list) else [text]
