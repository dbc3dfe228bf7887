"""Where the API server is and who we are: kubeconfig files and the in-cluster account.

Enters: KUBECONFIG, `~/.kube/config`, a path, or the pod's service account folder. Leaves: one frozen Connection.
Proxies (`proxy-url`, HTTPS_PROXY) are ignored. Source: client-go `clientcmd` loading rules.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from moorage.core.errors import InputError
from moorage.core.secret import SecretText

from .credentials import Credentials, ExecPlugin, ExecSpec, Fixed, TokenFile, basic, bearer
from .tls import SYSTEM_TLS, Tls

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # each command reads one: 5 ms in Python, 0.3 in C


@dataclass(frozen=True)
class Connection:
    """An API server and our identity towards it. `headers` hold impersonation only."""

    server: str
    tls: Tls = SYSTEM_TLS
    credentials: Credentials = field(default_factory=Fixed)
    namespace: str = "default"
    headers: tuple[tuple[str, str], ...] = ()


def in_cluster(account: Path = _ACCOUNT, environ: Mapping[str, str] | None = None) -> Connection:
    """The connection of a pod's service account; the token is read again as kubelet renews it.

    Raises:
        InputError: this process does not run in a pod with a mounted service account.
    """
    env = os.environ if environ is None else environ
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    token, authorities = account / "token", account / "ca.crt"
    if not host or not port or not token.exists():
        raise InputError("in-cluster", "no service account is mounted here", "Give --kubeconfig outside a cluster")
    namespace = account / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        tls=Tls(authorities=_read(authorities) if authorities.exists() else ""),
        credentials=TokenFile(token),
        namespace=_read(namespace).strip() if namespace.exists() else "default",
    )


def load_kubeconfig(
    path: str | Path | None = None, context: str | None = None, environ: Mapping[str, str] | None = None
) -> Connection:
    """The connection of a kubeconfig context.

    Args:
        path: one file; None means the files of KUBECONFIG, else `~/.kube/config`.
        context: name of a context; None means `current-context`.

    Raises:
        InputError: no file, an unreadable file, or a context, cluster or user that is not there.
    """
    merged, files = _merge(_paths(path, os.environ if environ is None else environ), explicit=path is not None)
    name = context or merged.current
    if not name:
        raise InputError(files, "no current-context is set", "Give --context or set current-context")
    entry = merged.entry("contexts", name, files)
    cluster = merged.entry("clusters", str(entry.get("cluster", "")), files)
    user = merged.entry("users", str(entry["user"]), files) if entry.get("user") else {}
    server = str(cluster.get("server") or "")
    if not server:
        raise InputError(files, f"cluster {entry.get('cluster')!r} has no server")
    return Connection(
        server=(server if "://" in server else f"https://{server}").rstrip("/"),
        tls=_tls(cluster, user),
        credentials=_credentials(user, cluster, files),
        namespace=str(entry.get("namespace") or "default"),
        headers=_impersonation(user),
    )


@dataclass
class _Merged:
    """Several kubeconfig files as one: the first file that sets a value wins."""

    current: str = ""
    maps: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {"contexts": {}, "clusters": {}, "users": {}}
    )

    def entry(self, section: str, name: str, files: str) -> dict[str, Any]:
        found = self.maps[section].get(name)
        if found is None:
            known = ", ".join(sorted(self.maps[section])) or "none"
            raise InputError(files, f"{section.removesuffix('s')} {name!r} is not there; it has: {known}")
        return found


def _paths(path: str | Path | None, environ: Mapping[str, str]) -> Sequence[Path]:
    if path is not None:
        return [Path(path).expanduser()]
    listed = [Path(item).expanduser() for item in environ.get("KUBECONFIG", "").split(os.pathsep) if item]
    return listed or [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def _merge(paths: Sequence[Path], *, explicit: bool) -> tuple[_Merged, str]:
    files = os.pathsep.join(map(str, paths))
    present = [item for item in paths if item.exists()]
    if not present:
        fix = "" if explicit else "Give --kubeconfig or set KUBECONFIG"
        raise InputError(files, "no kubeconfig there", fix)
    merged = _Merged()
    for item in present:
        _merge_file(merged, item)
    return merged, files


def _merge_file(merged: _Merged, path: Path) -> None:
    try:
        document = yaml.load(_read(path), _LOADER) or {}  # noqa: S506  a safe one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise InputError(place, "not YAML") from error
    if not isinstance(document, dict):
        raise InputError(str(path), "not a kubeconfig")
    merged.current = merged.current or str(document.get("current-context") or "")
    for section, singular in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
        entries = document.get(section) or ()
        if not isinstance(entries, list | tuple) or not all(_is_entry(item, singular) for item in entries):
            raise InputError(str(path), f"{section} is not a list of named {section}")
        for item in entries:
            merged.maps[section].setdefault(item["name"], _absolute(item.get(singular) or {}, path.parent))


def _is_entry(item: Any, singular: str) -> bool:
    named = isinstance(item, dict) and isinstance(item.get("name"), str)
    return named and isinstance(item.get(singular) or {}, dict)


_PATH_FIELDS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def _absolute(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Paths in a kubeconfig are relative to its folder; a plugin's command only when it holds a slash."""
    found = dict(entry)
    for name in _PATH_FIELDS:
        if found.get(name):
            found[name] = str(folder / str(found[name]))
    plugin = found.get("exec")
    if plugin and "/" in str(plugin.get("command", "")):
        found["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return found


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Tls:
    return Tls(
        authorities=_pem(cluster, "certificate-authority"),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=str(cluster.get("tls-server-name") or ""),
        certificate=_pem(user, "client-certificate"),
        key=SecretText(_pem(user, "client-key")),
    )


def _pem(entry: Mapping[str, Any], name: str) -> str:
    """`NAME-data` (base64) wins over the file `NAME`."""
    inline = entry.get(f"{name}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise InputError("kubeconfig", f"{name}-data is not base64 of a PEM text") from error
    return _read(Path(entry[name])) if entry.get(name) else ""


def _credentials(user: Mapping[str, Any], cluster: Mapping[str, Any], files: str) -> Credentials:
    if user.get("tokenFile"):
        return TokenFile(Path(user["tokenFile"]))
    if user.get("token"):
        return Fixed(bearer(str(user["token"])))
    if user.get("username"):
        return Fixed(basic(str(user["username"]), str(user.get("password") or "")))
    if user.get("exec"):
        return ExecPlugin(_exec_spec(user["exec"], cluster, files))
    if user.get("auth-provider"):
        raise InputError(files, "auth-provider was removed from Kubernetes 1.26", "Use an exec plugin instead")
    return Fixed()


def _exec_spec(plugin: Mapping[str, Any], cluster: Mapping[str, Any], files: str) -> ExecSpec:
    if not plugin.get("command"):
        raise InputError(files, "an exec plugin has no command")
    if plugin.get("interactiveMode") == "Always":
        raise InputError(files, f"the plugin {plugin['command']} needs a terminal (interactiveMode: Always)")
    return ExecSpec(
        command=str(plugin["command"]),
        args=tuple(map(str, plugin.get("args") or ())),
        env={str(item["name"]): str(item["value"]) for item in plugin.get("env") or ()},
        api_version=str(plugin.get("apiVersion") or "client.authentication.k8s.io/v1"),
        cluster=_cluster_info(cluster) if plugin.get("provideClusterInfo") else None,
        install_hint=str(plugin.get("installHint") or ""),
    )


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    info: dict[str, Any] = {"server": cluster.get("server")}
    if authorities := _pem(cluster, "certificate-authority"):
        info["certificate-authority-data"] = base64.b64encode(authorities.encode()).decode()
    for name in ("tls-server-name", "insecure-skip-tls-verify"):
        if cluster.get(name):
            info[name] = cluster[name]
    return info


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    named = (("Impersonate-User", user.get("as")), ("Impersonate-Uid", user.get("as-uid")))
    headers = [(name, str(value)) for name, value in named if value]
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{key}", str(value)) for value in values]
    return tuple(headers)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
