"""Secret text that cannot be printed by accident."""

from __future__ import annotations

import hmac


class SecretText:
    """Holds a secret; `str`, `repr` and f-strings show a constant, only `reveal` gives the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself; call it only where the text is handed to its one consumer."""
        return self._text

    def __repr__(self) -> str:
        return "SecretText(***)"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(("SecretText", self._text))

    def __reduce__(self) -> str:
        raise TypeError("SecretText is not pickled: it would write the secret down")
