"""`$(NAME)` in the arguments and variables of a container. A kubelet expands it from the environment, secrets included.

Enters: a text of a person. Leaves: the form that reaches the program unchanged. Pure. Source: Kubernetes, "Define dependent environment variables"; case B81.
"""

from __future__ import annotations


def literal(text: str) -> str:
    """The text as an argument or variable that reaches the program as it is; `$$` reads as `$`."""
    return text.replace("$", "$$")
