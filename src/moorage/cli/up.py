"""`moorage up`: one-machine mode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from moorage.cli.options import AllowedNetworksOption
from moorage.cli.signature import Option


def command(
    data: Annotated[
        str, Option("--data", help="Folder that holds everything: database, keys, volumes, logs.")
    ] = "~/.local/share/moorage",
    port: Annotated[int, Option("--port", min=0, max=65535, help="Port of the API server; 0: any free one.")] = 0,
    history: Annotated[str, Option("--history", help="How long watches can be resumed.")] = "5m",
    log_level: Annotated[str, Option("--log-level", help="debug, info, warning or error.")] = "warning",
    metrics_bind: Annotated[
        str, Option(help="Address of the controllers' /metrics, such as 127.0.0.1:8080; default: none.")
    ] = "",
    federation_metadata_allow_cidrs: AllowedNetworksOption = "",
    image: Annotated[
        list[str] | None,
        Option("--image", metavar="NAME=FOLDER", help="An image of your own for pods: a folder with an image.toml."),
    ] = None,
) -> None:
    """Start one-machine mode: API server, all controllers, and a node that runs pods as processes of this machine.

    The first line on standard output is `kubeconfig: PATH`, as soon as the server answers. Ctrl-C stops everything in order.

    Example:  moorage up --data /var/lib/moorage
    """
    from moorage.cli.machine import UpOptions, further_images, run_machine
    from moorage.cli.operator import allowed_networks
    from moorage.core.durations import parse_duration
    from moorage.core.errors import InputError

    try:
        seconds = parse_duration(history)
    except ValueError as error:
        raise InputError("--history", str(error)) from error
    if seconds < 0:
        raise InputError("--history", "is negative", "Write it like 5m")
    if not data.strip():
        raise InputError("--data", "is empty", "Name a folder")
    allowed = allowed_networks(federation_metadata_allow_cidrs)
    images = further_images(image or ())
    run_machine(UpOptions(Path(data).expanduser().resolve(), port, seconds, log_level, allowed, images, metrics_bind))
