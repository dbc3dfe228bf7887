"""Which user of this machine runs a pod.

Enters: a pod, its address, the data folder. Leaves: a number that is user and group at once, or None.
It must not change anything. No pod ever runs as user 0 of the machine, whatever `runAsUser` says: that is the user inside.

- A node that is not root has no choice: its pods run as its own user (None).
- A pod that mounts a PersistentVolumeClaim runs as the user of its namespace, so that all who share a claim own its files.
- Every other pod runs as a user of its own, by its address: addresses are unique on the machine.

The numbers lie where neither people, subordinate ids, nor systemd's ranges are. Source: systemd, "Users, Groups, UIDs
and GIDs"; SECURITY.md.
"""

from __future__ import annotations

import os
import zlib
from ipaddress import IPv4Address
from pathlib import Path

from moorage.core.meta import JsonObject
from moorage.node.network.addresses import PODS

FIRST_OF_PODS = 1_900_000_000
FIRST_OF_NAMESPACES = 1_902_000_000
_SPAN = PODS.num_addresses


def user_of(pod: JsonObject, pod_ip: str, data: Path) -> int | None:
    """The user (and group) of this machine for a pod; None: the node's own."""
    if os.geteuid() != 0:
        return None
    if any("persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes") or ()):
        return FIRST_OF_NAMESPACES + zlib.crc32(f"{data}\0{pod['metadata']['namespace']}".encode()) % _SPAN
    return FIRST_OF_PODS + int(IPv4Address(pod_ip)) - int(PODS[0])
