"""Who we are to an API server: tokens, token files, passwords, exec plugins.

Enters: what a kubeconfig says about a user. Leaves: a Credential for each request, renewed before it expires. It must
not log or print a token, a key, or the output of a plugin.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from moorage.core.errors import WireError
from moorage.core.secret import SecretText

from .tls import NO_SECRET

_SKEW = 10.0
"""Seconds before its expiry at which a credential is renewed."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What one request is authenticated with. `certificate` and `key` are PEM, given by exec plugins only."""

    authorization: SecretText = NO_SECRET
    certificate: str = ""
    key: SecretText = NO_SECRET


class Credentials(Protocol):
    """A source of credentials."""

    async def current(self) -> Credential:
        """The credential for the next request.

        Raises:
            WireError: it cannot be had now.
        """
        ...

    def refused(self) -> bool:
        """Forget what was cached because the server answered 401; True when a new one may differ."""
        ...


@dataclass(frozen=True)
class Fixed:
    """A token, a password or nothing (client certificates need no header)."""

    authorization: SecretText = NO_SECRET

    async def current(self) -> Credential:
        return self._credential

    def refused(self) -> bool:
        return False

    @cached_property
    def _credential(self) -> Credential:
        return Credential(self.authorization)


def bearer(token: str) -> SecretText:
    """The Authorization header of a bearer token."""
    return SecretText(f"Bearer {token}")


def basic(user: str, password: str) -> SecretText:
    """The Authorization header of a user name and password."""
    return SecretText("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())


@dataclass
class TokenFile:
    """A token in a file that somebody else renews (bound ServiceAccount tokens): read again every `period` seconds."""

    path: Path
    period: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _read_at: float = field(default=float("-inf"), init=False)
    _credential: Credential = field(default=Credential(), init=False)

    async def current(self) -> Credential:
        if self.clock() - self._read_at >= self.period:
            self._read()
        return self._credential

    def _read(self) -> None:
        try:
            token = self.path.read_text().strip()
        except OSError as error:
            if self._credential.authorization:
                return
            raise WireError(str(self.path), f"the token file cannot be read: {error.strerror}") from error
        if token:
            self._credential = Credential(bearer(token))
            self._read_at = self.clock()
        elif not self._credential.authorization:
            raise WireError(str(self.path), "the token file is empty")

    def refused(self) -> bool:
        self._read_at = float("-inf")
        return True


@dataclass(frozen=True, slots=True)
class ExecSpec:
    """`users[].user.exec` of a kubeconfig."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    api_version: str = "client.authentication.k8s.io/v1"
    cluster: Mapping[str, Any] | None = None
    install_hint: str = ""
    timeout: float = 60.0


@dataclass
class ExecPlugin:
    """Credentials printed by a command (`aws eks get-token`, `gke-gcloud-auth-plugin`, `kubelogin`).

    Source: KEP-541, client.authentication.k8s.io ExecCredential.
    """

    spec: ExecSpec
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _credential: Credential | None = field(default=None, init=False)
    _expires: datetime | None = field(default=None, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def current(self) -> Credential:
        async with self._lock:
            if self._credential is None or self._is_stale():
                status = await self._run()
                self._credential, self._expires = _credential_of(status, self.spec.command)
            return self._credential

    def _is_stale(self) -> bool:
        return self._expires is not None and (self._expires - self.now()).total_seconds() < _SKEW

    def refused(self) -> bool:
        self._credential = None
        return True

    async def _run(self) -> Mapping[str, Any]:
        name = self.spec.command
        try:
            process = await asyncio.create_subprocess_exec(
                name,
                *self.spec.args,
                env={**os.environ, **self.spec.env, "KUBERNETES_EXEC_INFO": self._info()},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise WireError(name, f"the credential plugin cannot be started: {error.strerror}", self._hint()) from error
        output = await _output_of(process, self.spec)
        return _status_of(output, self.spec)

    def _hint(self) -> str:
        return self.spec.install_hint.strip().rstrip(".")

    def _info(self) -> str:
        spec: dict[str, Any] = {"interactive": False}
        if self.spec.cluster is not None:
            spec["cluster"] = dict(self.spec.cluster)
        return json.dumps({"apiVersion": self.spec.api_version, "kind": "ExecCredential", "spec": spec})


async def _output_of(process: asyncio.subprocess.Process, spec: ExecSpec) -> bytes:
    try:
        output, _ = await asyncio.wait_for(process.communicate(), spec.timeout)
    except TimeoutError as error:
        raise WireError(spec.command, f"the credential plugin gave no answer in {spec.timeout:g}s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise WireError(spec.command, f"the credential plugin failed with exit code {process.returncode}")
    return output


def _status_of(output: bytes, spec: ExecSpec) -> Mapping[str, Any]:
    try:
        answer = json.loads(output)
        status = answer["status"]
        matches = answer["apiVersion"] == spec.api_version and isinstance(status, dict)
    except (ValueError, KeyError, TypeError):
        matches = False
    if not matches:
        raise WireError(spec.command, f"the credential plugin printed no ExecCredential of {spec.api_version}")
    return status  # type: ignore[no-any-return]


def _credential_of(status: Mapping[str, Any], command: str) -> tuple[Credential, datetime | None]:
    token, certificate = status.get("token") or "", status.get("clientCertificateData") or ""
    if not token and not certificate:
        raise WireError(command, "the credential plugin gave neither a token nor a certificate")
    header = bearer(token) if token else SecretText("")
    credential = Credential(header, certificate, SecretText(status.get("clientKeyData") or ""))
    stamp = status.get("expirationTimestamp")
    if not stamp:
        return credential, None
    try:
        return credential, datetime.fromisoformat(stamp)
    except ValueError as error:
        raise WireError(command, f"expirationTimestamp {stamp!r} is no RFC 3339 time") from error
