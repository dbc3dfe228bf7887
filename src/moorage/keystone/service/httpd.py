"""The part of the sidecar's configuration that is the same for all backends: httpd-base.conf.

Enters: the public address. Leaves: text. It names no backend and holds no secret. The server runs as a plain user, writes below /tmp only
and listens at the pod's own address. Source: spec/keystone.md 3.3; decisions, Keystone 9, 18, 21; case B21.
"""

from __future__ import annotations

from typing import Final

from moorage.keystone.backend.federation import FOLDER, Base
from moorage.render import apache

_MODULES: Final = (
    "mpm_event", "authn_core", "authz_core", "authz_user", "allowmethods", "headers", "reqtimeout", "proxy", "proxy_http", "auth_openidc", "auth_mellon",
)  # fmt: skip
_LIBRARIES: Final = "/usr/lib/apache2/modules"
_TEMPORARY: Final = "/tmp"  # noqa: S108 - a volume of the pod's own
_LISTEN: Final = "Listen ${POD_IP}:5050"
"""The one value that httpd itself is to expand: the pod's address, from its environment."""


def httpd_conf(base: Base | None) -> str:
    """httpd-base.conf. Behind TLS the server's name says so: mellon writes its addresses with that scheme (decision 21)."""
    return apache.text((_process(base), _modules(), _limits(), (f"Include {FOLDER}/conf.d/*.conf",)))


def _process(base: Base | None) -> apache.Lines:
    return (
        apache.directive("ServerRoot", FOLDER),
        apache.directive("PidFile", f"{_TEMPORARY}/apache2.pid"),
        apache.directive("DefaultRuntimeDir", _TEMPORARY),
        apache.directive("Mutex", f"file:{_TEMPORARY}", "default"),
        apache.directive("ServerName", _server_name(base)),
        _LISTEN,
        apache.directive("ErrorLog", "/dev/stderr"),
        apache.directive("LogLevel", "warn"),
        apache.directive("DocumentRoot", "/var/www/html"),
        apache.directive("ServerTokens", "Prod"),
        apache.directive("TraceEnable", "Off"),
    )


def _server_name(base: Base | None) -> str:
    if base is None:
        return "localhost"
    return f"https://{base.host}:{base.port or 443}" if base.scheme == "https" else base.authority


def _modules() -> apache.Lines:
    return tuple(apache.directive("LoadModule", f"{name}_module", f"{_LIBRARIES}/mod_{name}.so") for name in _MODULES)


def _limits() -> apache.Lines:
    """A session is several cookies of up to 4 kB and claims come as headers, so lines are long; how many at once is bounded."""
    return (
        # A pod that ends closes its idle connections, and a request that is on its way on one of them is lost: 5 of 19,000 in four rolls.
        apache.directive("KeepAlive", "Off"),
        apache.directive("StartServers", "1"),
        apache.directive("ThreadsPerChild", "25"),
        apache.directive("MinSpareThreads", "25"),
        apache.directive("MaxSpareThreads", "75"),
        apache.directive("MaxRequestWorkers", "200"),
        # A client that sends a byte now and then holds a worker, too: it has these seconds, and more only at this rate (bytes a second).
        apache.directive("RequestReadTimeout", "header=20-40,MinRate=500", "body=20,MinRate=500"),
        apache.directive("LimitRequestLine", "16380"),
        apache.directive("LimitRequestFields", "200"),
        apache.directive("LimitRequestFieldSize", "65535"),
    )
