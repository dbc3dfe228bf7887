"""A person who types the commands of a page: a checkout, a shell, the kubeconfig of a running machine.

Enters: commands as they are written. Leaves: AssertionError with what was printed when one fails. Where kubectl is not installed, what it would apply,
annotate and delete is done through the API, its other commands are left out, and every other command runs all the same.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from tests.docs.commands import ROOT
from tests.e2e.cloud import cloud
from tests.e2e.one_machine.machine import Machine
from tests.real.kubectl import MACHINE

from moorage.cli.server import kind_named, state_of
from moorage.cli.systems import KINDS
from moorage.cli.waiting import until
from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.kube import resources
from moorage.kube.client import Client
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
    "podman build -f deploy/images/moorage/Containerfile -t images.example.com/moorage:0.1.0 .": "tests/conformance/test_chart.py installs the same lock",
    "helm install moorage deploy --namespace moorage-system --create-namespace --set image.repository=images.example.com/moorage": "tests/conformance/test_chart.py",
    "moorage run": "runs until it is stopped, on a cluster: tests/e2e/kubernetes",
}
"""Command -> where it is run instead."""


def copy(folder: Path) -> Path:
    """What of this repository the commands name."""
    checkout = folder / "checkout"
    shutil.copytree(ROOT / "examples", checkout / "examples")
    shutil.copytree(ROOT / "deploy" / "monitoring", checkout / "deploy" / "monitoring")
    return checkout


@dataclass(frozen=True)
class Lone:
    """One-machine mode with nothing beside it."""

    data: Path

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"


@dataclass
class Reader:
    """What is exported stays; `environment` is what the page takes for granted, `places` what its addresses are here."""

    up: Machine | Lone
    checkout: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
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
            **self.places,
        }
        for written, real in places.items():
            command = command.replace(written, real)
        return command

    async def _stand_in(self, words: list[str]) -> None:
        """What kubectl would apply, create, annotate, delete and wait for, and values of Secrets that a page exports; whatever else it would only show."""
        async with cloud(self.up.kubeconfig) as site:
            match words:
                case ["kubectl", "apply", "-f", named]:
                    for document in _manifests(self.checkout / named):
                        await site.client.apply(TYPES[document["kind"]], document)
                case ["kubectl", "create", "namespace", name]:
                    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                    await site.client.create(resources.NAMESPACES, body)
                case ["kubectl", "-n", namespace, "create", "secret", "generic", name, *values]:
                    meta = {"name": name, "namespace": namespace}
                    data = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": self._values(values)}
                    await site.client.create(resources.SECRETS, data)
                case [*_, "-n", namespace, "delete", kind, name]:
                    with contextlib.suppress(NotFound):
                        await site.client.delete(kind_named(kind).resource, Key(namespace, name))
                case [*_, "-n", namespace, "annotate", kind, name, annotation, "--overwrite"]:
                    key, _, value = annotation.partition("=")
                    patch = {"metadata": {"annotations": {key: value}}}
                    await site.client.patch(kind_named(kind).resource, Key(namespace, name), patch)
                case [*_, "-n", namespace, "wait", "--for=condition=Ready", kinds, "--all", _]:
                    for kind in kinds.split(","):
                        resource = kind_named(kind).resource
                        for item in (await site.client.list(resource, namespace)).items:
                            await _ready(site.client, resource, key_of(item))
                case ["export", variable, "-n", namespace, "get", "secret", name, "-o", path, *_]:
                    held = await site.client.get(resources.SECRETS, Key(namespace, name))
                    text = base64.b64decode(held["data"][path.removeprefix("jsonpath={.data.").rstrip("}")]).decode()
                    self.exported.append(f"export {variable.partition('=')[0]}={shlex.quote(text)}")

    def _values(self, words: list[str]) -> dict[str, str]:
        """What `--from-literal` and `--from-file` give."""
        found = {}
        for word in words:
            option, key, value = word.split("=", 2)
            found[key] = (self.checkout / value).read_text() if option == "--from-file" else value
        return found


def _manifests(named: Path) -> list[JsonObject]:
    """The documents of a file, or of a folder's files."""
    files = [named] if named.is_file() else sorted(named.glob("*.yaml"))
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]


async def _ready(client: Client, resource: ResourceType, key: Key) -> None:
    async with asyncio.timeout(300):
        async for obj in until(client, resource, key):
            if obj is not None and state_of(obj).ready:
                return
