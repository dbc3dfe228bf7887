"""A person who types the commands of a page: a checkout, a shell, the kubeconfig of a running machine.

Enters: commands as they are written. Leaves: AssertionError with what was printed when one fails. Where kubectl is not installed, what it would apply,
annotate and delete is done through the API, its other commands are left out, and every other command runs all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from tests.docs.commands import ROOT
from tests.e2e.cloud import BACKEND, cloud
from tests.e2e.one_machine.machine import Machine
from tests.real.kubectl import MACHINE

from moorage.cli.systems import KINDS
from moorage.kube import resources
from moorage.kube.errors import NotFound

TYPES = {
    "Namespace": resources.NAMESPACES,
    "Secret": resources.SECRETS,
    **{kind.kind: kind.resource for kind in KINDS},
}

ELSEWHERE = {
    "make demo": "a machine of its own; its steps are those of tests/e2e/one_machine",
    "make test": "this suite",
    "make check test": "run by .ci/run",
    "moorage up --data ./data": "is the machine of these tests",
    "moorage up --data /var/lib/moorage": "is the machine of these tests",
    "moorage run": "runs until it is stopped, on a cluster: tests/e2e/kubernetes",
    "moorage wait PocketIDOIDCClient my-app -n pocket-id": "needs a Pocket-ID: tests/pocketid/oidcclient",
}
"""Command -> where it is run instead."""


def copy(folder: Path) -> Path:
    """What of this repository the commands name."""
    checkout = folder / "checkout"
    shutil.copytree(ROOT / "examples", checkout / "examples")
    shutil.copytree(ROOT / "deploy" / "monitoring", checkout / "deploy" / "monitoring")
    return checkout


@dataclass
class Reader:
    """What is exported stays; `environment` is what the page takes for granted."""

    up: Machine
    checkout: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    has_kubectl: bool = MACHINE.exists()
    exported: list[str] = field(default_factory=list)

    async def run(self, command: str) -> None:
        """Type one command; AssertionError with what it printed when it fails."""
        if "kubectl" in command and not self.has_kubectl:
            await self._stand_in(command.split())
        elif command.startswith("export "):
            self.exported.append(self._mapped(command))
        else:
            await asyncio.to_thread(self._type, command)

    def _type(self, command: str) -> None:
        script = "; ".join(["set -euo pipefail", *self.exported, self._mapped(command)])
        environment = {
            **os.environ,
            **self.environment,
            "HOME": str(self.checkout),
            "KUBECONFIG": str(self.up.kubeconfig),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.checkout, env=environment, capture_output=True, text=True, timeout=800
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def _mapped(self, command: str) -> str:
        places = {
            "/var/lib/moorage": str(self.up.data),
            "$PWD/data": str(self.up.data),
            "/tmp/rendered": str(self.checkout / "rendered"),
        }
        for written, real in places.items():
            command = command.replace(written, real)
        return command

    async def _stand_in(self, words: list[str]) -> None:
        """`kubectl apply -f FOLDER`, `kubectl -n NAMESPACE annotate|delete keystoneidentitybackend NAME ...`."""
        async with cloud(self.up.kubeconfig) as site:
            match words:
                case ["kubectl", "apply", "-f", folder]:
                    for file in sorted((self.checkout / folder).glob("*.yaml")):
                        for document in yaml.safe_load_all(file.read_text()):
                            await site.client.apply(TYPES[document["kind"]], document)
                case [*_, "delete", "keystoneidentitybackend", name]:
                    with contextlib.suppress(NotFound):
                        await site.client.delete(BACKEND, site.key(name))
                case [*_, "annotate", "keystoneidentitybackend", name, annotation, "--overwrite"]:
                    key, _, value = annotation.partition("=")
                    patch = {"metadata": {"annotations": {key: value}}}
                    await site.client.patch(BACKEND, site.key(name), patch)
