"""Scenario files: what they may say, and how they become steps.

Enters: `scenarios/<area>.yaml`. Leaves: frozen `Area`, `Case`, `Step`. It must not talk to a server.

A file holds `cases`, each with a sentence (`case`) and `steps`. A case has a namespace of its own (`${ns}`) and an API group of its own
(`${group}`); a `crd` (or list of them) is installed before its steps. A step says one of
  do:    `VERB path`. VERB is GET CREATE POST PUT DELETE, or MERGE JSON STRATEGIC APPLY CBOR for the four patches; `path` is `plural[/name[/sub]]`,
         in the case's namespace, or an absolute path. CREATE posts to the collection and puts the name into the body.
  read:  read a watch that an earlier step opened with `watch: name`: `events: N` of them, or to the end with `events: close`
  hook:  the admission reviews that this webhook has received since it was last asked
  kubectl: arguments; standard input is `input`
with: body (apiVersion, kind, name are filled in; `exact: true` sends it as it is), raw (text), type, headers, as, groups, token, manager, force,
  big (path: length), save (name: path), until (status, says, or path: value; asked again until so), at (compare only this part), only (path, key, values:
  keep only these members of a list), but (facets that are not compared), each (one step for every item), expect (status the real server
  must give, guarding the scenario itself).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "scenarios"

_CORE = "namespaces configmaps secrets services serviceaccounts events pods persistentvolumeclaims endpoints nodes"
_GROUPS = {
    "/api/v1": _CORE,
    "/apis/apps/v1": "deployments replicasets",
    "/apis/batch/v1": "jobs cronjobs",
    "/apis/coordination.k8s.io/v1": "leases",
    "/apis/policy/v1": "poddisruptionbudgets",
    "/apis/networking.k8s.io/v1": "networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1": "roles rolebindings clusterroles clusterrolebindings",
    "/apis/admissionregistration.k8s.io/v1": "validatingwebhookconfigurations mutatingwebhookconfigurations",
    "/apis/apiextensions.k8s.io/v1": "customresourcedefinitions",
    "/apis/authorization.k8s.io/v1": "selfsubjectaccessreviews subjectaccessreviews localsubjectaccessreviews selfsubjectrulesreviews",
    "/apis/authentication.k8s.io/v1": "tokenreviews selfsubjectreviews",
}
_KINDS = (
    "Namespace ConfigMap Secret Service ServiceAccount Event Pod PersistentVolumeClaim Endpoints Node Deployment ReplicaSet Job CronJob Lease "
    "PodDisruptionBudget NetworkPolicy Role RoleBinding ClusterRole ClusterRoleBinding ValidatingWebhookConfiguration "
    "MutatingWebhookConfiguration CustomResourceDefinition SelfSubjectAccessReview SubjectAccessReview LocalSubjectAccessReview "
    "SelfSubjectRulesReview TokenReview SelfSubjectReview"
)
_CLUSTER = {
    *("namespaces", "nodes", "clusterroles", "clusterrolebindings", "customresourcedefinitions", "tokenreviews"),
    *("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "selfsubjectaccessreviews"),
    *("subjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"),
}


@dataclass(frozen=True)
class Place:
    """Where a plural lives: URL prefix, kind, scope."""

    prefix: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """`v1` or `group/version`."""
        return self.prefix.removeprefix("/apis/").removeprefix("/api/")

    def path(self, namespace: str, rest: str) -> str:
        """The absolute path of `plural[/name[/sub]]`."""
        return f"{self.prefix}/namespaces/{namespace}/{rest}" if self.namespaced else f"{self.prefix}/{rest}"


def _places() -> dict[str, Place]:
    kinds = iter(_KINDS.split())
    return {
        plural: Place(prefix, next(kinds), plural not in _CLUSTER)
        for prefix, plurals in _GROUPS.items()
        for plural in plurals.split()
    }


PLACES: Mapping[str, Place] = _places()


@dataclass(frozen=True)
class Step:
    """One step as written, after `each` has been unrolled."""

    name: str
    said: Mapping[str, Any]

    def get(self, key: str, default: Any = None) -> Any:
        return self.said.get(key, default)


@dataclass(frozen=True)
class Case:
    """One independent story with a namespace of its own."""

    area: str
    name: str
    steps: tuple[Step, ...]
    crds: tuple[Mapping[str, Any], ...] = ()
    hooks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.area}/{self.name}"

    @property
    def namespace(self) -> str:
        """A name that is the same on each server and in each run, and no other case has."""
        return "c" + hashlib.sha256(self.id.encode()).hexdigest()[:8]

    @property
    def group(self) -> str:
        return f"{self.namespace}.example.test"


@dataclass(frozen=True)
class Area:
    """One file."""

    name: str
    cases: tuple[Case, ...]


def fill(value: Any, variables: Mapping[str, Any]) -> Any:
    """Replace `${name.path}` in all strings (keys too) of a tree; unknown names stay as they stand."""
    if isinstance(value, dict):
        return {fill(key, variables): fill(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, variables) for item in value]
    if not isinstance(value, str):
        return value
    if (whole := re.fullmatch(r"\$\{([\w.]+)\}", value)) and (found := _find(whole[1], variables)) is not None:
        return found
    return re.sub(r"\$\{([\w.]+)\}", lambda m: str(_find(m[1], variables, m[0])), value)


def _find(path: str, variables: Mapping[str, Any], default: Any = None) -> Any:
    value: Any = variables
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return default
        value = value[part]
    return value


def _label(said: Mapping[str, Any]) -> str:
    for key in ("name", "do", "read", "hook", "kubectl"):
        if key in said:
            return str(said[key])
    raise ValueError(f"a step needs do, read, hook or kubectl: {said}")


def _unroll(said: Mapping[str, Any]) -> list[Step]:
    if "each" not in said:
        return [Step(_label(said), said)]
    rest = {key: value for key, value in said.items() if key != "each"}
    unrolled = []
    for number, item in enumerate(said["each"]):
        one = fill(rest, {"item": item, "i": number})
        unrolled.append(Step(f"{_label(one)} [{number}]", one))
    return unrolled


def _case(area: str, said: Mapping[str, Any]) -> Case:
    crds = said.get("crd", [])
    steps = [step for one in said["steps"] for step in _unroll(one)]
    return Case(
        area, said["case"], tuple(steps), tuple(crds if isinstance(crds, list) else [crds]), said.get("hooks", {})
    )


def load(path: Path) -> Area:
    """Read one scenario file; raises ValueError or KeyError with what is wrong in it."""
    said = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    cases = tuple(_case(path.stem, case) for case in said["cases"])
    if len({case.name for case in cases}) != len(cases):
        raise ValueError(f"{path}: two cases have the same sentence")
    return Area(path.stem, cases)


@cache
def areas() -> tuple[Area, ...]:
    """All scenario files, by name."""
    return tuple(load(path) for path in sorted(FOLDER.glob("*.yaml")))
