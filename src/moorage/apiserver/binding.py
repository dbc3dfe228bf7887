"""POST pods/binding: a pod is given to a node. Source: Kubernetes API reference, Binding.

Enters: a Binding whose target is a node. Leaves: the pod with `spec.nodeName` and the condition PodScheduled; the answer is a Status. It
must not choose a node.
"""

from __future__ import annotations

from moorage.apiserver.api import Api
from moorage.apiserver.codec import decode, negotiate
from moorage.apiserver.errors import conflict, invalid, not_found
from moorage.apiserver.hub import Stale, encode
from moorage.apiserver.options import check_write_options
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.write import other_uid
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError, not_supported, required

_BINDING = ResourceType("", "v1", "Binding", "bindings")
_PLACE = ResourceType("", "v1", "Binding", "pods/binding")
_ATTEMPTS = 10


async def bind(api: Api, request: Request, served: ServedType) -> Response:
    """Give the pod of the request's name to the node of the body.

    Raises:
        StatusError: 400, 404, 409 (it has a node, or ends), 415, 422.
    """
    negotiate(request.headers, request.query)
    check_write_options(request)
    body, _ = decode(request.body, request.headers.get("content-type", ""), "Binding")
    wanted = str((body.get("metadata") or {}).get("uid") or "")
    key = key_of_target(served, request.target)
    target = body.get("target") or {}
    if errors := _errors(target):
        raise invalid(_BINDING, key.name, errors)
    for _ in range(_ATTEMPTS):
        entry = await api.hub.settled(served.storage, str(key))
        if entry is None:
            raise not_found(served.resource, key.name)
        pod = api.read(served, entry)
        if wanted and wanted != pod["metadata"]["uid"]:
            raise other_uid(served.resource, key, pod, wanted)
        if why := _refused(pod):
            raise conflict(_PLACE, key.name, why)
        _assign(pod, body, str(target["name"]), api.now())
        if request.query.get("dryRun"):
            return _answer()
        try:
            await api.commit(served, entry.key, pod, entry.rev)
        except Stale:
            continue
        return _answer()
    raise conflict(served.resource, key.name)


def _errors(target: JsonObject) -> list[FieldError]:
    errors = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name", ""))
    return errors


def _refused(pod: JsonObject) -> str:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    return f'pod {name} is already assigned to node "{node}"' if node else ""


def _assign(pod: JsonObject, body: JsonObject, node: str, now: str) -> None:
    pod["spec"]["nodeName"] = node
    if noted := (body.get("metadata") or {}).get("annotations"):
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **noted}
    status = pod.setdefault("status", {})
    kept = [item for item in status.get("conditions") or () if item["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*kept, scheduled]


def _answer() -> Response:
    return Response(
        201, encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
    )
