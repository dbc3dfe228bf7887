"""RBAC decides, lists and refuses as kube-apiserver does; sentences are those it answered."""

from __future__ import annotations

import pytest

from moorage.apiserver.rbac import Attributes, Authorizer, RoleNotFound, aggregate, cluster_role_bindings, cluster_roles
from moorage.core.meta import JsonObject

GROUP = "rbac.authorization.k8s.io"
EVERYBODY = ("system:authenticated",)


def cluster_role(name: str, *rules: JsonObject) -> JsonObject:
    return {"kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}


def role(namespace: str, name: str, *rules: JsonObject) -> JsonObject:
    return {"kind": "Role", "metadata": {"name": name, "namespace": namespace}, "rules": list(rules)}


def binding(kind: str, name: str, subject: JsonObject, namespace: str = "") -> JsonObject:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    made = "RoleBinding" if namespace else "ClusterRoleBinding"
    return {
        "kind": made,
        "metadata": meta,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [subject],
    }


def rule(groups: str, resources: str, verbs: str, **more: list[str]) -> JsonObject:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **more}


ALICE: JsonObject = {"kind": "User", "name": "alice", "apiGroup": GROUP}


def alice(*rules: JsonObject) -> Authorizer:
    roles = [*cluster_roles(), cluster_role("hers", *rules)]
    return Authorizer([], [], roles, [*cluster_role_bindings(), binding("ClusterRole", "hers", ALICE)])


def ask(
    verb: str, resource: str, *, user: str = "alice", groups: tuple[str, ...] = EVERYBODY, **more: str
) -> Attributes:
    base, _, sub = resource.partition("/")
    return Attributes(
        user, groups, verb, more.get("group", ""), base, sub, more.get("name", ""), more.get("namespace", "")
    )


@pytest.mark.parametrize(
    ("granted", "asked", "may"),
    [
        (rule("", "pods", "get"), ask("get", "pods"), True),
        (rule("", "pods", "get"), ask("list", "pods"), False),
        (rule("", "pods", "get"), ask("get", "pods/log"), False),
        (rule("", "pods/log", "get"), ask("get", "pods/log"), True),
        (rule("", "*/log", "get"), ask("get", "pods/log"), True),
        (rule("", "*", "*"), ask("get", "pods/log", namespace="x"), True),
        (rule("", "*", "*"), ask("get", "deployments", group="apps"), False),
        (rule("*", "*", "*"), ask("get", "deployments", group="apps"), True),
        (rule("", "secrets", "get", resourceNames=["a"]), ask("get", "secrets", name="a"), True),
        (rule("", "secrets", "get", resourceNames=["a"]), ask("get", "secrets", name="b"), False),
        (rule("", "secrets", "list", resourceNames=["a"]), ask("list", "secrets"), False),
    ],
)
def test_a_rule_allows_what_it_lists_and_nothing_else(granted: JsonObject, asked: Attributes, may: bool) -> None:
    assert alice(granted).allowed(asked) is may


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("/x", True),
        ("/x/y", False),
        ("/y/z", True),
        ("/y", False),
        ("/version", True),
        ("/apis/apps/v1", True),
        ("/metrics", False),
    ],
)
def test_paths_are_allowed_by_name_or_by_prefix(path: str, may: bool) -> None:
    found = alice({"verbs": ["get"], "nonResourceURLs": ["/x", "/y/*"]})
    assert found.allowed(Attributes("alice", EVERYBODY, "get", path=path)) is may


def test_members_of_system_masters_may_do_everything() -> None:
    assert Authorizer().allowed(ask("delete", "nodes", user="root", groups=("system:masters",)))


def test_a_role_binding_counts_in_its_namespace_only() -> None:
    authorizer = Authorizer([role("one", "r", rule("", "pods", "get"))], [binding("Role", "r", ALICE, "one")])
    assert authorizer.allowed(ask("get", "pods", namespace="one"))
    assert not authorizer.allowed(ask("get", "pods", namespace="two"))
    assert not authorizer.allowed(ask("get", "pods"))


def test_a_service_account_of_the_bindings_own_namespace_needs_no_namespace() -> None:
    subject = {"kind": "ServiceAccount", "name": "sa"}
    authorizer = Authorizer([role("one", "r", rule("", "pods", "get"))], [binding("Role", "r", subject, "one")])
    asked = ask("get", "pods", user="system:serviceaccount:one:sa", namespace="one")
    decision = authorizer.decide(asked)
    assert decision.reason == 'RBAC: allowed by RoleBinding "r/one" of Role "r" to ServiceAccount "sa/one"'


def test_a_decision_names_the_binding_that_allowed_it() -> None:
    decision = alice(rule("", "configmaps", "get")).decide(ask("get", "configmaps", namespace="default"))
    assert decision.reason == 'RBAC: allowed by ClusterRoleBinding "hers" of ClusterRole "hers" to User "alice"'


