"""The NetworkPolicy of a federated Keystone: what is open before, during and after a roll, and towards whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.keystone.service import federated, given

from moorage.core.meta import JsonObject
from moorage.keystone.service.decide import decide
from moorage.keystone.service.network import Serving, network_policy
from moorage.keystone.service.plan import Ensure, Plan
from moorage.keystone.service.seen import NETWORK_POLICY, Seen

POLICY = {"ingress": [{"podSelector": {}}]}
OIDC = {"name": "acme", "type": "OIDC", "issuer": "https://idp.acme.test:8443/a"}


def case(*backends: dict[str, Any], **more: Any) -> dict[str, Any]:
    keystone = given.keystone({"networkPolicy": POLICY, "federation": federated.FEDERATION})
    wire = {"metadata": {"name": "keystone"}, "spec": keystone.spec.to_wire()}
    return {"keystone": wire, "backends": list(backends), "world": "settled", **more}


def ingress(policy: JsonObject) -> list[int]:
    return [port["port"] for port in policy["spec"]["ingress"][0]["ports"]]


def egress(policy: JsonObject) -> list[int]:
    return [port["port"] for port in policy["spec"]["egress"][1]["ports"]]


def applied(seen: Seen) -> JsonObject:
    """The policy that the pass applies before it touches the Deployment."""
    seen = replace(seen, done=seen.done - {"NetworkPolicy"})
    while isinstance(plan := decide(seen), Plan):
        for action in plan.actions:
            if isinstance(action, Ensure) and action.resource == NETWORK_POLICY:
                return action.manifest
        seen = given.imagine(seen, plan)
    raise AssertionError("no policy is applied")


@pytest.mark.case("K15")
def test_ports_of_providers_are_open() -> None:
    found = given.inputs(case(OIDC, {"name": "dir", "url": "ldaps://d.acme.test:1636"}))
    policy = network_policy(found.keystone, found.backends)
    assert policy is not None
    assert {8443, 1636} <= set(egress(policy))


@pytest.mark.case("K15")
def test_a_terminating_backend_opens_nothing() -> None:
    found = given.inputs(case({**OIDC, "deleting": True}))
    policy = network_policy(found.keystone, found.backends)
    assert policy is not None
    assert 8443 not in egress(policy)


def test_while_a_roll_replaces_plain_by_federated_pods_both_numbers_are_open() -> None:
    """And back again; at rest it is the one number at which pods serve."""
    assert ingress(applied(given.snapshot(case(OIDC, before={"backends": []})))) == [5000, 5050]
    assert ingress(applied(given.snapshot(case(OIDC)))) == [5050]
    assert ingress(applied(given.snapshot(case(before={"backends": [OIDC]})))) == [5000, 5050]
    assert ingress(applied(given.snapshot(case()))) == [5000]


@pytest.mark.case("K22")
def test_pods_reach_the_one_that_answers_saml_and_nobody_else_does() -> None:
    found = given.inputs(case(OIDC))
    policy = network_policy(found.keystone, found.backends, Serving((5050,), forwards=True))
    assert policy is not None
    ours = {"podSelector": policy["spec"]["podSelector"]}
    assert policy["spec"]["ingress"][1] == {"from": [ours], "ports": [{"protocol": "TCP", "port": 5050}]}
    assert 5050 in egress(policy)
