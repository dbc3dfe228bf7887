"""`moorage run` on a real kube-apiserver, as its ServiceAccount: the same life, with the rights of `moorage crds` and no more."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.real.kubectl import Kubectl, programs
from tests.real.kubernetes import Kubernetes, kubernetes, write_kubeconfig
from tests.real.ports import free_port
from tests.real.process import Command, Process

from .life import Open, Restart, all_at_once, whole
from .site import RESYNC, pocketid, site

pytestmark = [pytest.mark.conformance, pytest.mark.e2e, pytest.mark.timeout(900)]


@dataclass
class Operator:
    """`moorage run` as a process that can be killed and started again."""

    command: Command
    process: Process | None = None

    def start(self) -> None:
        self.process = self.command.start()

    def restart(self) -> None:
        """As a node that dies, and a pod that takes its place."""
        assert self.process is not None
        self.process.child.kill()
        self.process.child.wait()
        self.start()


@dataclass(frozen=True)
class Place:
    """Where a life is lived: how to look at it, and how to kill its operator and start it again."""

    open: Open
    restart: Restart


def _install(api: Kubernetes, folder: Path) -> str:
    """As the guide says, `moorage crds | kubectl apply -f -`; a token of the operator's ServiceAccount."""
    kubectl = Kubectl(api.kubeconfig, folder, "moorage-system", programs()[-1])
    crds = [sys.executable, "-m", "moorage.cli", "crds"]
    kubectl("apply", "-f", "-", given=subprocess.run(crds, check=True, capture_output=True, text=True).stdout)
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    for configuration in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        kubectl("delete", configuration, "--all")  # nobody serves them here
    return kubectl("create", "token", "moorage", "--duration=1h").strip()


@contextmanager
def operator(api: Kubernetes, folder: Path) -> Iterator[Operator]:
    """One replica, without webhooks."""
    token = _install(api, folder)
    assert json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["sub"].endswith(":moorage-system:moorage")
    kubeconfig = write_kubeconfig(folder / "run.kubeconfig", api.url, token)
    argv = [
        sys.executable,
        "-m",
        "moorage.cli",
        "run",
        "--no-webhooks",
        "--no-leader-elect",
        "--kubeconfig",
        str(kubeconfig),
    ]
    binds = ["--metrics-bind", f"127.0.0.1:{free_port()}", "--health-bind", f"127.0.0.1:{free_port()}"]
    made = Operator(Command("run", [*argv, *binds], folder))
    made.start()
    try:
        yield made
    finally:
        if made.process is not None:
            made.process.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A real API server with its namespace controller, an operator, a Pocket-ID."""
    folder = tmp_path_factory.mktemp("pocketid-kubernetes")
    with pytest.MonkeyPatch.context() as patched:
        for name, value in RESYNC.items():
            patched.setenv(name, value)
        with pocketid(folder / "pocketid") as url, kubernetes(folder / "api") as api, operator(api, folder) as run:
            yield Place(lambda: site(api.kubeconfig, url), run.restart)


@pytest.mark.case("P5", "P6", "B68")
async def test_a_client_from_nothing_to_nothing_on_a_real_api_server(place: Place) -> None:
    await whole(place.open, place.restart)


@pytest.mark.case("B80")
async def test_a_namespace_that_a_real_namespace_controller_empties_leaves_nothing_at_the_server(place: Place) -> None:
    await all_at_once(place.open, place.restart)
