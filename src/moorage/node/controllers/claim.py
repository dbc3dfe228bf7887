"""PersistentVolumeClaim: a folder of this machine, bound at once, deleted with the claim (reclaim policy Delete).

Enters: claims and the pods that use them. Leaves: their status; a finalizer while they stand, so that no claim is gone before its folder
is, whatever happens in between; and no folder of a claim that is gone. A claim that is deleted waits for the pods that use it.
Source: Kubernetes documentation, "Persistent Volumes": storage object in use protection.
"""

from __future__ import annotations

from pathlib import Path

from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.kube.resources import PODS, PVCS
from moorage.node.api import Api
from moorage.node.controllers.loop import Controller
from moorage.node.controllers.templates import is_active
from moorage.node.pods.folders import remove
from moorage.node.pods.volumes import claim_folder

FINALIZER = "kubernetes.io/pvc-protection"


def controller(api: Api, claims: Path) -> Controller:
    """The controller of claims. `claims`: the folder that holds their data."""

    def changed(old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            remove(claim_folder(claims, old), claims)

    async def reconcile(api: Api, claim: JsonObject) -> float | None:
        return await _reconcile(api, claim, claims)

    made = Controller(PVCS, reconcile)
    api.reflectors[PVCS].subscribe(changed)
    api.reflectors[PODS].subscribe(lambda old, new: _wake(made, new or old or {}))
    return made


def _wake(controller: Controller, pod: JsonObject) -> None:
    for name in _claims_of(pod):
        controller.queue.add(Key(pod["metadata"]["namespace"], name))


async def _reconcile(api: Api, claim: JsonObject, claims: Path) -> float | None:
    held = claim["metadata"].get("finalizers") or []
    if not is_terminating(claim):
        if FINALIZER not in held:
            await _hold(api, claim, [*held, FINALIZER])
        await api.set_status(PVCS, claim, status_of(claim))
    elif FINALIZER in held and not in_use(claim, api.list(PODS, claim["metadata"]["namespace"])):
        remove(claim_folder(claims, claim), claims)
        await _hold(api, claim, [name for name in held if name != FINALIZER])
    return None


async def _hold(api: Api, claim: JsonObject, finalizers: list[str]) -> None:
    """The claim with these finalizers; a claim that somebody changed meanwhile is looked at again."""
    meta = {"finalizers": finalizers, "resourceVersion": claim["metadata"]["resourceVersion"]}
    await api.patch(PVCS, claim, {"metadata": meta})


def in_use(claim: JsonObject, pods: tuple[JsonObject, ...]) -> bool:
    """Whether a pod that has not ended names the claim; pods that end still have its files open."""
    return any(key_of(claim).name in _claims_of(pod) and (is_active(pod) or is_terminating(pod)) for pod in pods)


def _claims_of(pod: JsonObject) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [item["persistentVolumeClaim"]["claimName"] for item in volumes if "persistentVolumeClaim" in item]


def status_of(claim: JsonObject) -> JsonObject:
    """The status of a claim: bound, with what it asked for. The size is not enforced."""
    spec = claim["spec"]
    asked = (spec.get("resources") or {}).get("requests") or {}
    return {"phase": "Bound", "accessModes": list(spec.get("accessModes") or ()), "capacity": dict(asked)}
