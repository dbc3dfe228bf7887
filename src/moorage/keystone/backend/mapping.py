"""Mapping rules and federation groups: what makes them unusable, seen without a login.

Enters: declared rules and groups. Leaves: complaints. What merely cannot work in practice is a warning and stands in `mapping_doubts`.
Source: seed 000, MappingRuleSpec and FederationGroupSpec; spec/keystone.md 2.4; decisions, Keystone 14 and Admission 2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from moorage.schema.brevity import FEW
from moorage.schema.fielderror import FieldError, duplicate, invalid, required
from moorage.schema.model import Model

from .finding import Finding, control_characters
from .mapping_doubts import doubts
from .mapping_match import NotAPattern, compiled
from .mapping_patterns import endless
from .mapping_slowness import SLOW, power
from .types import Spec
from .types_federation import (
    FederationGroup,
    MappingDomain,
    MappingGroup,
    MappingLocal,
    MappingRemote,
    MappingRule,
    MappingUser,
)

_REMOTE_TYPE: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ENDLESS: Final = (
    "can take for ever: a text of a few dozen characters fits its repetitions in more and more ways, and Keystone tries them all when the rest does"
    " not match; repeat what is repeated once only, such as ^a+$ for ^(a+)+$"
)
_SLOW: Final = (
    "is slow on long values: repetitions after each other can share a text, so a search takes the {power} power of its length, a worker of Keystone"
    " minutes for some thousand characters; anchor it with ^, and let a repetition not match what separates it from the next, such as ^[^,]*,[^,]*,x$"
)
_ORDINAL: Final = {3: "third"}
_ANCHORED: Final = re.compile(r"(\(\?[aimsux]+\))?(\^|\\A).*(\$|\\Z)", re.DOTALL)


@dataclass
class _Judge:
    """Looks at expressions until enough of them are refused: then the object is refused whatever the others are, and they are counted only.

    Args:
        stored: expressions that block nothing, because the stored object has them.
    """

    stored: Collection[str]
    refused: int = field(default=0, init=False)
    slow: int = field(default=0, init=False)
    passed_over: int = field(default=0, init=False)

    def complaints(self, where: str, pattern: str) -> Iterator[Finding]:
        """What is wrong with one expression."""
        if self.refused >= FEW:
            self.passed_over += 1
            return
        try:
            compiled(pattern)
        except NotAPattern as error:
            yield self._refusal(where, pattern, f"is not a regular expression: {error}")
            return
        if endless(pattern):
            yield self._refusal(where, pattern, _ENDLESS)
        elif self.slow < FEW and (grows := power(pattern)) >= SLOW:
            self.slow += 1
            yield f"{where}: {_SLOW.format(power=_ORDINAL.get(grows, f'{grows}th'))}"
        if not _is_anchored(pattern):
            yield f"{where}: the expression is not anchored with ^ and $, so it matches any value that contains it"

    def _refusal(self, where: str, pattern: str, why: str) -> FieldError:
        self.refused += pattern not in self.stored
        return invalid(where, pattern, why)


def patterns(spec: Spec) -> frozenset[str]:
    """All expressions of a backend."""
    entries = [remote for rule in spec.mappings or () for remote in rule.remote if remote.regex]
    return frozenset(text for remote in entries for text in (*(remote.any_one_of or ()), *(remote.not_any_of or ())))


def check(spec: Spec, stored: Collection[str] = ()) -> Iterator[Finding]:
    """All complaints about spec.mappings and spec.groups; of `stored` expressions none is a reason to stop looking at others."""
    judge = _Judge(stored)
    for index, rule in enumerate(spec.mappings or ()):
        yield from _check_rule(f"spec.mappings[{index}]", index, rule, judge)
    if judge.passed_over:
        yield f"spec.mappings: {judge.passed_over} more expressions were not looked at: mend those that are refused first"
    if spec.type != "LDAP" and not spec.mappings:
        yield "spec.mappings: is empty: nobody can log in, and the identity provider stays disabled until there is a rule"
    names = [group.name for group in spec.groups or ()]
    for index, group in enumerate(spec.groups or ()):
        if group.name in names[:index]:
            yield duplicate(f"spec.groups[{index}].name", group.name)
        yield from _check_group(f"spec.groups[{index}]", group)
    yield from doubts(spec)


def _check_rule(path: str, number: int, rule: MappingRule, judge: _Judge) -> Iterator[Finding]:
    if not rule.local:
        yield required(f"{path}.local", "a mapping rule needs at least one local entry")
    if not rule.remote:
        yield required(f"{path}.remote", "a mapping rule needs at least one remote entry")
    for index, remote in enumerate(rule.remote):
        where = f"{path}.remote[{index}]"
        yield from _check_remote(where, remote, judge)
        yield from _printable(where, remote)
    silent = [index for index, remote in enumerate(rule.remote) if remote.any_one_of or remote.not_any_of]
    for index, local in enumerate(rule.local):
        where = f"{path}.local[{index}]"
        yield from _check_local(where, local)
        for place, text in _texts(where, local):
            yield from _check_placeholders(place, text, number, len(rule.remote) - len(silent), silent)


def _check_remote(path: str, remote: MappingRemote, judge: _Judge) -> Iterator[Finding]:
    if not remote.type:
        yield required(f"{path}.type", "a remote entry needs the WSGI key of a claim")
    elif not _REMOTE_TYPE.fullmatch(remote.type):
        yield invalid(f"{path}.type", remote.type, "must match ^[A-Za-z0-9_-]+$")
    lists = {
        "anyOneOf": remote.any_one_of, "notAnyOf": remote.not_any_of,
        "blacklist": remote.blacklist, "whitelist": remote.whitelist,
    }  # fmt: skip
    filled = [name for name, values in lists.items() if values]
    if len(filled) > 1:
        yield invalid(path, ", ".join(filled), "at most one of anyOneOf, notAnyOf, blacklist, whitelist may be set")
    if remote.regex:
        yield from _check_regex(path, remote, judge)


def _check_regex(path: str, remote: MappingRemote, judge: _Judge) -> Iterator[Finding]:
    name, found = ("anyOneOf", remote.any_one_of) if remote.any_one_of else ("notAnyOf", remote.not_any_of)
    if not found:
        yield invalid(f"{path}.regex", True, "regex needs anyOneOf or notAnyOf")
    for index, pattern in enumerate(found or ()):
        yield from judge.complaints(f"{path}.{name}[{index}]", pattern)


def _is_anchored(pattern: str) -> bool:
    """Whether every match is the whole value, as far as the look of the expression says."""
    return bool(_ANCHORED.fullmatch(pattern)) and not pattern.endswith("\\$") and not _has_open_choice(pattern)


def _has_open_choice(pattern: str) -> bool:
    """Whether a `|` outside of groups and classes lets one anchor stand for one choice only."""
    depth, plain = 0, re.sub(r"\\.|\[\^?\]?[^\]]*\]", "", pattern, flags=re.DOTALL)
    for char in plain:
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            return True
    return False


def _check_local(path: str, local: MappingLocal) -> Iterator[FieldError]:
    if local.group and not _is_one(local.group):
        yield invalid(f"{path}.group", local.group.name or "", "exactly one of id, or name with domain, must be set")
    if local.groups is not None and not _names(local.domain):
        yield required(f"{path}.domain", "groups needs the id or the name of the groups' domain")
    if local.user:
        yield from _check_user(f"{path}.user", local.user)


def _check_user(path: str, user: MappingUser) -> Iterator[FieldError]:
    if user.domain is not None and not _names(user.domain):
        yield invalid(f"{path}.domain", "", "must hold an id or a name: Keystone fails at each login otherwise")


def _names(domain: MappingDomain | None) -> bool:
    return domain is not None and bool(domain.id or domain.name)


def _is_one(group: MappingGroup) -> bool:
    by_name = bool(group.name) and _names(group.domain)
    return bool(group.id) != by_name and not (group.id and (group.name is not None or group.domain is not None))


def _texts(path: str, node: Any) -> Iterator[tuple[str, str]]:
    """Every text of an entry with its path; of a local one Keystone replaces placeholders in all of them."""
    if isinstance(node, Model):
        for name, info in type(node).model_fields.items():
            yield from _texts(f"{path}.{info.alias}", getattr(node, name))
    elif isinstance(node, tuple):
        for index, child in enumerate(node):
            yield from _texts(f"{path}[{index}]", child)
    elif isinstance(node, str):
        yield path, node


def _check_placeholders(path: str, text: str, number: int, usable: int, silent: list[int]) -> Iterator[Finding]:
    yield from control_characters(path, text)
    for found in _PLACEHOLDER.finditer(text):
        if found[0] in ("{{", "}}"):
            continue
        if not (found[1] or "").isascii() or not (found[1] or "").isdecimal():
            yield invalid(path, text, "a placeholder is {<digits>}; write {{ and }} for literal braces")
            return
        if len(found[1]) > 4 or int(found[1]) >= usable:
            yield f"{path}: {found[0]} is out of range: rule {number} gives {_count(usable, silent)}; each login that it matches fails"


def _count(usable: int, silent: list[int]) -> str:
    values = (
        "no value" if not usable else "1 value, {0}" if usable == 1 else f"{usable} values, {{0}} to {{{usable - 1}}}"
    )
    places = ", ".join(f"remote[{index}]" for index in silent)
    return values + (f" (anyOneOf and notAnyOf give none: {places})" if silent else "")


def _printable(path: str, model: Model) -> Iterator[FieldError]:
    """What Keystone stores and people read in events and tables is of one line each."""
    for where, text in _texts(path, model):
        yield from control_characters(where, text)


def _check_group(path: str, group: FederationGroup) -> Iterator[FieldError]:
    if not group.name:
        yield required(f"{path}.name")
    yield from _printable(path, group)
    for index, role in enumerate(group.role_assignments or ()):
        where = f"{path}.roleAssignments[{index}]"
        if not role.role:
            yield required(f"{where}.role")
        if (role.project is not None) == bool(role.domain):
            yield invalid(where, role.role, "exactly one of project or domain must be set")
