"""The real servers as pytest fixtures; a conftest.py of a folder that wants them imports the ones it uses.

One of each for a test session, except `directory`, whose passwords tests change: one for each test. A missing program skips nothing: the test fails
with the sentence that says how to get it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.directory import Directory, slapd
from tests.real.embedded import Embedded, embedded
from tests.real.etcd import Etcd, etcd
from tests.real.keystone import Keystone, keystone
from tests.real.kubernetes import Kubernetes, kubernetes


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    """slapd with the example's tree, for one test."""
    with slapd(tmp_path / "directory") as served:
        yield served


@pytest.fixture(scope="session")
def real_keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    """Keystone 30 under uWSGI."""
    with keystone(tmp_path_factory.mktemp("keystone")) as served:
        yield served


@pytest.fixture(scope="session")
def real_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    """An empty etcd."""
    with etcd(tmp_path_factory.mktemp("etcd")) as served:
        yield served


@pytest.fixture(scope="session")
def real_kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    """kube-apiserver with etcd and the controllers for namespaces and owners."""
    with kubernetes(tmp_path_factory.mktemp("kubernetes")) as served:
        yield served


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """The embedded API server as a process of its own."""
    with embedded(tmp_path_factory.mktemp("embedded")) as served:
        yield served
