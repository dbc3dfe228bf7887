"""Mapping rules that Keystone takes but that cannot do what their author wants: warnings.

Enters: a declared federated backend. Leaves: sentences, each with the field path. It judges by the engine's own matching where it can.
Source: spec/keystone.md 3.2; cases B13, B31, B33; decisions, Keystone 14.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from .mapping_match import look
from .mapping_rules import remote_entry
from .types import Spec
from .types_federation import MappingLocal, MappingRemote, MappingRule

_CONVEYABLE: Final = re.compile(r"HTTP_[A-Za-z0-9_-]+")
_ALWAYS_CONVEYED: Final = frozenset({"IDP", "NAME_ID"})


def doubts(spec: Spec) -> Iterator[str]:
    """Everything doubtful about the mappings; nothing for a backend without any."""
    if not spec.mappings or spec.type == "LDAP":
        return
    for index, rule in enumerate(spec.mappings):
        path = f"spec.mappings[{index}]"
        for position, remote in enumerate(rule.remote):
            where = f"{path}.remote[{position}]"
            yield from (f"{where}: {why}" for why in chain(_arrival(spec, remote), _unmatchable(spec, remote)))
        yield from _contradictions(path, rule)
        for position, local in enumerate(rule.local):
            yield from (f"{path}.local[{position}].{why}" for why in _local(spec, local))
    locals_ = [local for rule in spec.mappings for local in rule.local]
    if not any(local.user and (local.user.name or local.user.id) for local in locals_):
        yield "spec.mappings: no rule gives the user a name or an id, so nobody can log in"


def _arrival(spec: Spec, remote: MappingRemote) -> Iterator[str]:
    """Whether the sidecar conveys such a key: claims cross the hop as request headers."""
    kind = remote.type
    plain = kind.upper().replace("-", "_")
    prefix = "HTTP_OIDC_" if spec.type == "OIDC" else "HTTP_MELLON_"
    own = spec.oidc.remote_id_attribute if spec.oidc else spec.saml.remote_id_attribute if spec.saml else ""
    if not _CONVEYABLE.fullmatch(kind):  # refused
        return
    if kind != plain:
        yield f"{kind} never arrives: environ keys are upper-case with underscores; write {plain}"
    elif kind != own and not kind.startswith(prefix):
        yield f"{kind} never arrives: the sidecar conveys the claims of this backend as {prefix}<CLAIM>"
    elif spec.saml and kind != own and (name := kind.removeprefix(prefix)) not in _conveyed(spec):
        yield f"{kind} never arrives: add the attribute {name} to spec.saml.forwardAttributes"


def _conveyed(spec: Spec) -> frozenset[str]:
    forwarded = (spec.saml.forward_attributes or ()) if spec.saml else ()
    return _ALWAYS_CONVEYED | {name.upper() for name in forwarded}


def _unmatchable(spec: Spec, remote: MappingRemote) -> Iterator[str]:
    """Whether no asserted value can satisfy the entry."""
    wanted = remote.any_one_of or remote.whitelist or ()
    if not remote.regex and wanted and all(";" in value for value in wanted):
        yield f"{'never matches' if remote.any_one_of else 'keeps nothing'}: claims are split at ;, so no value holds one"
    block = spec.oidc or spec.saml
    if block is None or remote.type != block.remote_id_attribute:
        return
    if not look(0, remote_entry(remote), [block.remote_id], 0).matched:
        field = "issuer" if spec.oidc else "idpEntityID"
        yield f"never matches: {remote.type} is always the {field}, {block.remote_id}, byte for byte"


def _contradictions(path: str, rule: MappingRule) -> Iterator[str]:
    """An entry that wants a value which another entry of the rule forbids."""
    banned: dict[str, set[str]] = {}
    for remote in rule.remote:
        if not remote.regex:
            banned.setdefault(remote.type, set()).update(remote.not_any_of or ())
    for index, remote in enumerate(rule.remote):
        if remote.any_one_of and not remote.regex and set(remote.any_one_of) <= banned.get(remote.type, set()):
            yield f"{path}.remote[{index}]: never matches: another entry forbids every value that this one wants"


def _local(spec: Spec, local: MappingLocal) -> Iterator[str]:
    user, group = local.user, local.group
    if user and user.type == "local" and user.domain is None:
        yield "user.domain: a user of type local needs its domain, or Keystone answers 400 at login"
    if group and group.name and "{" in group.name.replace("{{", ""):
        yield "group.name: a claim with several values gives one group of that list's name; use groups with domain"
    yield from _roleless(local)
    if group and group.name and _is_missing(spec, group.name, group.domain.name if group.domain else None):
        yield f"group.name: {group.name} is not among spec.groups; Keystone drops groups that do not exist, in silence"


def _roleless(local: MappingLocal) -> Iterator[str]:
    for index, project in enumerate(local.projects or ()):
        if not project.roles:
            yield f"projects[{index}].roles: without roles nobody can use the project {project.name}"


def _is_missing(spec: Spec, name: str, domain: str | None) -> bool:
    """A plain group name of this backend's own managed domain that nothing here makes."""
    own = domain is not None and domain.lower() == spec.domain.name.lower() and spec.domain.mode == "Manage"
    return own and "{" not in name and name not in {group.name for group in spec.groups or ()}
