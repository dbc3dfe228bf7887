"""The launchers of real servers do what the other tests take for granted."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from ldap3.core.exceptions import LDAPException
from tests.real.database import Database
from tests.real.directory import Directory
from tests.real.embedded import Embedded
from tests.real.etcd import Etcd
from tests.real.keystone import PASSWORD, Keystone
from tests.real.kubectl import Kubectl, programs
from tests.real.kubernetes import Kubernetes
from tests.real.mariadb import mariadb
from tests.real.ports import free_port, holds
from tests.real.postgres import postgres
from tests.real.process import Command, NotReady, running

Serve = Callable[[Path], AbstractContextManager[Database]]
FRY = "uid=fry,ou=people,dc=planetexpress,dc=com"


def test_a_port_of_another_process_is_not_ours(tmp_path: Path) -> None:
    """`holds` tells who listens, so that a test never talks to a stranger."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert holds(os.getpid(), port)
        with running(Command("stranger", ["sleep", "60"], tmp_path)) as stranger:
            assert not holds(stranger.pid, port)
    assert not holds(os.getpid(), port)


def test_a_server_that_dies_at_start_says_its_last_words(tmp_path: Path) -> None:
    """NotReady carries the exit code and the log."""
    command = Command("dies", [sys.executable, "-c", "print('no such file'); raise SystemExit(3)"], tmp_path)
    with pytest.raises(NotReady, match=r"(?s)dies ended with 3.*no such file"), running(command, port=free_port()):
        pass


@pytest.mark.e2e
def test_a_directory_takes_logins_and_new_passwords(directory: Directory) -> None:
    """The example's people can log in; a changed password counts at once; a stopped directory answers nobody, a started one again."""
    assert directory.takes(FRY, "fry")
    directory.set_password(FRY, "slurm")
    assert not directory.takes(FRY, "fry")
    directory.stop()
    with pytest.raises(LDAPException):
        directory.takes(FRY, "slurm")
    directory.start()
    assert directory.takes(FRY, "slurm")


@pytest.mark.e2e
def test_a_directory_speaks_tls_with_its_own_authority(directory: Directory) -> None:
    """ldaps:// is proven by the private authority and by nothing else."""

    def proven(authority: str | None) -> bool:
        context = ssl.create_default_context(cadata=authority)
        address = ("127.0.0.1", directory.tls_port)
        try:
            with (
                socket.create_connection(address, timeout=5) as plain,
                context.wrap_socket(plain, server_hostname="localhost"),
            ):
                return True
        except ssl.SSLCertVerificationError:
            return False

    assert proven(directory.authority.pem.decode())
    assert not proven(None)


@pytest.mark.e2e
def test_a_keystone_gives_its_administrator_a_token(real_keystone: Keystone) -> None:
    """Password of the bootstrap, project-scoped."""
    user = {"name": "admin", "domain": {"name": "Default"}, "password": PASSWORD}
    scope = {"project": {"name": "admin", "domain": {"name": "Default"}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    request = urllib.request.Request(f"{real_keystone.url}/auth/tokens", json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201
        assert answer.headers["X-Subject-Token"]


@pytest.mark.conformance
def test_etcd_is_healthy(real_etcd: Etcd) -> None:
    """It answers on its own port."""
    with urllib.request.urlopen(f"{real_etcd.url}/version", timeout=5) as answer:
        assert json.load(answer)["etcdserver"] == "3.5.21"


@pytest.mark.conformance
@pytest.mark.parametrize("program", programs(), ids=str)
def test_kubectl_reaches_the_real_server(program: Path, real_kubernetes: Kubernetes, tmp_path: Path) -> None:
    """The administrator may do anything; alice may not, before a test grants it."""
    assert "default" in Kubectl(real_kubernetes.kubeconfig, tmp_path, program=program)("get", "namespaces")
    alice = Kubectl(real_kubernetes.user_kubeconfig("alice"), tmp_path, program=program).try_("get", "namespaces")
    assert alice.code == 1
    assert 'User "alice" cannot list resource "namespaces"' in alice.errors


@pytest.mark.e2e
def test_kubectl_reaches_the_embedded_server(embedded_server: Embedded, tmp_path: Path) -> None:
    """Its printed kubeconfig is enough."""
    assert "default" in Kubectl(embedded_server.kubeconfig, tmp_path)("get", "namespaces")


@pytest.mark.e2e
@pytest.mark.parametrize("serve", [mariadb, postgres])
def test_a_database_keeps_its_data_and_port_over_a_stop(serve: Serve, tmp_path: Path) -> None:
    """Both servers run unprivileged on a folder of the test's own; what was written is there after a new start."""
    with serve(tmp_path / "served") as database:
        before = database.port
        database.sql("CREATE ROLE kept")
        database.stop()
        assert database.process is None
        database.start()
        assert database.port == before
        with pytest.raises(subprocess.CalledProcessError):
            database.sql("CREATE ROLE kept")
