"""How every kind of Pocket-ID is judged: the declaration's own bounds and CEL rules first, then the rules that no CEL can say.

Enters: a review and the kind's rules. Leaves: a verdict with all complaints, worded as kube-apiserver words them. The table of rules in
`types.py` is thereby the only one: a server whose CRD is old, or absent, answers the same. Pure. What blocks no update is said by
`Admission.judge`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from moorage.core.meta import JsonObject, is_terminating
from moorage.core.unseen import has_controls, has_unseen
from moorage.pocketid.references import Claim
from moorage.pocketid.selection import same_instance, selector_faults
from moorage.schema.fielderror import FieldError, duplicate, invalid
from moorage.schema.kind import Kind, R
from moorage.schema.review import Admission, Review, Verdict, verdict
from moorage.schema.structural import check

Finding: TypeAlias = FieldError | str
"""A FieldError refuses the object; a str is a warning beside its admission."""
Check = Callable[[R, Review], Iterable[Finding]]

RESERVED_CLAIMS: Final = frozenset({
    "given_name", "family_name", "name", "email", "email_verified", "preferred_username", "display_name", "picture", "groups", "sub",
    "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp", "nbf", "jti", "type",
})  # fmt: skip


def admission(kind: Kind[R], checks: Sequence[Check[R]], meets: Callable[[JsonObject], Iterable[str]]) -> Admission:
    """The ADMISSION of a kind: the CRD's defaults, its rules in their order, and what two objects share when a rule may speak of both."""
    return Admission(kind, partial(completed, kind), partial(judge, kind, checks), meets=meets)


def asked_by(*annotations: str) -> Check[Any]:
    """The rule that these annotations say "true", or nothing: whoever writes another word waits for what nobody was asked for."""

    def words(obj: Any, _review: Review) -> Iterator[Finding]:
        for name in annotations:
            if (value := (obj.metadata.annotations or {}).get(name)) not in (None, "true", "false"):
                yield f'metadata.annotations[{name}]: asks for nothing as it stands, {value!r}: write "true"'

    return words


def completed(kind: Kind[Any], obj: JsonObject) -> JsonObject:
    """A copy with the CRD's defaults; names that default to metadata.name stay absent. It takes what no schema has seen yet."""
    done = copy.deepcopy(obj)
    if isinstance(done.get("spec"), dict):
        kind.structural.default(done)
    return done


def judge(kind: Kind[R], checks: Sequence[Check[R]], review: Review) -> Verdict:
    """All complaints about an object, as declared and beyond; what its stored form earns as well is `Admission.judge`'s to forgive."""
    declared = check(kind.structural, review.object, review.old)
    if declared.errors:
        return declared
    parsed = kind.parse(review.object)
    found = [item for rule in checks for item in rule(parsed, review)]
    told = verdict(
        (item for item in found if isinstance(item, FieldError)), (item for item in found if isinstance(item, str))
    )
    return Verdict(told.errors, (*declared.warnings, *told.warnings), declared.kept)


def selector(obj: Any, _review: Review) -> Iterator[Finding]:
    """The instance selector is one."""
    yield from selector_faults(obj.spec.instance_selector)


def beside(review: Review) -> Iterator[JsonObject]:
    """The siblings that stay and certainly belong to the same instance."""
    return (item for item in review.siblings if not is_terminating(item) and same_instance(review.object, item))


def one_line(path: str, value: str | None) -> Iterator[FieldError]:
    """A complaint about a name that people would not see as it is."""
    if value is not None and has_unseen(value):
        yield invalid(path, value, "must not contain control characters or line breaks; take them out")


def lines(path: str, value: str | None) -> Iterator[FieldError]:
    """A complaint about a text of several lines that cannot be stored everywhere: a NUL is in no text of PostgreSQL."""
    if value is not None and has_controls(value):
        yield invalid(path, value, "must not contain control characters but tabs and line breaks; take them out")


def claims(declared: Iterable[Claim] | None) -> Iterator[Finding]:
    """Names of claims are seen as they are; a warning at each that Pocket-ID sets by itself, where the pass would fail (decisions, Admission 4)."""
    for index, item in enumerate(declared or ()):
        yield from one_line(f"spec.customClaims[{index}].key", item.key)
        if item.key in RESERVED_CLAIMS:
            yield f"spec.customClaims[{index}].key: Pocket-ID sets claim {item.key} by itself: the server will refuse it; take it out, or rename it"


def limit(path: str, value: str | None, most: int) -> Iterator[str]:
    """A warning when a value is longer than Pocket-ID admits; the server's word, so the pass would fail (decisions, Admission 4)."""
    if value is not None and len(value) > most:
        yield f"{path}: Pocket-ID admits at most {most} characters, this has {len(value)}: the server will refuse it"


def twice(path: str, values: Iterable[tuple[str, Any]], what: str) -> Iterator[FieldError]:
    """A complaint at each value that stands a second time; `values` are (path below `path`, value)."""
    seen: dict[Any, str] = {}
    for below, value in values:
        if value in seen:
            yield duplicate(f"{path}{below}", value, f"{what} {seen[value]} already")
        seen.setdefault(value, below.strip("."))
