"""What the operator may do, as `moorage crds` declares it."""

from __future__ import annotations

from moorage.runtime.install import CONFIGURATION, rbac, webhook_configurations


def test_the_right_on_webhook_configurations_is_bound_to_our_own_and_neither_creates_nor_lists() -> None:
    """RBAC cannot bind `create` or `list` to names, so neither is granted."""
    (role,) = [
        item
        for item in rbac([], [])
        if item["kind"] == "ClusterRole" and item["metadata"]["name"] == "moorage-operator"
    ]
    (rule,) = [item for item in role["rules"] if "admissionregistration.k8s.io" in item["apiGroups"]]
    assert rule["resourceNames"] == [CONFIGURATION]
    assert not {"create", "list", "watch", "delete", "*"} & set(rule["verbs"])
    assert {item["metadata"]["name"] for item in webhook_configurations([])} == {CONFIGURATION}
