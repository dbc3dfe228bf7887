"""A cluster for the operator: real kube-apiserver and controllers, our node as kubelet, replicas of `moorage run` as processes.

Enters: a folder. Leaves: a `Cluster` for the time of a `with`. Each replica acts as the ServiceAccount of `moorage crds` by a
token of its own, so that missing rights show, and so that the audit log tells the replicas apart. Replicas see the Services by
name through a hosts file of their own (bubblewrap), as a cluster's DNS would; a forwarder stands for the webhook's Service.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from tests.real.directory import Directory, slapd
from tests.real.kubectl import BUILT, Kubectl
from tests.real.kubernetes import Kubernetes, kubernetes, write_kubeconfig
from tests.real.ports import children, free_port
from tests.real.process import Command, Process, running

from moorage.cli.systems import KINDS, RULES
from moorage.core.meta import JsonObject
from moorage.node.network.addresses import SERVICES, claim
from moorage.runtime.install import rbac

ROOT = Path(__file__).parents[3]
ACCOUNT = "system:serviceaccount:moorage-system:moorage"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
CREDENTIAL = "authentication.kubernetes.io/credential-id"


class Balancer(threading.Thread):
    """Takes connections on one port and passes them on to the first of several that answers, as a Service does."""

    def __init__(self, backends: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.backends = backends
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        for port in self.backends:
            try:
                backend = socket.create_connection(("127.0.0.1", port), timeout=1)
            except OSError:
                continue
            with client, backend:
                _copy(client, backend)
            return
        client.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _copy(one: socket.socket, other: socket.socket) -> None:
    peers = {one: other, other: one}
    while True:
        for ready in select.select([*peers], [], [])[0]:
            try:
                data = ready.recv(65536)
            except OSError:
                return
            if not data:
                return
            peers[ready].sendall(data)


@dataclass
class Replica:
    """One `moorage run`."""

    name: str
    kubeconfig: Path
    token_id: str
    metrics: int
    health: int
    webhooks: int
    command: Command
    process: Process | None = None

    def start(self) -> None:
        self.process = self.command.start()

    @property
    def pid(self) -> int:
        """The operator itself; its parent is bubblewrap."""
        assert self.process is not None
        return children(self.process.pid)[0]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """As a node that dies."""
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.child.wait()
        self.process = None

    def stop(self) -> None:
        """End it in order; one that has hardly begun, or ended by itself, is ended with its sandbox."""
        if self.process is not None:
            if children(self.process.pid):
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGTERM)
            else:
                self.process.child.terminate()
            self.process.child.wait(timeout=40)
            self.process = None


@dataclass
class Cluster:
    """The running cluster."""

    api: Kubernetes
    folder: Path
    directory: Directory
    kubectl: Kubectl
    replicas: list[Replica] = field(default_factory=list)

    @property
    def hosts(self) -> Path:
        return self.folder / "hosts"

    def name(self, service: str, address: str) -> None:
        """What the cluster's DNS would say."""
        with self.hosts.open("a") as file:
            file.write(f"{address} {service}\n")

    def audit(self) -> list[JsonObject]:
        """Everything that the ServiceAccount asked for, in order."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def changes(self) -> list[str]:
        """Credential ids of all writes to anything but the Lease and the certificate, in order of their arrival."""
        found = []
        for entry in sorted(self.audit(), key=lambda item: str(item["requestReceivedTimestamp"])):
            resource = entry.get("objectRef", {}).get("resource", "")
            if entry["verb"] in WRITES and resource not in ("leases", *_EACH) and not _is_authority(entry):
                found.append(entry["user"]["extra"][CREDENTIAL][0])
        return found


_EACH = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
"""Every replica sees to the CA of these, the leader or not."""


def _is_authority(entry: JsonObject) -> bool:
    return bool(entry["objectRef"].get("namespace") == "moorage-system" and entry["objectRef"]["resource"] == "secrets")


def used(entries: Sequence[JsonObject]) -> Counter[tuple[str, str, str]]:
    """(group, resource/subresource, verb) of requests, with their count."""
    found: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        ref = entry.get("objectRef", {})
        if ref.get("resource"):
            name = "/".join(filter(None, (ref["resource"], ref.get("subresource", ""))))
            found[ref.get("apiGroup", ""), name, entry["verb"]] += 1
    return found


def granted() -> list[tuple[str, str, str]]:
    """(group, resource/subresource, verb) of all rules that `moorage crds` gives the operator."""
    return [
        (group, resource, verb)
        for manifest in rbac(KINDS, RULES)
        if manifest["metadata"]["name"] == "moorage-operator"
        for rule in manifest.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def _token(kubectl: Kubectl) -> tuple[str, str]:
    """A token of the operator's ServiceAccount, and its id."""
    token = kubectl("create", "token", "moorage", "--duration=1h").strip()
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return token, f"JTI={claims['jti']}"


