"""PersistentVolumeClaim: a folder of this machine, bound at once, deleted with the claim (reclaim policy Delete).

Enters: claims. Leaves: their status, and no folder of a claim that was deleted while this node ran. A folder whose deletion
nobody saw stays on the disk; it carries the claim's uid, so no later claim gets it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from moorage.core.meta import JsonObject, is_terminating
from moorage.kube.resources import PVCS
from moorage.node.api import Api
from moorage.node.controllers.loop import Controller
from moorage.node.pods.volumes import claim_folder


def controller(api: Api, claims: Path) -> Controller:
    """The controller of claims. `claims`: the folder that holds their data."""

    def changed(old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            shutil.rmtree(claim_folder(claims, old), ignore_errors=True)

    api.reflectors[PVCS].subscribe(changed)
    return Controller(PVCS, _reconcile)


async def _reconcile(api: Api, claim: JsonObject) -> float | None:
    if not is_terminating(claim):
        await api.set_status(PVCS, claim, status_of(claim))
    return None


def status_of(claim: JsonObject) -> JsonObject:
    """The status of a claim: bound, with what it asked for. The size is not enforced."""
    spec = claim["spec"]
    asked = (spec.get("resources") or {}).get("requests") or {}
    return {"phase": "Bound", "accessModes": list(spec.get("accessModes") or ()), "capacity": dict(asked)}
