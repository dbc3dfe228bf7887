"""One-machine mode, wired: the API server, all controllers, and the node, started in order and stopped in order.

Enters: options. Leaves: when it was told to stop. The controllers and the node get the same kubeconfig that a person gets.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from moorage import keystone
from moorage.apiserver import Server
from moorage.cli.systems import ADMISSIONS, KINDS, ROOMS
from moorage.core.addresses import Network
from moorage.core.errors import EnvironmentError_, InputError, StorageError
from moorage.core.meta import JsonObject
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.node.images.recipe import load
from moorage.node.images.store import Recipe
from moorage.node.network.addresses import SERVICES, claim
from moorage.node.node import Node
from moorage.node.options import NodeOptions
from moorage.runtime import logs
from moorage.runtime.install import people_roles, webhook_configurations
from moorage.runtime.operator import Operator, Options

_SERVICE = Path(keystone.__file__).parent / "service"
IMAGES = (
    Recipe(("moorage/keystone",), _SERVICE / "image"),
    Recipe(("moorage/keystone-federation-proxy",), _SERVICE / "sidecar"),
)
"""The images that the kinds of this version need."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What `moorage up` was told: data folder, port (0: any), history in seconds, log level, networks open to metadata, further images, where metrics are shown."""

    data: Path
    port: int
    history: float
    log_level: str
    allowed: tuple[Network, ...] = ()
    images: tuple[Recipe, ...] = ()
    metrics_bind: str = ""


def run_machine(options: UpOptions) -> None:
    """Run until SIGINT or SIGTERM.

    Raises:
        EnvironmentError_: another `moorage up` holds the data folder.
        StorageError: the data folder cannot be used.
    """
    import uvloop

    logs.configure(level=options.log_level)
    with _only_one(options.data):
        uvloop.run(_run(options))


@contextlib.contextmanager
def _only_one(data: Path) -> Iterator[None]:
    """Hold the data folder by a lock that the kernel drops with the process."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)  # a folder that was there before may be open to others; it holds every Secret
        handle = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(str(data), f"cannot be used: {error.strerror}", "Name another folder with --data") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        fix = f"Use it: kubeconfig {data / 'kubeconfig'}; or name another folder with --data"
        raise EnvironmentError_(str(data), "another `moorage up` runs on this data", fix) from error
    try:
        yield
    finally:
        os.close(handle)


async def _run(options: UpOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    kubeconfig = options.data / "kubeconfig"
    async with _server(options, kubeconfig) as handlers, Client(load_kubeconfig(str(kubeconfig))) as client:
        await install(client)
        wanted = Options(local=True, metrics_bind=options.metrics_bind, admissions=ADMISSIONS, allowed=options.allowed)
        operator = Operator(ROOMS, client, wanted)
        handlers.operator = operator
        node = Node(client, options.data, NodeOptions(recipes=(*options.images, *IMAGES), say=click.echo))
        click.echo(f"kubeconfig: {kubeconfig}")
        if sys.stdout.isatty():
            click.echo(
                f"next: export KUBECONFIG={kubeconfig} in another terminal; Ctrl-C here stops everything in order"
            )
        await _until_stopped(stop, operator, node)


class _Handlers:
    """Admission in this process: the server starts before the operator that answers it."""

    def __init__(self) -> None:
        self.operator: Operator | None = None

    def of(self, path: str) -> _Handler:
        return _Handler(self, path)


class _Handler:
    def __init__(self, handlers: _Handlers, path: str) -> None:
        self._handlers, self._path = handlers, path

    async def __call__(self, review: JsonObject) -> JsonObject:
        if self._handlers.operator is None:
            raise EnvironmentError_("admission", "the operator has not started yet", "Try again in a moment")
        return await self._handlers.operator.handlers()[self._path](review)


@contextlib.asynccontextmanager
async def _server(options: UpOptions, kubeconfig: Path) -> AsyncIterator[_Handlers]:
    handlers = _Handlers()
    paths = [path for admission in ADMISSIONS for path in (admission.mutate_path, admission.validate_path)]
    addresses = claim(SERVICES, options.data / "node" / "services", keep=True)
    server = Server(
        options.data,
        port=options.port,
        history=options.history,
        in_process={path: handlers.of(path) for path in paths},
        service_cidr=str(addresses.block),
    )
    try:
        await server.start()
    except OSError as error:
        addresses.close()
        raise _not_started(error, options) from error
    try:
        server.kubeconfig(kubeconfig)
        yield handlers
    finally:
        await server.stop()
        addresses.close()


def further_images(given: Sequence[str]) -> tuple[Recipe, ...]:
    """Images of a person, each as `NAME=FOLDER`; the folder holds an `image.toml`.

    Raises:
        InputError: it is not written so, or the recipe cannot be used.
    """
    found = []
    for text in given:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder):
            raise InputError(
                f"--image {text}", "is not NAME=FOLDER", "Write it like --image pocket-id=images/pocket-id"
            )
        place = Path(folder).expanduser().resolve()
        load(place)
        found.append(Recipe((name,), place))
    return tuple(found)


def _not_started(error: OSError, options: UpOptions) -> EnvironmentError_:
    """What a person can do about a server that did not start."""
    if error.errno == errno.EADDRINUSE:
        return EnvironmentError_(f"port {options.port}", "is taken by another process", "Choose another with --port")
    if error.errno in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM):
        why = f"the disk refuses: {error.strerror}"
        return StorageError(str(options.data), why, "Free space or permit writing, or name another folder with --data")
    return EnvironmentError_("the API server", f"did not start: {error.strerror or error}")


async def install(client: Client, client_config: JsonObject | None = None) -> None:
    """CRDs, people's roles and webhook configurations of this version, applied and served."""
    for kind in KINDS:
        await client.apply(resources.CRDS, kind.crd())
    for role in people_roles(KINDS):
        await client.apply(resources.CLUSTER_ROLES, role)
    for configuration in webhook_configurations(ADMISSIONS, client_config):
        resource = (
            resources.MUTATING_WEBHOOKS if configuration["kind"].startswith("M") else resources.VALIDATING_WEBHOOKS
        )
        await client.apply(resource, configuration)


async def _until_stopped(stop: asyncio.Event, operator: Operator, node: Node) -> None:
    """Run both; controllers stop before the node ends its pods, the node before the server."""
    stop_node = asyncio.Event()
    tasks = [
        asyncio.create_task(operator.run(stop), name="operator"),
        asyncio.create_task(node.run(stop_node), name="node"),
    ]
    done, _ = await asyncio.wait(
        [asyncio.create_task(stop.wait(), name="stop"), *tasks], return_when=asyncio.FIRST_COMPLETED
    )
    stop.set()
    if sys.stdout.isatty():
        click.echo("stopping: controllers end their passes, then pods get their grace")
    await asyncio.gather(tasks[0], return_exceptions=True)
    stop_node.set()
    await asyncio.gather(tasks[1], return_exceptions=True)
    _raise_first([task for task in done if task.get_name() != "stop"])


def _raise_first(ended: Sequence[asyncio.Task[object]]) -> None:
    for task in ended:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
