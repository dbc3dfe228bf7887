"""Who may do what: roles and bindings turned into answers.

Enters: role and binding objects. Leaves: decisions, rules for reviews, and refusals of grants that exceed the giver.
Must not read a store: it is made anew, from all objects, when one of them changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from moorage.apiserver.rbac.bootstrap import MASTERS, RBAC
from moorage.apiserver.rbac.rules import EVERYTHING, Attributes, allows, missing, quoted_list
from moorage.core.meta import JsonObject
from moorage.core.selectors import from_wire

_ACCOUNT = "system:serviceaccount:"


class RoleNotFound(LookupError):
    """A binding refers to a role that is not there; the argument is the role's name."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision and its reason, as an access review shows it."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Grant:
    """One subject's share in one binding."""

    binding: JsonObject
    subject: JsonObject

    def reason(self) -> str:
        meta, role = self.binding["metadata"], self.binding["roleRef"]
        inside = meta.get("namespace")
        where = f'RoleBinding "{meta["name"]}/{inside}"' if inside else f'ClusterRoleBinding "{meta["name"]}"'
        whom = self.subject["name"]
        if self.subject["kind"] == "ServiceAccount":
            whom = f"{whom}/{self.subject.get('namespace') or inside}"
        return f'RBAC: allowed by {where} of {role["kind"]} "{role["name"]}" to {self.subject["kind"]} "{whom}"'


def aggregate(role: JsonObject, cluster_roles: Iterable[JsonObject]) -> list[JsonObject]:
    """The rules that an aggregated ClusterRole gathers from the others, each once; its own rules if it gathers none."""
    return _gathered(role, list(cluster_roles), frozenset())


def _gathered(role: JsonObject, others: list[JsonObject], seen: frozenset[str]) -> list[JsonObject]:
    rule, name = role.get("aggregationRule"), role["metadata"]["name"]
    if rule is None:
        return list(role.get("rules") or ())
    made: list[JsonObject] = []
    selectors = [from_wire(selector) for selector in rule.get("clusterRoleSelectors") or ()]
    for other in sorted(others, key=lambda item: str(item["metadata"]["name"])):
        named = other["metadata"]["name"]
        if named != name and named not in seen and any(s.matches(other["metadata"].get("labels")) for s in selectors):
            made += [item for item in _gathered(other, others, seen | {name}) if item not in made]
    return made


