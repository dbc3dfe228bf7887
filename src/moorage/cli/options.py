"""Options that several commands share, declared once."""

from __future__ import annotations

import enum
from typing import Annotated

from moorage.cli.signature import Option
from moorage.core.durations import parse_duration
from moorage.core.errors import InputError


def span(option: str, text: str) -> float:
    """Seconds of an option that says how long.

    Raises:
        InputError: it is no duration, or not longer than zero.
    """
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise InputError(option, str(error)) from error
    if found <= 0:
        raise InputError(option, f"{text} is not longer than zero", "Write it like 90s, 5m or 1h30m")
    return found


class Output(enum.StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"


OutputOption = Annotated[Output, Option("--output", "-o", help="text for people, json for programs.")]
KubeconfigOption = Annotated[
    str | None, Option("--kubeconfig", help="Path of the kubeconfig; default: as kubectl finds it.")
]
ContextOption = Annotated[str | None, Option("--context", help="Context of the kubeconfig.")]
NamespaceOption = Annotated[str | None, Option("--namespace", "-n", help="Namespace; default: that of the context.")]
AllNamespacesOption = Annotated[bool, Option("--all-namespaces", "-A", help="Look into every namespace.")]
AllowedNetworksOption = Annotated[
    str,
    Option(
        "--federation-metadata-allow-cidrs",
        help="Networks, separated by commas, from which metadata of identity providers may be fetched besides public ones.",
    ),
]
