"""What an admission rule yields, and the complaints that all variants share.

Enters: paths and values. Leaves: field errors, or plain sentences, which are warnings. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from moorage.core.unseen import escaped, has_unseen
from moorage.schema.fielderror import FieldError, invalid

from .types_secret import SecretRef

Finding: TypeAlias = FieldError | str
"""A FieldError refuses the object; a str is a warning beside its admission."""
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
