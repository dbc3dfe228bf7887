"""May they: RBAC over the stored roles, worded as Kubernetes words its refusals.

Enters: requests with their user, and changes of roles and bindings. Leaves: nothing, or 403 with the sentence. Roles are read
from the hub; the decision is rbac's, which is made anew after a change.
"""

from __future__ import annotations

import uuid

from moorage.apiserver.api import Api
from moorage.apiserver.errors import StatusError, forbidden, not_found
from moorage.apiserver.hub import Change, Hub
from moorage.apiserver.rbac import Attributes, Authorizer, RoleNotFound, aggregate, cluster_role_bindings, cluster_roles
from moorage.apiserver.request import ADMIN_GROUP, Request, Target, User
from moorage.apiserver.served import ServedType
from moorage.apiserver.settling import together
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject, ResourceType

_GROUP = "rbac.authorization.k8s.io"
_STORAGES = tuple(f"{name}.{_GROUP}" for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"))
_CLUSTER_ROLES = _STORAGES[2]
_ROLES = {kind: ResourceType(_GROUP, "v1", kind, f"{kind.lower()}s") for kind in ("Role", "ClusterRole")}


class Access:
    """Decides by the roles and bindings that are stored."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._made: Authorizer | None = None
        hub.listeners.append(self._notice)

    def _notice(self, change: Change) -> None:
        if change.storage in _STORAGES:
            self._made = None

    @property
    def _authorizer(self) -> Authorizer:
        if self._made is None:
            roles, bindings, cluster, cluster_bindings = (
                [entry.parse() for entry in self._hub.collections[storage].select("")] for storage in _STORAGES
            )
            self._made = Authorizer(roles, bindings, cluster, cluster_bindings)
        return self._made

    def decide(self, user: User, target: Target) -> tuple[bool, str]:
        """Whether the user may do what a target says, and why (a sentence, may be empty)."""
        if ADMIN_GROUP in user.groups:
            return True, ""
        decision = self._authorizer.decide(attributes(user, target))
        return decision.allowed, decision.reason

    def rules(self, user: User, namespace: str) -> tuple[list[JsonObject], list[JsonObject]]:
        """Resource rules and path rules of a user in a namespace."""
        return self._authorizer.rules_for(user.name, user.groups, namespace)

    def check_escalation(self, request: Request, served: ServedType, obj: JsonObject, old: JsonObject | None) -> None:
        """Raises 403 when a role or binding gives more than its writer has."""
        rt = served.resource
        if rt.group != _GROUP or ADMIN_GROUP in request.user.groups:
            return
        giver = attributes(request.user, request.target)
        try:
            why = self._authorizer.check_escalation(giver, {**obj, "kind": rt.kind}, old)
        except RoleNotFound as error:
            raise not_found(_ROLES[obj["roleRef"]["kind"]], str(error.args[0])) from error
        if why:
            raise forbidden(rt, obj["metadata"].get("name", ""), why)

    def require(self, user: User, target: Target) -> None:
        """Raises 403 when the user may not do what a target says."""
        if not self.decide(user, target)[0]:
            raise refusal(user, target)

    async def bootstrap(self, api: Api) -> None:
        """Create the roles and bindings that always exist, where they are missing; gather aggregated rules."""
        await together(self._create(api, manifest) for manifest in (*cluster_roles(), *cluster_role_bindings()))
        await self.gather(api)

    async def _create(self, api: Api, manifest: JsonObject) -> None:
        served = api.registry.of_kind(manifest["apiVersion"], manifest["kind"])
        name = manifest["metadata"]["name"]
        if served is None or self._hub.get(served.storage, name) is not None:
            return
        obj = copied(manifest)
        obj["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=api.now())
        await api.commit(served, name, obj, 0)

    async def gather(self, api: Api) -> None:
        """Write the rules of ClusterRoles that gather them from others.

        Raises:
            StatusError: the disk refused.
        """
        served = api.registry.builtin(_CLUSTER_ROLES)
        entries = list(self._hub.collections[_CLUSTER_ROLES].select(""))
        roles = [entry.parse() for entry in entries]
        writes = []
        for entry, role in zip(entries, roles, strict=True):
            rules = aggregate(role, roles) if role.get("aggregationRule") else role.get("rules")
            if rules != role.get("rules") and (rules or role.get("rules")):
                writes.append(api.commit(served, entry.key, {**role, "rules": rules}, entry.rev))
        await together(writes)


def attributes(user: User, target: Target) -> Attributes:
    """A request as rbac sees it."""
    if not target.is_resource:
        return Attributes(user.name, user.groups, target.verb, path=target.path)
    return Attributes(
        user.name,
        user.groups,
        target.verb,
        target.group,
        target.resource,
        target.subresource,
        target.name,
        target.namespace,
    )


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