class Authorizer:
    """RBAC over a fixed set of roles and bindings. Members of system:masters may do everything."""

    def __init__(
        self,
        roles: Iterable[JsonObject] = (),
        role_bindings: Iterable[JsonObject] = (),
        cluster_roles: Iterable[JsonObject] = (),
        cluster_role_bindings: Iterable[JsonObject] = (),
    ) -> None:
        self._cluster_roles = {role["metadata"]["name"]: role for role in cluster_roles}
        self._roles = {(role["metadata"].get("namespace", ""), role["metadata"]["name"]): role for role in roles}
        self._grants: dict[tuple[str, str, str], list[_Grant]] = {}
        self._rules: dict[tuple[str, str, str], list[JsonObject]] = {}
        for binding in (*cluster_role_bindings, *role_bindings):
            for subject in binding.get("subjects") or ():
                self._note(binding, subject)

    def _note(self, binding: JsonObject, subject: JsonObject) -> None:
        inside = binding["metadata"].get("namespace", "")
        kind, name = subject["kind"], subject["name"]
        if kind == "ServiceAccount":
            kind, name = "User", f"{_ACCOUNT}{subject.get('namespace') or inside}:{name}"
        self._grants.setdefault((inside, kind, name), []).append(_Grant(binding, subject))

    def allowed(self, wanted: Attributes) -> bool:
        """Whether the user may."""
        return self.decide(wanted).allowed

    def decide(self, wanted: Attributes) -> Decision:
        """Whether the user may, and by which binding."""
        if MASTERS in wanted.groups:
            return Decision(True)
        for grant in self._grants_of(wanted):
            if any(allows(rule, wanted) for rule in self._rules_of(grant.binding)):
                return Decision(True, grant.reason())
        return Decision(False)

    def rules_for(self, user: str, groups: Sequence[str], namespace: str) -> tuple[list[JsonObject], list[JsonObject]]:
        """Resource rules and path rules of a user in a namespace, as a SelfSubjectRulesReview lists them."""
        held = self._held(Attributes(user, tuple(groups), "", namespace=namespace))
        resources = [rule for rule in held if rule.get("resources")]
        paths = [
            {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
            for rule in held
            if rule.get("nonResourceURLs")
        ]
        return resources, paths

    def check_escalation(self, giver: Attributes, obj: JsonObject, old: JsonObject | None) -> str:
        """Why the giver may not write a role or binding; empty when it may. `giver` is the write's own request.

        Nobody grants what he does not hold, unless he has the verb `escalate` on the role, or `bind` on the role bound.

        Raises:
            RoleNotFound: a binding of somebody without `bind` refers to a role that is not there.
        """
        if MASTERS in giver.groups:
            return ""
        if obj["kind"] in ("Role", "ClusterRole"):
            return self._check_role(giver, obj, old)
        if obj["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            return self._check_binding(giver, obj, old)
        return ""

    def _check_role(self, giver: Attributes, role: JsonObject, old: JsonObject | None) -> str:
        before = old or {}
        changed = any((role.get(name) or None) != (before.get(name) or None) for name in ("rules", "aggregationRule"))
        if not changed or self.allowed(replace(giver, verb="escalate", name=role["metadata"].get("name", ""))):
            return ""
        gathers = role.get("aggregationRule") is not None or before.get("aggregationRule") is not None
        if gathers and missing(self._held(giver), EVERYTHING):
            return "must have cluster-admin privileges to use the aggregationRule"
        return self._lacking(giver, role.get("rules") or ())

    def _check_binding(self, giver: Attributes, binding: JsonObject, old: JsonObject | None) -> str:
        same = old is not None and all(binding.get(name) == old.get(name) for name in ("roleRef", "subjects"))
        role = binding["roleRef"]
        plural = "clusterroles" if role["kind"] == "ClusterRole" else "roles"
        bind = replace(giver, verb="bind", group=RBAC, resource=plural, subresource="", name=role["name"])
        if same or self.allowed(bind):
            return ""
        inside = binding["metadata"].get("namespace", "")
        if self._find(role, inside) is None:
            raise RoleNotFound(role["name"])
        return self._lacking(giver, self._rules_of(binding))

    def _lacking(self, giver: Attributes, rules: Iterable[JsonObject]) -> str:
        lines = missing(self._held(giver), rules)
        if not lines:
            return ""
        who = f'user "{giver.user}" (groups={quoted_list(giver.groups)})'
        return f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)

    def _held(self, user: Attributes) -> list[JsonObject]:
        if MASTERS in user.groups:
            return list(EVERYTHING)
        return [rule for grant in self._grants_of(user) for rule in self._rules_of(grant.binding)]

    def _grants_of(self, wanted: Attributes) -> Iterator[_Grant]:
        subjects = [("User", wanted.user), *(("Group", group) for group in wanted.groups)]
        for inside in ("", wanted.namespace) if wanted.namespace else ("",):
            for kind, name in subjects:
                yield from self._grants.get((inside, kind, name), ())

    def _find(self, role: JsonObject, inside: str) -> JsonObject | None:
        if role["kind"] == "ClusterRole":
            return self._cluster_roles.get(role["name"])
        return self._roles.get((inside, role["name"]))

    def _rules_of(self, binding: JsonObject) -> list[JsonObject]:
        role, inside = binding["roleRef"], binding["metadata"].get("namespace", "")
        key = (role["kind"], inside if role["kind"] == "Role" else "", role["name"])
        if key not in self._rules:
            found = self._find(role, inside)
            self._rules[key] = [] if found is None else self._all_rules(found)
        return self._rules[key]

    def _all_rules(self, role: JsonObject) -> list[JsonObject]:
        if role.get("aggregationRule") is None:
            return list(role.get("rules") or ())
        return aggregate(role, self._cluster_roles.values())
