"""Pods from templates: names, labels, owners, hashes. Pure.

Enters: an owner and a pod template. Leaves: objects to create. Source: Kubernetes API reference, PodTemplateSpec.
"""

from __future__ import annotations

import hashlib
import json

from moorage.core.meta import JsonObject, owner_reference, ref_of

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
HASH_LABEL = "pod-template-hash"


def template_hash(template: JsonObject, collisions: int = 0) -> str:
    """Ten letters over a pod template, free of vowels as Kubernetes' are; equal templates give equal hashes."""
    text = json.dumps([template, collisions], sort_keys=True, separators=(",", ":"))
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    letters = ""
    for _ in range(10):
        number, rest = divmod(number, len(_SAFE))
        letters += _SAFE[rest]
    return letters


def pod_from(template: JsonObject, owner: JsonObject, node: str) -> JsonObject:
    """A pod of this template, owned by `owner`, bound to this node; its name is left to the server."""
    meta = template.get("metadata") or {}
    base = str(owner["metadata"]["name"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{base[:57]}-",
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(meta.get("labels") or {}),
            "annotations": dict(meta.get("annotations") or {}),
            "finalizers": list(meta.get("finalizers") or ()),
            "ownerReferences": [owner_reference(ref_of(owner))],
        },
        "spec": {**template["spec"], "nodeName": node},
    }


def is_active(pod: JsonObject) -> bool:
    """Whether a pod counts: not ended, not being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp")
