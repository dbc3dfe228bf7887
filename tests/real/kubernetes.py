"""A real kube-apiserver with etcd and the two controllers that API semantics need (namespaces, garbage collection).

Enters: a folder. Leaves: a served `Kubernetes` for the time of a `with`: URL, tokens, a kubeconfig for each user.
Users: `admin` (system:masters), `alice` and `bob` (no rights until a test grants some).
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.real.certificates import signing_pair
from tests.real.etcd import CACHE, built, etcd
from tests.real.ports import free_port
from tests.real.process import Command, Process, running

VERSION = "1.36.3"
BIN = CACHE / f"kubernetes-{VERSION}" / "bin"
USERS = {"admin": ("admin-token", "system:masters"), "alice": ("alice-token", ""), "bob": ("bob-token", "crew")}


@dataclass(frozen=True)
class Kubernetes:
    """A served API: where, with which tokens, trusted how."""

    url: str
    token: str
    ca: bytes | None
    kubeconfig: Path
    folder: Path
    processes: tuple[Process, ...] = ()

    @property
    def trust(self) -> ssl.SSLContext:
        """A client context that trusts the server's authority; without one, its self-made certificate."""
        if self.ca:
            return ssl.create_default_context(cadata=self.ca.decode())
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def user_kubeconfig(self, user: str) -> Path:
        """A kubeconfig of one of USERS."""
        return write_kubeconfig(self.folder / f"{user}.kubeconfig", self.url, USERS[user][0])


def write_kubeconfig(path: Path, url: str, token: str) -> Path:
    """Write a kubeconfig that skips the check of the server's self-made certificate."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "user"}}],
        "current-context": "real",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def _status(port: int, path: str, token: str, context: ssl.SSLContext) -> int:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


DISABLED = "ServiceAccount,Priority,DefaultTolerationSeconds,StorageObjectInUseProtection"
"""Admission plugins that fill pods and claims in for parts of a cluster that do not run here (scheduler, kubelet, volumes)."""

ANONYMOUS = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "anonymous": {"enabled": True, "conditions": [{"path": path} for path in ("/healthz", "/readyz", "/version")]},
}


def _apiserver(folder: Path, etcd_url: str, port: int, extra: tuple[str, ...]) -> Command:
    private, public = signing_pair(folder, "sa")
    tokens = folder / "tokens.csv"
    rows = [f'{token},{user},{user},"{groups}"' for user, (token, groups) in USERS.items()]
    tokens.write_text("\n".join(rows) + "\n")
    authentication = folder / "authentication.yaml"
    authentication.write_text(yaml.safe_dump(ANONYMOUS))
    argv = [
        str(built(BIN / "kube-apiserver")),
        *("--etcd-servers", etcd_url, "--service-account-issuer", "https://kubernetes.default.svc"),
        *("--service-account-key-file", str(public), "--service-account-signing-key-file", str(private)),
        *("--token-auth-file", str(tokens), "--authorization-mode", "RBAC"),
        *("--authentication-config", str(authentication)),
        *("--bind-address", "127.0.0.1", "--secure-port", str(port), "--cert-dir", str(folder / "certificates")),
        *("--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none"),
        *("--disable-admission-plugins", DISABLED, "--profiling=false"),
        *extra,
    ]
    return Command("kube-apiserver", argv, folder)


def _controllers(folder: Path, kubeconfig: Path, port: int, names: str) -> Command:
    argv = [
        str(built(BIN / "kube-controller-manager")),
        *("--kubeconfig", str(kubeconfig), "--leader-elect=false", f"--controllers={names}"),
        *("--service-account-private-key-file", str(folder / "sa.key")),
        *("--root-ca-file", str(folder / "certificates" / "apiserver.crt")),
        *("--bind-address", "127.0.0.1", "--secure-port", str(port)),
    ]
    return Command("kube-controller-manager", argv, folder)


CONTROLLERS = (
    "namespace-controller,garbage-collector-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,"
    "clusterrole-aggregation-controller"
)


@contextmanager
def kubernetes(
    folder: Path, *, extra: tuple[str, ...] = (), controllers: str = CONTROLLERS, fsync: bool = False
) -> Iterator[Kubernetes]:
    """Serve a fresh real API; `extra` are further kube-apiserver flags, `controllers` the controllers to run ("": none).

    `fsync`: writes are durable, as in production; tests do without.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port, manager_port = free_port(), free_port()
    url, token = f"https://127.0.0.1:{port}", USERS["admin"][0]
    kubeconfig = write_kubeconfig(folder / "admin.kubeconfig", url, token)
    untrusting = Kubernetes(url, token, None, kubeconfig, folder)
    with ExitStack() as stack:
        store = stack.enter_context(etcd(folder, fsync=fsync))
        command = _apiserver(folder, store.url, port, extra)
        ready = lambda: _status(port, "/readyz", token, untrusting.trust) == 200  # noqa: E731
        api = stack.enter_context(running(command, port=port, ready=ready))
        processes: tuple[Process, ...] = (store.process, api)
        if controllers:
            command = _controllers(folder, kubeconfig, manager_port, controllers)
            processes += (stack.enter_context(running(command, port=manager_port)),)
        yield Kubernetes(url, token, None, kubeconfig, folder, processes)
