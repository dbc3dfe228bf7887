"""Asks a directory whether Keystone's declared settings would work there: address, TLS, bind, base DN, a few users.

Enters: a target. Leaves: a Directory, which is informational: it never blocks and never counts for Ready (decisions,
Keystone 20). It writes nothing, never prints a password, and runs off the event loop with bounded timeouts. Results are
kept for a while, so a pass over an unchanged backend asks nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from traceback import extract_tb
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import structlog
from ldap3 import BASE, LEVEL, NONE, SIMPLE, SUBTREE, Connection, Server, Tls
from ldap3.core.exceptions import LDAPException, LDAPNoSuchObjectResult

from moorage.core.meta import Key
from moorage.core.secret import SecretText
from moorage.keystone.identity_errors import clean

from .authorities import UnusableBundle
from .directory_words import NO_LDAP, roots, sentence
from .ldap import BindCredentials, is_proven
from .ldap_options import TRUE_WORDS
from .seen import Directory
from .types import Ldap

CONNECT_TIMEOUT: Final = 3.0
ANSWER_TIMEOUT: Final = 5
PATIENCE: Final = 2.0
"""Seconds that a pass waits for a probe; a slower one is read by the next pass."""
FRESH: Final = timedelta(seconds=100)
FRESH_FAILURE: Final = timedelta(seconds=50)
DOWN: Final = timedelta(seconds=5)
"""How long a refused connection answers for other backends of the same addresses: thousands of them do not knock one by one."""
SAMPLE: Final = 10
PROBE_AT: Final = "moorage.internal/probe-at"
"""Annotation by which a person asks for a fresh probe."""
_CONCURRENT: Final = 4
_log = structlog.get_logger("moorage.directory")


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as whom to ask.

    Args:
        authority: name of the Secret that `ca` is from.
        addresses: the address that a host name has for Keystone.
        asked: what a person wrote into the annotation PROBE_AT; another value asks at once.
    """

    urls: tuple[str, ...]
    start_tls: bool
    verify: bool
    ca: bytes | None
    user: str
    password: SecretText
    base: str
    query: str
    subtree: bool
    authority: str = ""
    addresses: tuple[tuple[str, str], ...] = ()
    asked: str = ""


def target_of(ldap: Ldap, extra: dict[str, str], credentials: BindCredentials, ca: bytes | None) -> Target:
    """The probe that belongs to a declaration, with the options that change how Keystone connects and searches."""
    users = ldap.users
    query = (
        f"(&{users.filter or ''}(objectClass={users.object_class or 'inetOrgPerson'})({users.id_attribute or 'cn'}=*))"
    )
    return Target(
        urls=tuple(part.strip() for part in ldap.url.split(",")),
        start_tls=extra.get("use_tls", "").lower() in TRUE_WORDS,
        verify=is_proven(extra),
        ca=ca,
        user=credentials.username,
        password=SecretText(credentials.password),
        base=users.tree_dn,
        query=query,
        subtree=extra.get("query_scope") == "sub",
        authority=ldap.tls.ca_bundle_secret_ref.name if ldap.tls else "",
    )


async def refused(target: Target) -> Directory | None:
    """What `probe` would say when no address takes a connection; asked on the loop, so that a directory that is down costs no thread.

    None when an address takes one, or when a name would have to be resolved, which may block.
    """
    loop, found = asyncio.get_running_loop(), None
    for url in target.urls:
        try:
            host, port, _ = _place(target, url)
            ip_address(host)
        except ValueError:
            return None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else "timed out"
            found = Directory("False", "AddressUnreachable", f"{_shown(url)}: {why}")
        else:
            transport.abort()
            return None
    return found


def probe(target: Target) -> Directory:
    """Try each address until one answers; blocks for a few seconds at most for each."""
    found = Directory("Unknown", "ProbeNotPossible", "no address is declared")
    for url in target.urls:
        found = _probe(target, url)
        if found.reason not in ("AddressUnreachable", "TLSFailed"):
            break
    return found


def _probe(target: Target, url: str) -> Directory:
    stage = "AddressUnreachable"
    try:
        server = _server(target, url, _trusted(target, url))
        socket.create_connection((server.host, server.port), CONNECT_TIMEOUT).close()
        stage = "TLSFailed" if server.ssl else "AddressUnreachable"
        with _connected(server, target) as connection:
            if target.start_tls:
                stage = "TLSFailed"
                connection.start_tls(read_server_info=False)
            stage = "BindFailed"
            connection.bind(read_server_info=False)
            stage = "SearchFailed"
            return _search(connection, target)
    except LDAPNoSuchObjectResult:
        return Directory(
            "False", "BaseDNNotFound", f"{_shown(url)}: base DN {target.base} does not exist, or may not be read"
        )
    except UnusableBundle as unusable:
        return Directory("False", "TLSFailed", str(unusable))
    except (LDAPException, OSError, ValueError, *NO_LDAP) as error:
        parts = urlsplit(url)
        why = sentence(error, target, parts.hostname or "", secure=parts.scheme == "ldaps")
        return Directory("False", stage, f"{_shown(url)}: {why}")


def _trusted(target: Target, url: str) -> str | None:
    """The authority's certificates where TLS is spoken; Keystone reads them there only."""
    return roots(target) if target.start_tls or url.startswith("ldaps://") else None


