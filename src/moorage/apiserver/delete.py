"""DELETE of one object: preconditions, propagation policy, finalizers, grace."""

from __future__ import annotations

from datetime import timedelta

from moorage.apiserver import present
from moorage.apiserver.api import Api
from moorage.apiserver.codec import negotiate
from moorage.apiserver.errors import conflict, forbidden, not_found, success
from moorage.apiserver.hub import Entry, Stale, encode
from moorage.apiserver.options import DeleteOptions, delete_options
from moorage.apiserver.registry import CRDS, key_of_target
from moorage.apiserver.request import ADMIN_GROUP, Request, Response, Target, User
from moorage.apiserver.served import ServedType
from moorage.apiserver.views import ordered
from moorage.apiserver.write import finished
from moorage.core.meta import JsonObject, ResourceType

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_POLICY_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}
_RETURNS_OBJECT = {"pods", "persistentvolumeclaims", "serviceaccounts", "services"}
_ATTEMPTS = 10
_IN_BACKGROUND = DeleteOptions("Background")
_SERVER = User("system:apiserver", (ADMIN_GROUP,))
_KEPT_NAMESPACES = ("default", "kube-system", "kube-public")
CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a CustomResourceDefinition that is being deleted until its objects are gone."""
_JOBS_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


async def delete(api: Api, request: Request, served: ServedType) -> Response:
    """Delete the object of the request's name, or begin to.

    Raises:
        StatusError: 400, 403, 404, 409, 422.
    """
    negotiate(request.headers, request.query)
    options = delete_options(request)
    path = str(key_of_target(served, request.target))
    entry, gone = await delete_object(api, request, served, path, options)
    if gone and served.storage not in _RETURNS_OBJECT:
        meta = entry.parse()["metadata"]
        details = {
            "name": meta["name"],
            "group": served.resource.group,
            "kind": served.resource.plural,
            "uid": meta["uid"],
        }
        body = encode(success({name: value for name, value in details.items() if value}))
        return Response(200, body)
    return await present.one(api, request, served, entry)


async def delete_object(
    api: Api, request: Request, served: ServedType, path: str, options: DeleteOptions
) -> tuple[Entry, bool]:
    """Delete or begin to; the last state and whether it is gone.

    Raises:
        StatusError: 404, 409, and what admission says.
    """
    name = path.rpartition("/")[2]
    if served.storage == "namespaces" and name in _KEPT_NAMESPACES:
        raise forbidden(served.resource, name, "this namespace may not be deleted")
    for _ in range(_ATTEMPTS):
        entry = await api.hub.settled(served.storage, path)
        if entry is None:
            raise not_found(served.resource, name)
        old = api.read(served, entry)
        _check_preconditions(served, old, options)
        await api.admission.validate(request, served, None, old, "")
        wanted, gone = terminating(api, request, served, old, options)
        if options.dry_run or (wanted == old and not gone):
            return Entry(path, entry.rev, encode(ordered(served, wanted))), gone
        try:
            return await api.commit(served, path, wanted, entry.rev, delete=gone), gone
        except Stale:
            continue
    raise conflict(served.resource, name)


async def collect(api: Api, served: ServedType, path: str, options: DeleteOptions = _IN_BACKGROUND) -> None:
    """Delete in the name of the server itself.

    Raises:
        StatusError: as `delete_object`.
    """
    rt = served.resource
    target, headers = Target("", "delete", rt.group, rt.version, "", rt.plural), {"user-agent": "moorage-apiserver"}
    await delete_object(api, Request("", target, {}, headers, user=_SERVER), served, path, options)


def _check_preconditions(served: ServedType, old: JsonObject, options: DeleteOptions) -> None:
    meta, rt = old["metadata"], served.resource
    why = ""
    if options.uid is not None and options.uid != meta["uid"]:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']})"
    elif options.version is not None and options.version != meta["resourceVersion"]:
        asked, have = options.version, meta["resourceVersion"]
        why = f"the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({have})"
    if why:
        shown = ResourceType("", rt.version, rt.kind, rt.kind)
        raise conflict(
            shown,
            meta["name"],
            f"{why}. The object might have been {'deleted and then recreated' if 'UID' in why else 'modified'}",
        )


def terminating(
    api: Api, request: Request, served: ServedType, old: JsonObject, options: DeleteOptions
) -> tuple[JsonObject, bool]:
    """The object as deletion leaves it, and whether it goes at once: then all but a pod look as they were stored."""
    obj = {**old, "metadata": dict(old["metadata"])}
    meta = obj["metadata"]
    finalizers = [name for name in meta.get("finalizers") or () if name not in _POLICY_FINALIZERS.values()]
    policy = _policy(request, served, old, options)
    if policy in _POLICY_FINALIZERS:
        finalizers.append(_POLICY_FINALIZERS[policy])
    if served.storage == CRDS.group_resource and CRD_CLEANUP not in finalizers and not meta.get("deletionTimestamp"):
        finalizers.append(CRD_CLEANUP)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    grace = _grace(served, old, options)
    gone = grace == 0 and finished(served, obj)
    if gone and served.storage != "pods":
        return old, True
    _mark(api, served, obj, grace)
    return obj, gone


async def let_go(api: Api, served: ServedType, entry: Entry, finalizer: str) -> None:
    """Take a finalizer of the server's own away; an object that nothing else holds is gone with it.

    Raises:
        Stale: somebody else wrote the object meanwhile.
    """
    obj = entry.parse()
    meta = obj["metadata"]
    meta["finalizers"] = [name for name in meta["finalizers"] if name != finalizer]
    gone = not meta["finalizers"]
    if gone:
        del meta["finalizers"]
    await api.commit(served, entry.key, obj, entry.rev, delete=gone)


def _mark(api: Api, served: ServedType, obj: JsonObject, grace: int) -> None:
    """Set deletionTimestamp and what goes with it; a shorter grace replaces a longer one."""
    meta = obj["metadata"]
    known = meta.get("deletionTimestamp") is not None
    if not known or grace < meta.get("deletionGracePeriodSeconds", 0):
        ends = api.clock() + timedelta(seconds=grace)
        meta["deletionTimestamp"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
        if served.storage != "namespaces":
            meta["deletionGracePeriodSeconds"] = grace
    if not known and meta.get("generation"):
        meta["generation"] += 1
    if served.storage == "namespaces":
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}


def _policy(request: Request, served: ServedType, old: JsonObject, options: DeleteOptions) -> str:
    if options.policy:
        return options.policy
    present_ones = set(old["metadata"].get("finalizers") or ())
    for policy, finalizer in _POLICY_FINALIZERS.items():
        if finalizer in present_ones:
            return policy
    if served.storage == "jobs.batch":
        request.warnings.append(_JOBS_WARNING)
        return "Orphan"
    return "Background"


def _grace(served: ServedType, old: JsonObject, options: DeleteOptions) -> int:
    """Seconds until a pod may be gone; other kinds have none."""
    if served.storage != "pods":
        return 0
    phase = (old.get("status") or {}).get("phase")
    if not old["spec"].get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    if options.grace is not None:
        return max(options.grace, 0)
    grace: int = old["spec"].get("terminationGracePeriodSeconds", 30)
    return grace
