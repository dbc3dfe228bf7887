"""What all pod workers of a node share.

Enters: the API, images, addresses, folders. Leaves: the same, by name. It holds no state of a single pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.kube.resources import CONFIG_MAPS, PVCS, SECRETS
from moorage.node.api import Api
from moorage.node.cgroups import Cgroups
from moorage.node.images.store import ImageStore
from moorage.node.network.addresses import Pool
from moorage.node.options import NodeOptions
from moorage.node.pods.environment import Facts

_KINDS: dict[str, ResourceType] = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS, "PersistentVolumeClaim": PVCS}


@dataclass(frozen=True, slots=True)
class Host:
    """The surroundings of pods on this node."""

    api: Api
    images: ImageStore
    addresses: Pool
    cgroups: Cgroups
    options: NodeOptions
    data: Path
    service_lines: Callable[[], str]
    supervisor: Path

    def pod_folder(self, uid: str) -> Path:
        """State of one pod; mode 0700, since volumes may hold secrets."""
        return self.data / "node" / "pods" / uid

    def log(self, pod: JsonObject, container: str, attempt: int) -> Path:
        """The log file of one run; the API server reads it from there."""
        return self.log_folder(pod) / container / f"{attempt}.log"

    def log_folder(self, pod: JsonObject) -> Path:
        """All logs of one pod."""
        meta = pod["metadata"]
        return self.logs / str(meta["namespace"]) / str(meta["name"])

    @property
    def logs(self) -> Path:
        """The folder of all logs."""
        return self.data / "logs"

    @property
    def claims(self) -> Path:
        """The folder of all PersistentVolumeClaims."""
        return self.data / "volumes"

    def facts(self, pod: JsonObject, pod_ip: str) -> Facts:
        """What the pod's containers may refer to."""
        namespace = pod["metadata"]["namespace"]

        def find(kind: str, name: str) -> JsonObject | None:
            return self.api.get(_KINDS[kind], Key(namespace, name))

        return Facts(pod, find, pod_ip, node_name=self.options.name)
