"""What a cluster needs before the operator runs: CRDs, RBAC, webhook configurations. Pure: declarations in, manifests out.

The webhook configurations name the Service moorage-system/moorage-webhook; the running operator fills in the CA (admission server).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from moorage.core.meta import JsonObject
from moorage.schema import Admission, Kind

NAMESPACE = "moorage-system"
SERVICE = "moorage-webhook"
ACCOUNT = "moorage"
CONFIGURATION = "moorage"
"""The name of our webhook configurations."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a system needs of other people's resources: one line of RBAC.

    Attributes:
        names: the only objects that are meant; RBAC cannot bind `create` or `list` to names.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


_OWN: tuple[Access, ...] = (
    Access("", ("events",), ("get", "create", "patch")),
    Access(
        "admissionregistration.k8s.io",
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        ("get", "update", "patch"),
        (CONFIGURATION,),
    ),
)
_AT_HOME: tuple[Access, ...] = (
    Access("coordination.k8s.io", ("leases",), ("get", "create", "update")),
    Access("", ("secrets",), ("get", "create", "update")),
)
"""In our own namespace only: the Lease of the leader, the Secret of the webhooks' authority."""


def rules(kinds: Sequence[Kind[Any]], access: Iterable[Access]) -> list[JsonObject]:
    """RBAC rules: our kinds read and finalised, never created or deleted; the rest as each system says."""
    found: list[JsonObject] = []
    for kind in kinds:
        found.append(_rule(kind.group, (kind.plural,), ("get", "list", "watch", "patch")))
        found.append(_rule(kind.group, (f"{kind.plural}/status",), ("patch",)))
        found.append(_rule(kind.group, (f"{kind.plural}/finalizers",), ("update",)))
    found += [_rule(item.group, item.resources, item.verbs, item.names) for item in dict.fromkeys((*access, *_OWN))]
    return found


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> JsonObject:
    bound = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": list(resources), **bound, "verbs": list(verbs)}


def rbac(kinds: Sequence[Kind[Any]], access: Iterable[Access]) -> list[JsonObject]:
    """Namespace, ServiceAccount, ClusterRole and binding of the operator; what people's own roles gain."""
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    role = "moorage-operator"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": rules(kinds, access),
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        },
        *people_roles(kinds),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": role, "namespace": NAMESPACE},
            "rules": [_rule(item.group, item.resources, item.verbs) for item in _AT_HOME],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": NAMESPACE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [subject],
        },
    ]


_PEOPLE = {
    "view": ("get", "list", "watch"),
    "edit": ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
}


def people_roles(kinds: Sequence[Kind[Any]]) -> list[JsonObject]:
    """What the roles `view`, `edit` and `admin` gain for our kinds."""
    return [_for_people(kinds, to, verbs) for to, verbs in _PEOPLE.items()]


def _for_people(kinds: Sequence[Kind[Any]], to: str, verbs: Sequence[str]) -> JsonObject:
    """A ClusterRole that Kubernetes adds to its own `view`, or to `edit` and `admin`: our kinds are used like any other."""
    groups = ("edit", "admin") if to == "edit" else (to,)
    found: dict[str, list[str]] = {}
    for kind in kinds:
        found.setdefault(kind.group, []).append(kind.plural)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"moorage-{to}",
            "labels": {f"rbac.authorization.k8s.io/aggregate-to-{name}": "true" for name in groups},
        },
        "rules": [_rule(group, plurals, verbs) for group, plurals in found.items()],
    }


def webhook_configurations(
    admissions: Sequence[Admission], client_config: Mapping[str, Any] | None = None
) -> list[JsonObject]:
    """One mutating and one validating configuration for all kinds; DELETE is not registered, so deletion never hangs on us.

    Args:
        client_config: takes the place of the Service reference, for an operator outside the cluster; the path is appended to its URL.
    """
    return [
        _configuration("MutatingWebhookConfiguration", "mutate", admissions, client_config),
        _configuration("ValidatingWebhookConfiguration", "validate", admissions, client_config),
    ]


def _configuration(
    kind: str, action: Literal["mutate", "validate"], admissions: Sequence[Admission], client: Mapping[str, Any] | None
) -> JsonObject:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": CONFIGURATION},
        "webhooks": [_webhook(action, admission, client) for admission in admissions],
    }


def _webhook(
    action: Literal["mutate", "validate"], admission: Admission, client: Mapping[str, Any] | None
) -> JsonObject:
    path = admission.mutate_path if action == "mutate" else admission.validate_path
    target: JsonObject = {"service": {"name": SERVICE, "namespace": NAMESPACE, "path": path, "port": 443}}
    if client is not None:
        target = {**client, "url": f"{client['url'].rstrip('/')}{path}"}
    resource = admission.kind.resource
    hook: JsonObject = {
        "name": f"{action}.{resource.plural}.{resource.group}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": target,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "rules": [
            {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [resource.plural],
                "scope": "Namespaced" if resource.namespaced else "Cluster",
            }
        ],
    }
    if action == "mutate":
        hook["reinvocationPolicy"] = "IfNeeded"
    return hook


def manifest_files(
    kinds: Sequence[Kind[Any]], admissions: Sequence[Admission], access: Iterable[Access]
) -> dict[str, str]:
    """File name -> YAML, in the order in which they are applied."""
    files = {f"crds/{kind.plural}.{kind.group}.yaml": to_yaml([kind.crd()]) for kind in kinds}
    files["rbac.yaml"] = to_yaml(rbac(kinds, access))
    files["webhooks.yaml"] = to_yaml(webhook_configurations(admissions))
    return files


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - signature of the base class
        return True


def to_yaml(objects: Sequence[JsonObject]) -> str:
    """YAML documents in stable order, without anchors."""
    texts = [yaml.dump(obj, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120) for obj in objects]
    return "---\n".join(texts)
