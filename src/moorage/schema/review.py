"""The vocabulary of admission: what a rule sees, what it answers.

Enters: an object, its stored form, its siblings and the time, all as values. Leaves: all complaints at once. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from moorage.core.meta import JsonObject, ResourceType

from .brevity import few
from .fielderror import ErrorType, FieldError
from .kind import Kind


@dataclass(frozen=True, slots=True)
class Verdict:
    """All complaints about one object, and what a person should know though it is admitted.

    `kept` are structural complaints that ratcheting forgave: the value was stored already and did not change. The API
    server says nothing of them (as kube-apiserver, which warns only of kept CEL rules); `lint` shows them.
    """

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    kept: tuple[FieldError, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the object is admitted."""
        return not self.errors

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(self.errors + other.errors, self.warnings + other.warnings, self.kept + other.kept)


def verdict(errors: Iterable[FieldError] = (), warnings: Iterable[str] = ()) -> Verdict:
    """A Verdict from any iterables."""
    return Verdict(tuple(errors), tuple(warnings))


class Review(NamedTuple):
    """One question to a room's validation.

    Args:
        operation: CREATE or UPDATE.
        object: the new object, after defaulting.
        old: the stored object on UPDATE, else None.
        siblings: the other objects of the kind in the same namespace; where `Admission.meets` is given, at least those that it names.
        now: the time of the question, aware.
        parent: the object that `Admission.parent` names, None when it is not known here.
    """

    operation: Literal["CREATE", "UPDATE"]
    object: JsonObject
    old: JsonObject | None
    siblings: tuple[JsonObject, ...]
    now: datetime
    parent: JsonObject | None = None

    @property
    def terminating(self) -> bool:
        """Whether the object is being deleted; then nothing about its spec blocks (decisions Keystone 17)."""
        return bool(self.object["metadata"].get("deletionTimestamp"))


@dataclass(frozen=True, slots=True)
class Admission:
    """What a room exports as ADMISSION: `default` gives the completed object, `validate` the verdict.

    Args:
        revise: the new object of an update without those stored values that an earlier `default` derived from what has changed since;
            it runs before `default`. Takes the new object, which it leaves alone, and the stored one.
        parent: type and name, in the same namespace, of the object of another kind that `validate` wants to see when it is known.
        meets: values of an object, which follow from its spec alone; `validate` says the same of it whether it sees all siblings or only those
            that share a value with it. None: every sibling may matter.
    """

    kind: Kind[Any]
    default: Callable[[JsonObject], JsonObject]
    validate: Callable[[Review], Verdict]
    revise: Callable[[JsonObject, JsonObject], JsonObject] | None = None
    parent: Callable[[JsonObject], tuple[ResourceType, str] | None] | None = None
    meets: Callable[[JsonObject], Iterable[str]] | None = None

    def judge(self, review: Review) -> Verdict:
        """What `validate` says, of each kind no more than people read.

        A terminating object passes, and what its stored form earns as well blocks no update (decisions, Keystone 17, Admission 5).
        """
        if review.terminating:
            return Verdict()
        found = self.validate(review)
        errors: Iterable[FieldError] = found.errors
        if errors and review.old is not None:
            known = {error.identity for error in self._earned(review._replace(object=review.old))}
            errors = [error for error in errors if error.type is ErrorType.INTERNAL or error.identity not in known]
        return Verdict(tuple(few(errors)), tuple(few(dict.fromkeys(found.warnings))), found.kept)

    def _earned(self, review: Review) -> tuple[FieldError, ...]:
        """The complaints of a stored object; one that cannot be read has none."""
        try:
            return self.validate(review).errors
        except ValueError:
            return ()

    def complete(self, obj: JsonObject, old: JsonObject | None) -> JsonObject:
        """What the mutating webhook makes of a new object; `old` is the stored one of an update."""
        return self.default(self.revise(obj, old) if self.revise and old is not None else obj)

    @property
    def mutate_path(self) -> str:
        """URL path of the mutating webhook."""
        return f"/mutate-{self._suffix}"

    @property
    def validate_path(self) -> str:
        """URL path of the validating webhook."""
        return f"/validate-{self._suffix}"

    @property
    def _suffix(self) -> str:
        return f"{self.kind.group.replace('.', '-')}-{self.kind.version}-{self.kind.kind.lower()}"
