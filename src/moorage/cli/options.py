"""Options that several commands share, declared once."""

from __future__ import annotations

import enum
from typing import Annotated

from moorage.cli.signature import Option


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
