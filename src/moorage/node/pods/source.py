"""A path of this machine among bubblewrap's words.

Enters: text. Leaves: the same text, marked, so that the supervisor knows which words to lay out for another user.
"""

from __future__ import annotations


class Source(str):
    """An absolute path of this machine that is bound into a sandbox; free of symlinks where a pod might have made them."""

    __slots__ = ()
