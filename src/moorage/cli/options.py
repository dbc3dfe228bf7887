"""Options that several commands share, declared once."""

from __future__ import annotations

import enum
from typing import Annotated

import typer


class Output(enum.StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="text for people, json for programs.")]
KubeconfigOption = Annotated[
    str | None, typer.Option("--kubeconfig", help="Path of the kubeconfig; default: as kubectl finds it.")
]
ContextOption = Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig.")]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace; default: that of the context.")
]
AllNamespacesOption = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look into every namespace.")]
AllowedNetworksOption = Annotated[
    str,
    typer.Option(
        "--federation-metadata-allow-cidrs",
        help="Networks, separated by commas, from which metadata of identity providers may be fetched besides public ones.",
    ),
]
