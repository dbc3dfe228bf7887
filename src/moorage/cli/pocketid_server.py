"""Which Pocket-ID a command talks to, and as whom.

Enters: an address with a file that holds the API key, or a PocketIDInstance of a cluster. Leaves: a REST client that can only read: a request that
would write is refused before it is sent. The key never stands in arguments, and in no message.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moorage.cli.manifests import text_of
from moorage.cli.pocketid_owners import instances_of
from moorage.core.errors import EnvironmentError_, InputError
from moorage.core.meta import JsonObject, Key, key_of
from moorage.core.secret import SecretText
from moorage.kube.errors import NotFound
from moorage.kube.resources import SECRETS, SERVICES
from moorage.net.resolver import ServiceResolver
from moorage.net.sessions import Sessions
from moorage.pocketid.reach import data_text, facts_of, key_source
from moorage.pocketid.rest import Forbidden, PocketID, PocketIDError, Server, Unauthorized

if TYPE_CHECKING:
    from moorage.kube.client import Client

_SERVICE: Final = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?")


@dataclass(frozen=True, slots=True)
class Reached:
    """A server, the key to it, and the address of the Service that it stands behind ("" when it has a name of its own)."""

    server: Server
    service_ip: str = ""


def named(url: str, key_file: str | None) -> Reached:
    """The server at an address, with the key in a file (`-`: standard input).

    Raises:
        InputError: address or file cannot be used.
    """
    if key_file is None:
        raise InputError(
            "--url", "needs an API key", "Name the file that holds it with --api-key-file; - is standard input"
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
        has_password = parts.username is not None
    except ValueError:
        usable = has_password = False
    if has_password:
        raise InputError(
            "--url", "holds a user or a password", "Write the address only; the API key goes into --api-key-file"
        )
    if not usable:
        raise InputError(f"--url {url}", "is no http or https URL", "Write it like https://id.example.org")
    key = text_of(key_file).strip("\r\n")
    if not key:
        raise InputError(f"--api-key-file {key_file}", "is empty", "Put an API key of the Pocket-ID into it")
    return Reached(Server(url.rstrip("/"), SecretText(key)))


async def chosen(client: Client, name: str | None, namespace: str) -> JsonObject:
    """The instance of that name, or the only one that there is. `namespace` "": of all namespaces.

    Raises:
        InputError: there is none, or more than one.
    """
    everything = await instances_of(client, namespace)
    found = [item for item in everything if name in (None, key_of(item).name)]
    if len(found) == 1:
        return found[0]
    where = f"namespace {namespace}" if namespace else "any namespace"
    what = "PocketIDInstance" if name is None else f"PocketIDInstance {name}"
    if not found:
        there = ", ".join(str(key_of(item)) for item in everything)
        fix = f"There are: {there}" if there else "Create one, or name a server with --url and --api-key-file"
        raise InputError(what, f"does not exist in {where}", fix)
    listed = ", ".join(str(key_of(item)) for item in found)
    raise InputError(what, f"is not the only one in {where}: {listed}", "Choose with --instance and -n")


async def attached(client: Client, instance: JsonObject) -> Reached:
    """The server of an instance, with the key that its Secret holds.

    Raises:
        EnvironmentError_: its address is not known yet, or the key is not there.
    """
    facts, (source, name) = facts_of(instance), key_source(instance)
    what = f"PocketIDInstance {facts.key}"
    if not facts.url:
        raise EnvironmentError_(what, "the address of its server is not known yet", f"It says: {facts.why}")
    try:
        secret = await client.get(SECRETS, source)
    except NotFound:
        secret = {}
    key = data_text(secret, name)
    if not key:
        raise EnvironmentError_(
            what, f"Secret {source} has no API key under {name}", "Create it, or mend the reference"
        )
    return Reached(Server(facts.url, SecretText(key)), await _service_ip(client, facts.url))


async def _service_ip(client: Client, url: str) -> str:
    """The address behind a Service's name, which only the cluster resolves."""
    found = _SERVICE.fullmatch(urlsplit(url).hostname or "")
    if found is None:
        return ""
    try:
        service = await client.get(SERVICES, Key(found[2], found[1]))
    except NotFound:
        return ""
    return str((service.get("spec") or {}).get("clusterIP") or "")


@asynccontextmanager
async def reading(reached: Reached) -> AsyncIterator[PocketID]:
    """A REST client that reads.

    Raises:
        EnvironmentError_: the server refused, or did not answer; what to do is said.
    """
    resolver = ServiceResolver(lambda _namespace, _name: reached.service_ip or None)
    try:
        async with Sessions(resolver=resolver, fence=_refuse) as http:
            yield PocketID(http.calls, reached.server)
    except PocketIDError as error:
        raise EnvironmentError_(f"Pocket-ID at {reached.server.url}", str(error), _remedy(error)) from error


def _refuse() -> None:
    raise AssertionError("this command only reads")


def _remedy(error: PocketIDError) -> str:
    if isinstance(error, Unauthorized):
        return "Is the API key of this server, and still valid?"
    if isinstance(error, Forbidden):
        return "The API key must be an administrator's"
    return "Check the address, and that the server runs"
