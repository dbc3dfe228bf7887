"""Defaulting and validation of the kind.

Enters: an object, its stored form and its siblings. Leaves: the completed object, or a verdict. Pure.
"""

from __future__ import annotations

from typing import Final

from moorage.core.meta import JsonObject
from moorage.pocketid.judgement import completed, judge
from moorage.schema.review import Admission, Review, Verdict

from .types import KIND


def default(obj: JsonObject) -> JsonObject:
    """A copy with the CRD's defaults."""
    return completed(KIND, obj)


def validate(review: Review) -> Verdict:
    """All complaints about the new object."""
    return judge(KIND, review, ())


ADMISSION: Final = Admission(KIND, default, validate)
