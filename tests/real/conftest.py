"""Fixtures of the real servers for their own tests."""

from tests.real.fixtures import directory, embedded_server, real_etcd, real_keystone, real_kubernetes

__all__ = ["directory", "embedded_server", "real_etcd", "real_keystone", "real_kubernetes"]
