"""The tree of errors. Each has a short code and a sentence; neither ever holds a secret.

MoorageError
├── InputError          what a person gave cannot be used (exit 2)
├── RefusedError        the answer is "no" (exit 1)
└── EnvironmentError_   the surroundings failed
    ├── WireError       a server could not be reached or answered nonsense
    └── StorageError    the disk refused
"""

from __future__ import annotations


class MoorageError(Exception):
    """Base of all foreseen errors.

    Args:
        what: the subject, such as a file or an address.
        why: one sentence without the final full stop.
        fix: what to do, one sentence without the final full stop.
    """

    code = "moorage_error"

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.what}: {self.why}" if self.why else self.what
        return f"{head}. {self.fix}" if self.fix else head


class InputError(MoorageError):
    """Input that cannot be read or used."""

    code = "unusable_input"


class RefusedError(MoorageError):
    """The answer to the question is no."""

    code = "refused"


class EnvironmentError_(MoorageError):
    """The surroundings failed: no server, no permission, no disk."""

    code = "environment"


class WireError(EnvironmentError_):
    """A server could not be reached, or its answer made no sense."""

    code = "wire"


class StorageError(EnvironmentError_):
    """The disk is full, read-only or broken."""

    code = "storage"
