"""What an admission rule yields, and the complaints that all variants share.

Enters: paths and values. Leaves: field errors, or plain sentences, which are warnings, of each kind no more than people read. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from moorage.core.unseen import escaped, has_unseen
from moorage.schema.fielderror import NO_VALUE, FieldError, invalid

from .types_secret import SecretRef

Finding: TypeAlias = FieldError | str
"""A FieldError refuses the object; a str is a warning beside its admission."""

F = TypeVar("F", FieldError, str)
FEW: Final = 20
"""Complaints of one kind that are told one by one."""
_INDEX: Final = re.compile(r"\[\d+\]")
_WORD: Final = re.compile(r"\b[a-z]{3,}\b")
_NOT_CONTROL: Final = "must not contain newline or carriage-return or any other control character"


def control_characters(path: str, value: str | None) -> Iterator[FieldError]:
    """A value that is rendered must stay one line of text (decisions, Admission 2)."""
    if value is not None and has_unseen(value):
        yield invalid(path, value, _NOT_CONTROL)


def fixed_keys(path: str, ref: SecretRef | None, *keys: str) -> Iterator[FieldError]:
    """A Secret reference with fixed data keys must leave `key` empty."""
    if ref is not None and ref.key:
        are = "data keys are fixed" if len(keys) > 1 else "data key is fixed"
        yield invalid(f"{path}.key", ref.key, f"{are} ({', '.join(keys)}): leave key empty")


def shown(name: str) -> str:
    """A map key as a field path shows it: control characters escaped."""
    return escaped(name)


def everywhere(path: str) -> str:
    """A path without the places in lists."""
    return _INDEX.sub("[]", path)


def few(findings: Iterable[F]) -> Iterator[F]:
    """The first of each kind, in their order, then how many more there are of it."""
    seen: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], F] = {}
    for item in findings:
        kind = _kind(item)
        seen[kind] += 1
        last[kind] = item
        if seen[kind] <= FEW:
            yield item
    for kind, item in last.items():
        if (more := seen[kind] - FEW) > 0:
            told = f"and {more} more like this"
            if isinstance(item, str):
                yield f"{item.partition(': ')[0]}: {told}"
            else:
                yield replace(item, value=NO_VALUE, detail=told)


def _kind(item: Finding) -> tuple[str, str]:
    """Field and words; what a person wrote is in capitals, in quotes or after a colon, as far as a look tells."""
    if isinstance(item, FieldError):
        return everywhere(item.path), f"{item.type.name} {item.detail.partition(':')[0]}"
    path, _, said = item.partition(": ")
    return everywhere(path), " ".join(_WORD.findall(said.partition(":")[0]))
