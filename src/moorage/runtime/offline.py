"""Admission without a server: what the API server would say of files.

Enters: objects in the order in which they would be created, stored objects, the rooms' admissions. Leaves: findings. It writes nothing
and asks nobody; the time is a value. Contract: spec/cli.md, `moorage lint`; decisions, Admission 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from moorage.core import names
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject, Key
from moorage.schema import Admission, FieldError, Review

_OURS = re.compile(r"(^|\.)(c5c3\.io|moorage\.internal|pocketid\.internal)$")
Placed = tuple[str, int, JsonObject]
"""File, number of the document in it, object."""


class Finding(NamedTuple):
    """One complaint about one object of one file."""

    file: str
    document: int
    kind: str
    namespace: str
    name: str
    severity: Literal["error", "warning"]
    path: str
    rule: str
    message: str


class LintResult(NamedTuple):
    """What a whole call found. `admitted` are the completed objects of our kinds, `others` Secrets and ConfigMaps."""

    objects: int
    findings: tuple[Finding, ...]
    admitted: tuple[JsonObject, ...] = ()
    others: tuple[JsonObject, ...] = ()

    def valid(self, *, strict: bool = False) -> bool:
        """Whether everything is admitted; with `strict` a warning counts, too."""
        return not any(strict or finding.severity == "error" for finding in self.findings)

    def to_wire(self, *, strict: bool = False) -> JsonObject:
        """The JSON form of spec/cli.md."""
        rows = [{name: getattr(finding, name) for name in Finding._fields} for finding in self.findings]
        return {"valid": self.valid(strict=strict), "objects": self.objects, "findings": rows}


def unreadable(why: str) -> JsonObject:
    """The answer of a call whose input could not be read, in the JSON form of spec/cli.md."""
    finding = Finding("", 0, "", "", "", "error", "", "Unreadable", why)
    return LintResult(0, (finding,)).to_wire()


@dataclass
class _World:
    """What stands on the imagined server so far."""

    stored: dict[tuple[str, Key], JsonObject] = field(default_factory=dict)

    def siblings(self, kind: str, key: Key) -> tuple[JsonObject, ...]:
        return tuple(
            obj
            for (stored_kind, stored_key), obj in self.stored.items()
            if stored_kind == kind and stored_key.namespace == key.namespace and stored_key != key
        )

    def parent(self, admission: Admission, obj: JsonObject, namespace: str) -> JsonObject | None:
        named = admission.parent(obj) if admission.parent else None
        return self.stored.get((named[0].kind, Key(namespace, named[1]))) if named else None


def kinds_in(objects: Iterable[JsonObject]) -> frozenset[str]:
    """The kinds of our groups that these objects claim, known or not: whose admissions `lint` needs."""
    return frozenset(obj["kind"] for obj in objects if _OURS.search(_type_of(obj)[0]))


def lint(
    placed: Iterable[Placed],
    old: Iterable[JsonObject],
    admissions: Sequence[Admission],
) -> LintResult:
    """Admit every object of our kinds, one after the other, each seeing those before it and the stored ones.

    Args:
        old: stored objects; an object of the same kind, namespace and name is an update of it.
    """
    moment = datetime.now(UTC)
    by_type = {(a.kind.group, a.kind.kind): a for a in admissions}
    world = _World()
    for obj in old:
        if admission := by_type.get(_type_of(obj)):
            world.stored[(admission.kind.kind, _key(obj))] = _complete(admission, _with_defaults(obj), None)
    findings: list[Finding] = []
    others: list[JsonObject] = []
    admitted: list[JsonObject] = []
    count = 0
    for file, document, obj in placed:
        group, kind = _type_of(obj)
        report = _reporter(findings, file, document, obj)
        admission = by_type.get((group, kind))
        if admission is None:
            if kind in ("Secret", "ConfigMap") and not group:
                others.append(obj)
            elif _OURS.search(group):
                count += 1
                report("error", "kind", "UnknownKind", _unknown_kind(obj, admissions))
            continue
        count += 1
        whole = _admit(admission, obj, world, moment, report)
        if whole is not None:
            world.stored[(kind, _key(whole))] = whole
            admitted.append(whole)
    return LintResult(count, tuple(findings), tuple(admitted), tuple(others))


_Report = Callable[[Literal["error", "warning"], str, str, str], None]


def _reporter(findings: list[Finding], file: str, document: int, obj: JsonObject) -> _Report:
    key = _key(obj)

    def report(severity: Literal["error", "warning"], path: str, rule: str, message: str) -> None:
        findings.append(Finding(file, document, obj["kind"], key.namespace, key.name, severity, path, rule, message))

    return report


def _admit(admission: Admission, obj: JsonObject, world: _World, now: datetime, report: _Report) -> JsonObject | None:
    """The completed object when it is admitted, None when it is refused; everything found is reported."""
    kind = admission.kind
    if obj["apiVersion"] != kind.resource.api_version:
        known = kind.resource.api_version
        report("error", "apiVersion", "UnsupportedVersion", f"{obj['apiVersion']} is not served. Use {known}")
        return None
    wanted = _with_defaults(obj)
    key = _key(wanted)
    errors = _name_errors(key)
    unknown = kind.structural.unknown(wanted)
    for path in unknown:
        report("error", path, "UnknownField", f'unknown field "{path}"{_nearest(path, kind.schema())}')
    stored = world.stored.get((kind.kind, key))
    whole = _complete(admission, wanted, stored)
    if stored is not None:
        whole["metadata"] = {**stored["metadata"], **whole["metadata"]}
    structure = kind.structural.validate(whole, stored)
    errors += structure.errors
    warnings = list(structure.warnings)
    if not structure.errors:
        rules = kind.structural.validate_rules(whole, stored)
        errors += rules.errors
        warnings += rules.warnings
    if not errors:
        operation: Literal["CREATE", "UPDATE"] = "CREATE" if stored is None else "UPDATE"
        siblings, parent = world.siblings(kind.kind, key), world.parent(admission, whole, key.namespace)
        verdict = admission.judge(Review(operation, whole, stored, siblings, now, parent))
        errors += verdict.errors
        warnings += verdict.warnings
    for error in errors:
        report("error", error.path, str(error.cause()["reason"]), error.message)
    for warning in warnings:
        report("warning", "", "Warning", warning)
    return None if errors or unknown else whole


def _complete(admission: Admission, obj: JsonObject, old: JsonObject | None) -> JsonObject:
    """Defaults of the CRD, then of the webhook, then of the CRD again, as the API server runs them."""
    whole = copied(obj)
    admission.kind.structural.prune(whole)
    admission.kind.structural.default(whole)
    whole = admission.complete(whole, old)
    admission.kind.structural.default(whole)
    return whole


def _with_defaults(obj: JsonObject) -> JsonObject:
    meta = dict(obj.get("metadata") or {})
    meta["namespace"] = str(meta.get("namespace") or "default")
    meta["name"] = str(meta.get("name") or "")
    return {**obj, "metadata": meta}


def _key(obj: JsonObject) -> Key:
    meta = obj.get("metadata") or {}
    return Key(str(meta.get("namespace") or "default"), str(meta.get("name") or ""))


def _type_of(obj: JsonObject) -> tuple[str, str]:
    group, slash, _ = obj["apiVersion"].rpartition("/")
    return (group if slash else "", obj["kind"])


def _name_errors(key: Key) -> list[FieldError]:
    from moorage.schema import invalid, required

    if not key.name:
        return [required("metadata.name", "name or generateName is required")]
    found = [invalid("metadata.name", key.name, text) for text in names.dns1123_subdomain(key.name)]
    return found + [invalid("metadata.namespace", key.namespace, text) for text in names.dns1123_label(key.namespace)]


def _unknown_kind(obj: JsonObject, admissions: Sequence[Admission]) -> str:
    known = [a.kind.kind for a in admissions]
    close = _close(obj["kind"], known)
    hint = f"did you mean {close[0]}?" if close else f"known kinds: {', '.join(known)}"
    return f"no kind {obj['kind']} in {obj['apiVersion']}; {hint}"


def _nearest(path: str, schema: JsonObject) -> str:
    node = schema
    *parents, last = path.split(".")
    for part in parents:
        node = node.get("properties", {}).get(re.sub(r"\[\d+\]$", "", part), {})
        node = node.get("items", node)
    close = _close(last, list(node.get("properties") or ()))
    return f"; did you mean {close[0]}?" if close else ""


def _close(word: str, known: list[str]) -> list[str]:
    import difflib

    return difflib.get_close_matches(word, known, n=1)
