"""The blocks of a Keystone's spec that say who reaches it and whom it trusts; the others stand in `blocks.py`.

Enters: nothing. Leaves: models for `types.py`. Source: spec/keystone.md 1.1, 1.5.
"""

from __future__ import annotations

from typing import Any, ClassVar

from moorage.schema.model import Model, field
from moorage.schema.rule import Rule

from .blocks import Image


class Federation(Model):
    """What federation backends need of their Keystone."""

    proxy_image: Image | None = field(None, doc="Image of the federation sidecar; there is no default.")
    trusted_dashboards: tuple[str, ...] | None = field(
        None, doc="Dashboards that may receive a token by websso, each a URL.", max_items=8
    )


class ParentRef(Model):
    """The Gateway that a route hangs on."""

    name: str = field(doc="Name of the Gateway.", min_length=1, max_length=253)
    namespace: str | None = field(None, doc="Namespace of the Gateway.", max_length=63)
    section_name: str | None = field(None, doc="Listener of the Gateway.", max_length=253)


class Gateway(Model):
    """An HTTPRoute for the API. Not supported by this release."""

    parent_ref: ParentRef = field(doc="The Gateway.")
    hostname: str = field(doc="Host name of the route.", min_length=1, max_length=253)
    path: str | None = field(None, doc="Path prefix of the route.", max_length=512)
    annotations: dict[str, str] | None = field(None, doc="Annotations of the HTTPRoute.")


class Peer(Model):
    """Who may connect: pods of these namespaces, these pods."""

    namespace_selector: dict[str, Any] | None = field(None, doc="Namespaces, a label selector.")
    pod_selector: dict[str, Any] | None = field(None, doc="Pods, a label selector.")


class NetworkPolicy(Model):
    """A NetworkPolicy around all pods of this Keystone."""

    ingress: tuple[Peer, ...] = field(doc="Who may reach the API.", min_items=1, max_items=64)
    additional_egress: tuple[dict[str, Any], ...] | None = field(
        None, doc="More networking.k8s.io/v1 egress rules.", max_items=64
    )


class Autoscaling(Model):
    """A HorizontalPodAutoscaler. Not supported by this release."""

    min_replicas: int | None = field(None, doc="Fewest pods.", minimum=1, format="int32")
    max_replicas: int = field(doc="Most pods.", minimum=1, format="int32")
    target_cpu_utilization: int | None = field(
        None, doc="Percent of the requested CPU.", alias="targetCPUUtilization", minimum=1, maximum=100, format="int32"
    )
    target_memory_utilization: int | None = field(
        None, doc="Percent of the requested memory.", minimum=1, maximum=100, format="int32"
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.targetCPUUtilization) || has(self.targetMemoryUtilization)", "at least one target must be set"),
        Rule(
            "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
            "minReplicas must not exceed maxReplicas",
            field_path=".minReplicas",
        ),
    )
