"""Names of Services: the hosts file of pods.

Enters: Services. Leaves: text and addresses. It must not open a socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from moorage.core.meta import JsonObject, Key

DOMAIN = "cluster.local"
_HEAD = (
    "# Written by moorage; Services of this machine.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
)


def address_of(service: JsonObject | None) -> str | None:
    """The ClusterIP of a Service; None when it has none."""
    address = ((service or {}).get("spec") or {}).get("clusterIP")
    return None if address in (None, "", "None") else str(address)


def service_lines(services: Iterable[JsonObject], headless: Mapping[Key, str]) -> str:
    """One hosts line for each Service. `headless`: the address of a ready pod, for Services without ClusterIP."""
    lines = []
    for service in services:
        meta = service["metadata"]
        key = Key(meta["namespace"], meta["name"])
        address = address_of(service) or headless.get(key)
        if address:
            base = f"{key.name}.{key.namespace}"
            lines.append(f"{address}\t{base}.svc.{DOMAIN} {base}.svc {base}\n")
    return "".join(sorted(lines))


def hosts_text(pod: JsonObject, pod_ip: str, hostname: str, services: str) -> str:
    """The whole hosts file of a pod; Services of its own namespace are known by their bare names, too."""
    namespace = pod["metadata"]["namespace"]
    own = f"{pod_ip}\t{hostname}\n" if pod_ip else ""
    for alias in pod["spec"].get("hostAliases") or ():
        own += f"{alias['ip']}\t{' '.join(alias.get('hostnames') or ())}\n"
    bare = [_with_bare_name(line, namespace) for line in services.splitlines()]
    return _HEAD + own + "".join(f"{line}\n" for line in bare)


def _with_bare_name(line: str, namespace: str) -> str:
    base = line.rpartition(" ")[2]
    name, _, of = base.partition(".")
    return f"{line} {name}" if of == namespace else line


def write_hosts(folder: Path, text: str) -> bool:
    """Replaces the hosts file by a rename, so a reader sees the old or the new one; says whether it changed."""
    place = folder / "hosts"
    try:
        if place.read_text() == text:
            return False
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
    draft = folder / ".hosts.new"
    draft.write_text(text)
    draft.rename(place)
    return True