@pytest.mark.parametrize(
    ("name", "verb", "resource", "group", "may"),
    [
        ("view", "get", "configmaps", "", True),
        ("view", "get", "secrets", "", False),
        ("view", "create", "configmaps", "", False),
        ("edit", "get", "secrets", "", True),
        ("edit", "list", "deployments", "apps", True),
        ("edit", "create", "deployments", "apps", True),
        ("edit", "create", "rolebindings", GROUP, False),
        ("admin", "create", "rolebindings", GROUP, True),
        ("admin", "get", "configmaps", "", True),
        ("cluster-admin", "delete", "anything", "any.group", True),
    ],
)
def test_the_bootstrap_roles_aggregate(name: str, verb: str, resource: str, group: str, may: bool) -> None:
    authorizer = Authorizer([], [], cluster_roles(), [binding("ClusterRole", name, ALICE)])
    assert authorizer.allowed(ask(verb, resource, group=group)) is may


def test_a_labelled_role_of_a_user_widens_view() -> None:
    extra = cluster_role("keystones", rule("keystone.test", "keystones", "get"))
    extra["metadata"]["labels"] = {f"{GROUP}/aggregate-to-view": "true"}
    roles = [*cluster_roles(), extra]
    gathered = aggregate(next(item for item in roles if item["metadata"]["name"] == "view"), roles)
    assert extra["rules"][0] in gathered
    assert Authorizer([], [], roles, [binding("ClusterRole", "view", ALICE)]).allowed(
        ask("get", "keystones", group="keystone.test")
    )


WRITES_ROLES = rule(GROUP, "roles,rolebindings,clusterroles,clusterrolebindings", "get,list,create,update,patch")
READS_MAPS = rule("", "configmaps", "get,list")
GIVER = ask("create", "roles", group=GROUP, namespace="default")
HEAD = 'user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'


def refusal(obj: JsonObject, *rules: JsonObject, old: JsonObject | None = None) -> str:
    return alice(WRITES_ROLES, READS_MAPS, *rules).check_escalation(GIVER, obj, old)


def test_nobody_grants_what_he_does_not_hold() -> None:
    wanted = role(
        "default", "r",
        rule(",apps", "pods,configmaps", "get,create"),
        rule("", "secrets", "get", resourceNames=["a", "b"]),
        rule("", "configmaps", "list"),
    )  # fmt: skip
    assert refusal(wanted) == HEAD + "\n".join(
        [
            '{APIGroups:[""], Resources:["configmaps"], Verbs:["create"]}',
            '{APIGroups:[""], Resources:["pods"], Verbs:["get" "create"]}',
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}',
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
            '{APIGroups:["apps"], Resources:["configmaps"], Verbs:["get" "create"]}',
            '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "create"]}',
        ]
    )


def test_paths_are_listed_verb_by_verb() -> None:
    wanted = cluster_role("rx", {"nonResourceURLs": ["/x", "/y/*"], "verbs": ["get", "post"]})
    lines = [f'{{NonResourceURLs:["{path}"], Verbs:["{verb}"]}}' for path in ("/x", "/y/*") for verb in ("get", "post")]
    assert refusal(wanted) == HEAD + "\n".join(lines)


def test_binding_cluster_admin_is_refused() -> None:
    assert refusal(binding("ClusterRole", "cluster-admin", ALICE)) == HEAD + (
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
    )


def test_the_verbs_escalate_and_bind_lift_the_check() -> None:
    wanted = role("default", "r", rule("", "pods", "get"))
    assert refusal(wanted, rule(GROUP, "roles", "escalate")) == ""
    assert refusal(binding("ClusterRole", "cluster-admin", ALICE), rule(GROUP, "clusterroles", "bind")) == ""
    named = rule(GROUP, "clusterroles", "bind", resourceNames=["view"])
    assert refusal(binding("ClusterRole", "view", ALICE, "default"), named) == ""
    assert refusal(binding("ClusterRole", "edit", ALICE, "default"), named) != ""


def test_what_one_holds_one_may_grant() -> None:
    assert refusal(role("default", "r", READS_MAPS)) == ""
    assert refusal(binding("ClusterRole", "hers", ALICE)) == ""


def test_a_change_of_labels_alone_is_no_grant() -> None:
    wide = role("default", "r", rule("", "pods", "get"))
    labelled = {**wide, "metadata": {**wide["metadata"], "labels": {"a": "b"}}}
    assert refusal(labelled, old=wide) == ""


def test_gathering_needs_everything() -> None:
    wanted = {**cluster_role("rx"), "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    assert refusal(wanted) == "must have cluster-admin privileges to use the aggregationRule"


def test_a_binding_to_a_missing_role_is_not_found() -> None:
    with pytest.raises(RoleNotFound, match="missing"):
        refusal(binding("ClusterRole", "missing", ALICE, "default"))


def test_a_rules_review_lists_cluster_rules_before_those_of_the_namespace() -> None:
    authorizer = Authorizer(
        [role("default", "r", rule("", "pods", "get"))],
        [binding("Role", "r", ALICE, "default")],
        [*cluster_roles(), cluster_role("hers", READS_MAPS)],
        [*cluster_role_bindings(), binding("ClusterRole", "hers", ALICE)],
    )
    resources, paths = authorizer.rules_for("alice", EVERYBODY, "default")
    assert resources[0] == READS_MAPS
    assert resources[-1] == rule("", "pods", "get")
    assert {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]} in paths
