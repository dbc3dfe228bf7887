"""The refusal of a patch. Enters: code, reason, sentence. Leaves: one exception. It must not know HTTP."""

from __future__ import annotations


class PatchError(Exception):
    """A patch cannot be applied.

    Attributes:
        code: HTTP status, 400 or 422.
        reason: reason of the APIStatus, such as `Invalid`.
        message: message of the APIStatus.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code, self.reason, self.message = code, reason, message
        super().__init__(message)
