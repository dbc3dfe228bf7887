"""The NetworkPolicy around the pods of a Keystone.

Enters: a declared Keystone, its backends, and the numbers at which its pods serve now. Leaves: the policy, None when none is declared.
Rules restrict ports, not destinations. Source: spec/keystone.md 1.5; decisions, Keystone 15, 22; C13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from moorage.core.meta import JsonObject
from moorage.keystone.addresses import PORT
from moorage.keystone.backend.materials import Document

from . import federated_pods, pods
from .manifests import child
from .seen import Attached
from .types import Keystone

OPERATOR_NAMESPACE: Final = "moorage-system"
_LDAP_PORTS: Final = {"ldap": 389, "ldaps": 636}


@dataclass(frozen=True, slots=True)
class Serving:
    """How the pods serve.

    Args:
        ports: numbers at which clients reach them; two of them while a roll replaces one kind of pods by the other.
        forwards: sidecars hand SAML requests to the one pod that answers them.
    """

    ports: tuple[int, ...] = (PORT,)
    forwards: bool = False


def network_policy(keystone: Keystone, backends: Iterable[Attached], serving: Serving = Serving()) -> JsonObject | None:
    """The policy around all pods, those of Jobs included."""
    wanted = keystone.spec.network_policy
    if wanted is None:
        return None
    operator = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": OPERATOR_NAMESPACE}}}
    ours = {"matchLabels": pods.selector(keystone.metadata.name)}
    sources = [peer.to_wire() for peer in wanted.ingress]
    siblings = [{"from": [{"podSelector": ours}], "ports": [_tcp(federated_pods.PORT)]}]
    reached = _egress_ports(keystone, backends) | ({federated_pods.PORT} if serving.forwards else set())
    spec = {
        "podSelector": ours,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": [*sources, operator], "ports": [_tcp(port) for port in sorted(serving.ports)]},
            *(siblings if serving.forwards else []),
        ],
        "egress": [
            {"ports": [{"protocol": "UDP", "port": 53}, _tcp(53)]},
            {"ports": [_tcp(port) for port in sorted(reached)]},
            *(wanted.additional_egress or ()),
        ],
    }
    return {**child(keystone, "networking.k8s.io/v1", "NetworkPolicy"), "spec": spec}


def _tcp(port: int) -> JsonObject:
    return {"protocol": "TCP", "port": port}


def _egress_ports(keystone: Keystone, backends: Iterable[Attached]) -> set[int]:
    found = {443, 6443}
    if keystone.spec.database.host is not None:
        found.add(keystone.spec.database.effective_port)
    servers = keystone.spec.cache.servers if keystone.spec.cache else None
    for server in servers or ():
        _, _, port = server.rpartition(":")
        found.add(int(port) if port.isdecimal() and 0 < int(port) < 65536 else 11211)
    for item in backends:
        if item.terminating:
            continue
        if item.backend.spec.ldap is not None:
            found |= ldap_ports(item.backend.spec.ldap.url)
        if isinstance(item.materials.document, Document):
            found |= item.materials.document.ports
    return found


def ldap_ports(urls: str) -> set[int]:
    """TCP ports of the directories in an `[ldap] url`, several separated by commas or blanks."""
    found = set()
    for url in filter(None, re.split(r"[,\s]+", urls)):
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            continue
        if parts.scheme in _LDAP_PORTS:
            found.add(port or _LDAP_PORTS[parts.scheme])
    return found