def _shown(url: str) -> str:
    """An address for a status: without user information, which may hold a password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _place(target: Target, url: str) -> tuple[str, int, bool]:
    """Address, port, and whether TLS is spoken from the first byte. Raises ValueError for a port that is none."""
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "ldaps"
    return dict(target.addresses).get(host, host), parts.port or (636 if secure else 389), secure


def _server(target: Target, url: str, trusted: str | None) -> Server:
    address, port, secure = _place(target, url)
    host = urlsplit(url).hostname or ""
    tls = Tls(
        validate=ssl.CERT_REQUIRED if target.verify else ssl.CERT_NONE,
        ca_certs_data=trusted,
        valid_names=[host],
        sni=host,
    )
    return Server(
        address,
        port=port,
        use_ssl=secure,
        tls=tls,
        get_info=NONE,
        connect_timeout=CONNECT_TIMEOUT,
    )


@contextmanager
def _connected(server: Server, target: Target) -> Iterator[Connection]:
    """An open connection, not yet bound; its socket is closed whatever happens, which the library does not see to."""
    connection = Connection(
        server,
        target.user,
        target.password.reveal(),
        authentication=SIMPLE,
        receive_timeout=ANSWER_TIMEOUT,
        raise_exceptions=True,
        read_only=True,
    )
    try:
        connection.open(read_server_info=False)
        yield connection
    finally:
        used = connection.socket
        with suppress(LDAPException, OSError):
            connection.unbind()
        if used is not None:
            used.close()


def _search(connection: Connection, target: Target) -> Directory:
    connection.search(target.base, "(objectClass=*)", BASE, attributes=["1.1"])
    connection.raise_exceptions = False
    scope = SUBTREE if target.subtree else LEVEL
    connection.search(target.base, target.query, scope, attributes=["1.1"], size_limit=SAMPLE)
    code, name = connection.result["result"], connection.result["description"]
    if code not in (0, 4):
        return Directory("False", "SearchFailed", f"searching users below {target.base}: {clean(str(name))}")
    count = sum(item.get("type") == "searchResEntry" for item in connection.response or ())
    many = f"{SAMPLE} or more" if count >= SAMPLE else "no" if count == 0 else str(count)
    users = "user" if count == 1 else "users"
    return Directory("True", "DirectoryAnswers", f"bind works and {many} {users} stand below {target.base}")


@dataclass
class _Entry:
    target: Target
    result: Directory | None = None
    at: datetime | None = None
    running: asyncio.Task[Directory] | None = None

    def is_fresh(self, now: datetime) -> bool:
        if self.result is None or self.at is None:
            return False
        return now - self.at < (FRESH if self.result.status == "True" else FRESH_FAILURE)


class Probes:
    """The last result for each backend, and the addresses that refused a moment ago; at most four probes run at once."""

    def __init__(self, work: Callable[[Target], Directory] = probe) -> None:
        self._work = work
        self._entries: dict[Key, _Entry] = {}
        self._down: dict[_Addresses, tuple[Directory, datetime]] = {}
        self._gate = asyncio.Semaphore(_CONCURRENT)

    def forget(self, key: Key) -> None:
        """The backend is gone."""
        self._entries.pop(key, None)

    def begin(self, key: Key, target: Target, now: Callable[[], datetime]) -> None:
        """Ask, unless the answer is fresh, known, or under way: `look` waits for it."""
        entry = self._entries.get(key)
        if entry is None or entry.target != target:
            entry = self._entries[key] = _Entry(target)
        if entry.running is not None or entry.is_fresh(now()):
            return
        known = self._down.get(_addresses(target))
        if known is not None and not target.asked and now() - known[1] < DOWN:
            entry.result, entry.at = known
        else:
            entry.running = asyncio.create_task(self._run(target, now))

    async def look(self, key: Key, target: Target, now: Callable[[], datetime]) -> Directory:
        """The result for this target: a fresh one, one that comes within two seconds, or the last one there is."""
        self.begin(key, target, now)
        entry = self._entries[key]
        if entry.running is not None:
            done, _ = await asyncio.wait({entry.running}, timeout=PATIENCE)
            if done:
                entry.result, entry.at, entry.running = entry.running.result(), now(), None
        return entry.result or Directory("Unknown", "ProbePending", "the directory has not answered yet")

    async def _run(self, target: Target, now: Callable[[], datetime]) -> Directory:
        async with self._gate:
            down = await refused(target)
            if down is None:
                self._down.pop(_addresses(target), None)
                return await _off_loop(lambda: self._work(target))
            self._down[_addresses(target)] = (down, now())
            return down


_Addresses: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


def _addresses(target: Target) -> _Addresses:
    return target.urls, target.addresses


async def _off_loop(work: Callable[[], Directory]) -> Directory:
    """In a daemon thread of its own: a directory that hangs never delays the end of the process."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Directory] = loop.create_future()

    def settle(found: Directory) -> None:
        if not answer.done():
            answer.set_result(found)

    def run() -> None:
        found = _guarded(work)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=run, name="directory-probe", daemon=True).start()
    return await answer


def _guarded(work: Callable[[], Directory]) -> Directory:
    try:
        return work()
    except Exception as error:  # noqa: BLE001  a probe is informational: whatever goes wrong in the library ends here
        at = extract_tb(error.__traceback__)[
            -1
        ]  # the place alone: a traceback takes long, and its values hold the password
        _log.warning("directory_probe_broke", error=type(error).__name__, at=f"{at.filename}:{at.lineno}")
        return Directory("Unknown", "ProbeNotPossible", "the probe itself broke, the log of moorage says how")