def _replica(cluster: Cluster, number: int, port: int, url: str, arguments: Sequence[str]) -> Replica:
    token, token_id = _token(replace(cluster.kubectl, namespace="moorage-system"))
    name = f"run-{number}"
    kubeconfig = write_kubeconfig(cluster.folder / f"{name}.kubeconfig", cluster.api.url, token)
    metrics, health = free_port(), free_port()
    argv = [
        *("bwrap", "--dev-bind", "/", "/", "--bind", str(cluster.hosts), "/etc/hosts", "--die-with-parent"),
        *(sys.executable, "-m", "moorage.cli", "run", "--kubeconfig", str(kubeconfig), "--webhook-url", url),
        *("--webhook-bind", f"127.0.0.1:{port}"),
        *("--metrics-bind", f"127.0.0.1:{metrics}", "--health-bind", f"127.0.0.1:{health}"),
        *arguments,
    ]
    return Replica(name, kubeconfig, token_id, metrics, health, port, Command(name, argv, cluster.folder))


def _install(kubectl: Kubectl) -> None:
    """As the guide says: `moorage crds | kubectl apply -f -`."""
    printed = subprocess.run(
        [sys.executable, "-m", "moorage.cli", "crds"], check=True, capture_output=True, text=True
    ).stdout
    kubectl("apply", "-f", "-", given=printed)
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


@contextmanager
def cluster(folder: Path, *arguments: str, images: Sequence[str] = ()) -> Iterator[Cluster]:
    """Two replicas at work, webhooks on, `arguments` at the end of their command line; raises NotBuilt when tools/conformance.py has not been run.

    `images`: further ones of the node, each `NAME=FOLDER`.
    """
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump(POLICY))
    with ExitStack() as stack:
        addresses = claim(SERVICES, folder / "services")
        stack.callback(addresses.close)
        extra = (
            *("--service-cluster-ip-range", str(addresses.block)),
            *("--audit-policy-file", str(policy), "--audit-log-path", str(folder / "audit.log")),
        )
        api = stack.enter_context(kubernetes(folder, extra=extra))
        directory = stack.enter_context(slapd(folder / "slapd"))
        found = Cluster(api, folder, directory, Kubectl(api.kubeconfig, folder, "openstack", BUILT))
        found.hosts.write_text(Path("/etc/hosts").read_text())
        _install(replace(found.kubectl, namespace="moorage-system"))
        node = [
            sys.executable,
            "-m",
            "tests.e2e.kubernetes.node",
            str(api.kubeconfig),
            str(folder / "node-data"),
            *images,
        ]
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        kubelet = stack.enter_context(running(Command("node", ["env", f"PYTHONPATH={path}", *node], folder)))
        kubelet.stop_limit = 60
        ports = [free_port(), free_port()]
        balancer = Balancer(ports)
        balancer.start()
        stack.callback(balancer.close)
        for number, port in enumerate(ports, start=1):
            replica = _replica(found, number, port, f"https://127.0.0.1:{balancer.port}", arguments)
            found.replicas.append(replica)
            stack.callback(replica.stop)
            replica.start()
        yield found
