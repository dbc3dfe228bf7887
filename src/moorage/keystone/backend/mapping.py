"""Mapping rules and federation groups: what makes them unusable, seen without a login.

Enters: declared rules and groups. Leaves: complaints. Source: seed 000, MappingRuleSpec and FederationGroupSpec;
spec/keystone.md 2.4; decisions, Keystone 14 and Admission 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from moorage.schema.fielderror import FieldError, duplicate, invalid, required

from .finding import Finding
from .types import Spec
from .types_federation import FederationGroup, MappingGroup, MappingLocal, MappingRemote, MappingRule

_REMOTE_TYPE: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def check(spec: Spec) -> Iterator[Finding]:
    """All complaints about spec.mappings and spec.groups."""
    for index, rule in enumerate(spec.mappings or ()):
        yield from _check_rule(f"spec.mappings[{index}]", rule)
    names = [group.name for group in spec.groups or ()]
    for index, group in enumerate(spec.groups or ()):
        if group.name in names[:index]:
            yield duplicate(f"spec.groups[{index}].name", group.name)
        yield from _check_group(f"spec.groups[{index}]", group)


def _check_rule(path: str, rule: MappingRule) -> Iterator[Finding]:
    if not rule.local:
        yield required(f"{path}.local", "a mapping rule needs at least one local entry")
    if not rule.remote:
        yield required(f"{path}.remote", "a mapping rule needs at least one remote entry")
    for index, remote in enumerate(rule.remote):
        yield from _check_remote(f"{path}.remote[{index}]", remote)
    usable = sum(not (remote.any_one_of or remote.not_any_of) for remote in rule.remote)
    for index, local in enumerate(rule.local):
        where = f"{path}.local[{index}]"
        yield from _check_local(where, local)
        for field, text in _texts(local):
            yield from _check_placeholders(f"{where}.{field}", text, usable)


def _check_remote(path: str, remote: MappingRemote) -> Iterator[Finding]:
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
        yield from _check_regex(path, remote)


def _check_regex(path: str, remote: MappingRemote) -> Iterator[Finding]:
    field, patterns = ("anyOneOf", remote.any_one_of) if remote.any_one_of else ("notAnyOf", remote.not_any_of)
    if not patterns:
        yield invalid(f"{path}.regex", True, "regex needs anyOneOf or notAnyOf")
    for index, pattern in enumerate(patterns or ()):
        where = f"{path}.{field}[{index}]"
        try:
            re.compile(pattern)
        except re.error as error:
            yield invalid(where, pattern, f"is not a regular expression: {error}")
            continue
        if not (pattern.startswith("^") and pattern.endswith("$")):
            yield f"{where}: the expression is not anchored with ^ and $, so it matches any value that contains it"


def _check_local(path: str, local: MappingLocal) -> Iterator[FieldError]:
    if local.group and not _is_one(local.group):
        yield invalid(f"{path}.group", local.group.name or "", "exactly one of id, or name with domain, must be set")
    if local.groups and not local.domain:
        yield required(f"{path}.domain", "groups needs the domain of the groups")


def _is_one(group: MappingGroup) -> bool:
    by_name = bool(group.name) and group.domain is not None and bool(group.domain.id or group.domain.name)
    return bool(group.id) != by_name and not (group.id and (group.name or group.domain))


def _texts(local: MappingLocal) -> Iterator[tuple[str, str]]:
    user, group = local.user, local.group
    candidates = {
        "user.id": user and user.id, "user.name": user and user.name, "user.email": user and user.email,
        "group.id": group and group.id, "group.name": group and group.name,
        "groups": local.groups, "groupIds": local.group_ids,
    }  # fmt: skip
    yield from ((field, text) for field, text in candidates.items() if text)
    for index, project in enumerate(local.projects or ()):
        yield f"projects[{index}].name", project.name


def _check_placeholders(path: str, text: str, usable: int) -> Iterator[Finding]:
    for found in _PLACEHOLDER.finditer(text):
        if found[0] in ("{{", "}}"):
            continue
        if not (found[1] or "").isascii() or not (found[1] or "").isdigit():
            yield invalid(path, text, "a placeholder is {<digits>}; write {{ and }} for literal braces")
            return
        if int(found[1]) >= usable:
            yield f"{path}: {found[0]} is beyond the {usable} remote entries that give values, so logins fail"


def _check_group(path: str, group: FederationGroup) -> Iterator[FieldError]:
    if not group.name:
        yield required(f"{path}.name")
    for index, role in enumerate(group.role_assignments or ()):
        where = f"{path}.roleAssignments[{index}]"
        if not role.role:
            yield required(f"{where}.role")
        if (role.project is not None) == bool(role.domain):
            yield invalid(where, role.role, "exactly one of project or domain must be set")
