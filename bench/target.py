"""One API server as load generators see it: where, trusted how, as whom.

Enters: a kubeconfig. Leaves: a Target that survives JSON.
"""

from __future__ import annotations

import base64
import ssl
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml


@dataclass(frozen=True, slots=True)
class Target:
    """`authority` and `pair` are PEM files; without an authority the certificate is not checked."""

    host: str
    port: int
    authority: str = ""
    pair: str = ""
    token: str = ""

    @property
    def context(self) -> ssl.SSLContext:
        """TLS as a client of this server speaks it, HTTP/1.1 only."""
        if self.authority:
            context = ssl.create_default_context(cafile=self.authority)
        else:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.pair:
            context.load_cert_chain(self.pair)
        context.set_alpn_protocols(["http/1.1"])
        return context

    @property
    def head(self) -> str:
        """The header lines of every request."""
        token = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return f"Host: {self.host}:{self.port}\r\n{token}User-Agent: bench\r\nAccept: application/json\r\n"

    def wire(self) -> dict[str, Any]:
        """For a program's specification."""
        return asdict(self)


def of_kubeconfig(path: Path) -> Target:
    """The server and user of a kubeconfig; certificates are written beside it."""
    config: dict[str, Any] = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    where = urlsplit(cluster["server"])
    authority = pair = ""
    if "certificate-authority-data" in cluster:
        authority = _written(path.with_suffix(".ca"), cluster["certificate-authority-data"])
    if "client-certificate-data" in user:
        pair = _written(path.with_suffix(".pem"), user["client-certificate-data"], user["client-key-data"])
    return Target(where.hostname or "", where.port or 443, authority, pair, user.get("token", ""))


def _written(path: Path, *parts: str) -> str:
    path.touch(mode=0o600)
    path.write_bytes(b"".join(base64.b64decode(part) for part in parts))
    return str(path)
