"""ClusterIPs and node ports of Services.

Enters: Services as they are written and deleted. Leaves: addresses that no other Service has. Source: Kubernetes, "Service".
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable

from moorage.apiserver.errors import internal, invalid
from moorage.apiserver.hub import Change, Entry, Hub
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject
from moorage.schema import FieldError
from moorage.schema import invalid as invalid_value

_NODE_PORTS = range(30000, 32768)
_TRIES = 64


class Addresses:
    """Hands out ClusterIPs of one range."""

    def __init__(self, hub: Hub, cidr: str) -> None:
        self._network = ipaddress.ip_network(cidr)
        self._by_key: dict[str, tuple[frozenset[str], frozenset[int]]] = {}
        for entry in hub.collections["services"].select(""):
            self._hold(entry)
        hub.listeners.append(self._notice)

    def _notice(self, change: Change) -> None:
        if change.storage != "services":
            return
        if change.type == "DELETED":
            self._by_key.pop(change.entry.key, None)
        else:
            self._hold(change.entry)

    def _hold(self, entry: Entry) -> None:
        spec = entry.parse()["spec"]
        addresses = frozenset(address for address in spec.get("clusterIPs") or () if address != "None")
        ports = frozenset(port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort"))
        self._by_key[entry.key] = (addresses, ports)

    def allocate(self, served: ServedType, obj: JsonObject) -> None:
        """Fill in what a Service leaves to the server.

        Raises:
            StatusError: 422, an address that is asked for is taken or out of range.
        """
        if served.storage != "services":
            return
        meta, spec = obj["metadata"], obj.setdefault("spec", {})
        key = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
        if spec.get("type") == "ExternalName":
            for name in ("clusterIP", "clusterIPs"):
                spec.pop(name, None)
            return
        errors = self._address(spec, key) + self._ports(spec, key)
        if errors:
            raise invalid(served.resource, meta.get("name", ""), errors)

    def _others(self, key: str) -> Iterable[tuple[frozenset[str], frozenset[int]]]:
        return (held for other, held in self._by_key.items() if other != key)

    def _address(self, spec: JsonObject, key: str) -> list[FieldError]:
        wanted = spec.get("clusterIP") or ((spec.get("clusterIPs") or [""])[0])
        taken: set[str] = set().union(*(addresses for addresses, _ in self._others(key)))
        if not wanted:
            wanted = self._free(taken)
        elif wanted != "None" and (not _is_address(wanted) or self._moves(key, wanted)):
            return []  # for validation to refuse
        elif wanted != "None" and (why := self._refused(wanted, taken)):
            return [
                invalid_value(
                    "spec.clusterIPs", spec.get("clusterIPs") or [wanted], f"failed to allocate IP {wanted}: {why}"
                )
            ]
        spec["clusterIP"], spec["clusterIPs"] = wanted, [wanted]
        spec.setdefault("ipFamilies", [f"IPv{self._network.version}"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        return []

    def _moves(self, key: str, wanted: str) -> bool:
        """Whether a Service that has an address wants another."""
        held = self._by_key.get(key, (frozenset(), frozenset()))[0]
        return bool(held) and wanted not in held

    def _refused(self, wanted: str, taken: set[str]) -> str:
        if ipaddress.ip_address(wanted) not in self._network:
            return f"the provided network does not match the current range {self._network}"
        return "provided IP is already allocated" if wanted in taken else ""

    def _free(self, taken: set[str]) -> str:
        """Any address but the first few, which people choose from, as long as there is one (Kubernetes, "Service ClusterIP allocation")."""
        end = self._network.num_addresses - 1
        first = 1 + (min(max(16, end // 16), 256) if end > 17 else 0)
        for _ in range(_TRIES):
            found = str(self._network[random.randrange(first, end)])  # noqa: S311 - no secret
            if found not in taken:
                return found
        for number in reversed(range(1, end)):
            if (found := str(self._network[number])) not in taken:
                return found
        raise internal("failed to allocate a serviceIP: range is full")

    def _ports(self, spec: JsonObject, key: str) -> list[FieldError]:
        taken: set[int] = set().union(*(ports for _, ports in self._others(key)))
        errors: list[FieldError] = []
        wants = spec.get("type") in ("NodePort", "LoadBalancer")
        for at, port in enumerate(spec.get("ports") or ()):
            given = port.get("nodePort")
            if not wants:
                port.pop("nodePort", None)
            elif not given:
                port["nodePort"] = given = next(number for number in _NODE_PORTS if number not in taken)
                taken.add(given)
            elif given in taken:
                errors.append(invalid_value(f"spec.ports[{at}].nodePort", given, "provided port is already allocated"))
        return errors


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
