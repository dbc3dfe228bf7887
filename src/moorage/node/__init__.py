"""The node of one-machine mode: runs Deployments, Jobs and CronJobs as sandboxed processes of this machine.

Enters: objects of an API server, by HTTP only. Leaves: processes, their logs and their status.
It must not know which controllers or kinds made the objects. Source: spec/embedded.md, "Node".
"""

from moorage.node.images.store import Recipe
from moorage.node.node import Node
from moorage.node.options import NodeOptions

__all__ = ["Node", "NodeOptions", "Recipe"]
