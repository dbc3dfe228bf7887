"""A TLS front before a Keystone, as a cloud has one: Debian's Apache with mod_ssl, several servers behind it.

Enters: a folder, an authority, the addresses behind. Leaves: a served `https://` URL for the time of a `with`. It sets X-Forwarded-Proto, keeps Host, and
sends each request to the next server behind (`balance`), which is the hardest a gateway can be to sessions.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.certificates import Authority
from tests.real.ports import free_port
from tests.real.process import Command, Process, running
from tests.real.unprivileged import program

APACHE, MODULES = Path("/usr/sbin/apache2"), Path("/usr/lib/apache2/modules")
WANTED = [
    "mpm_event",
    "authz_core",
    "headers",
    "socache_shmcb",
    "ssl",
    "proxy",
    "proxy_http",
    "slotmem_shm",
    "proxy_balancer",
    "lbmethod_byrequests",
]


@dataclass(frozen=True)
class Gateway:
    """A served gateway: `base` is `https://HOST:PORT`, without a path."""

    base: str
    authority: Authority
    process: Process

    @property
    def trust(self) -> ssl.SSLContext:
        """A client context that trusts the gateway."""
        return ssl.create_default_context(cadata=self.authority.pem.decode())


def _config(folder: Path, address: str, behind: Sequence[str], pair: tuple[Path, Path]) -> str:
    modules = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in WANTED)
    members = "\n".join(f'    BalancerMember "{url}" disablereuse=on retry=0' for url in behind)
    user = "User nobody\nGroup nogroup\n" if os.geteuid() == 0 else ""
    return f"""\
{modules}
ServerRoot {folder}
PidFile {folder}/gateway.pid
DefaultRuntimeDir {folder}
Mutex file:{folder} default
ServerName {address}
{user}Listen {address}
ErrorLog /dev/stderr
StartServers 1
ServerLimit 2
ThreadsPerChild 25
MaxRequestWorkers 50
SSLEngine On
SSLCertificateFile {pair[0]}
SSLCertificateKeyFile {pair[1]}
LimitRequestFieldSize 65535
LimitRequestFields 200
KeepAliveTimeout 600
MaxKeepAliveRequests 0
ProxyPreserveHost On
RequestHeader set X-Forwarded-Proto https
<Proxy "balancer://keystone">
{members}
</Proxy>
ProxyPass "/" "balancer://keystone/"
"""


@contextmanager
def gateway(
    folder: Path, authority: Authority, behind: Sequence[str], *, host: str = "127.0.0.40", port: int = 0
) -> Iterator[Gateway]:
    """Serve https on `host` before the servers `behind` (each `http://ADDRESS:PORT`)."""
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port(host)
    pair = authority.issue(folder, "gateway", (host,))
    config = folder / "gateway.conf"
    config.write_text(_config(folder, f"{host}:{port}", behind, pair))
    argv = [program(APACHE, "apache2-bin"), "-DFOREGROUND", "-f", str(config)]
    with running(Command("gateway", argv, folder), port=port) as process:
        yield Gateway(f"https://{host}:{port}", authority, process)
