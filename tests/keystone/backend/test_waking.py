"""What of a Keystone and of its Deployments wakes a backend: what a pass reads of them, and nothing else; each pass costs Keystone some requests."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from moorage.core.meta import JsonObject
from moorage.keystone.backend.room import ROOM
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS

RELEVANT = {watch.resource: watch.relevant for watch in ROOM.watches}
COUNTS = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 2}
ROLLING: JsonObject = {
    "metadata": {"name": "keystone", "namespace": "openstack", "generation": 2},
    "spec": {"replicas": 2, "template": {"spec": {"volumes": [{"name": "domains", "secret": {"secretName": "a"}}]}}},
    "status": COUNTS,
}
DECLARED: JsonObject = {
    "metadata": {"name": "keystone", "namespace": "openstack", "generation": 1},
    "spec": {},
    "status": {
        "conditions": [
            {"type": "KeystoneAPIReady", "status": "True", "message": ""},
            {"type": "DeploymentReady", "status": "False", "message": "1 of 2 replicas are updated"},
        ]
    },
}


def _changed(obj: JsonObject, change: Callable[[JsonObject], object]) -> JsonObject:
    made = copy.deepcopy(obj)
    change(made)
    return made


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        (lambda o: o["status"].update(updatedReplicas=2), False),
        (lambda o: o["status"].update(readyReplicas=3), False),
        (lambda o: o["status"].update(replicas=2, updatedReplicas=2), True),
        (lambda o: o["spec"].update(replicas=1), True),
        (lambda o: o["spec"]["template"]["spec"]["volumes"][0]["secret"].update(secretName="b"), True),
    ],
    ids=["one more is new", "one more is ready", "all are new", "fewer replicas", "another projection"],
)
def test_a_roll_wakes_at_its_beginning_and_at_its_end(change: Callable[[JsonObject], object], wakes: bool) -> None:
    """Not for each pod."""
    assert RELEVANT[DEPLOYMENTS](ROLLING, _changed(ROLLING, change)) is wakes


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        (lambda o: o["status"]["conditions"][1].update(message="2 of 2 replicas are updated"), False),
        (lambda o: o["status"]["conditions"][0].update(status="False"), True),
        (lambda o: o["status"]["conditions"].append({"type": "BootstrapReady", "status": "False"}), True),
        (lambda o: o["metadata"].update(generation=2), True),
        (lambda o: o["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"), True),
    ],
    ids=["its pods roll", "its API is gone", "its administrator is not set up", "it was edited", "it leaves"],
)
def test_a_keystone_wakes_when_it_can_be_asked_or_not_any_more(
    change: Callable[[JsonObject], object], wakes: bool
) -> None:
    """Not for what else it says of itself."""
    assert RELEVANT[KEYSTONE.resource](DECLARED, _changed(DECLARED, change)) is wakes


@pytest.mark.parametrize("resource", [DEPLOYMENTS, KEYSTONE.resource], ids=["Deployment", "Keystone"])
def test_what_comes_and_goes_wakes(resource: object) -> None:
    """Both ways."""
    relevant = RELEVANT[resource]  # type: ignore[index]
    assert relevant(None, ROLLING)
    assert relevant(ROLLING, None)
