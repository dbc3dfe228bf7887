"""The two servers of the suite, each with a webhook server beside it.

Enters: a folder. Leaves: a `Target` for the time of a `with`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.hooks import HookServer
from tests.conformance.play import Target
from tests.conformance.wire import Access
from tests.real.embedded import embedded
from tests.real.kubernetes import kubernetes


@contextmanager
def real(folder: Path) -> Iterator[Target]:
    """A real kube-apiserver; raises NotBuilt when tools/conformance.py has not been run."""
    with kubernetes(folder) as server, HookServer(folder) as hooks:
        yield Target("real", Access(server.url, server.trust, server.token), server.kubeconfig, hooks)


@contextmanager
def ours(folder: Path) -> Iterator[Target]:
    """The embedded server."""
    folder.mkdir(parents=True, exist_ok=True)
    with embedded(folder) as server, HookServer(folder) as hooks:
        client = None if server.token else server.client
        yield Target("ours", Access(server.url, server.trust, server.token, client), server.kubeconfig, hooks)
