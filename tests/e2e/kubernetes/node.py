"""Our node as the kubelet of a real kube-apiserver, which has none: a program that runs until SIGTERM.

Enters: kubeconfig, data folder, further images as NAME=FOLDER. Leaves: nothing when it was told to stop. The manifests are the operator's, unchanged.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from moorage.cli.machine import IMAGES, further_images
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.node.node import Node
from moorage.node.options import NodeOptions


async def _run(kubeconfig: str, data: Path, images: list[str]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client(load_kubeconfig(kubeconfig), field_manager="kubelet") as client:
        await Node(client, data, NodeOptions(recipes=(*further_images(images), *IMAGES))).run(stop)


if __name__ == "__main__":
    Path(sys.argv[2]).mkdir(mode=0o700, exist_ok=True)
    asyncio.run(_run(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
