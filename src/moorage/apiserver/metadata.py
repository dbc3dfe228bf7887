"""ObjectMeta: what the server sets, what it refuses. Pure.

Source: apiserver `rest.BeforeCreate`, `rest.BeforeUpdate`; apimachinery `ValidateObjectMeta`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from moorage.apiserver.builtin import fields
from moorage.apiserver.errors import StatusError, bad_request
from moorage.apiserver.gotypes import is_integer
from moorage.apiserver.served import ServedType
from moorage.core import names
from moorage.core.meta import JsonObject, Key
from moorage.schema import FieldError, forbidden, invalid, required, too_long
from moorage.schema.fielderror import Verbatim, format_value, go_json

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
_ANNOTATIONS_LIMIT = 256 * 1024
_CHECKED_WHOLE = ("ConfigMap", "Secret", "Service")
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def prepare_create(obj: JsonObject, key: Key, now: str) -> None:
    """Set what a new object gets: namespace, generated name, uid, creation time.

    Raises:
        StatusError: 400 when body and path disagree.
    """
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    set_namespace(meta, key.namespace)
    if not meta.get("name") and meta.get("generateName"):
        base = meta["generateName"][: 63 - 5]
        meta["name"] = base + "".join(secrets.choice(_ALPHABET) for _ in range(5))
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(name, None)
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = now


_entropy = bytearray()


def new_uid() -> str:
    """A random UUID (version 4); randomness is fetched from the system 4 KiB at a time."""
    if len(_entropy) < 16:
        _entropy.extend(os.urandom(4096))
    text, variant = _entropy[-16:].hex(), "89ab"[_entropy[-8] >> 6]
    del _entropy[-16:]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


def set_namespace(meta: JsonObject, namespace: str) -> None:
    """Raises 400 when the object names another namespace than the request."""
    given = meta.get("namespace") or ""
    if given and namespace and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)


def require_name(meta: JsonObject, key: Key) -> None:
    """Raises 400 when a whole object does not say whose place it takes, or says another's."""
    given = meta.get("name") or ""
    if not given:
        raise bad_request(f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided")
    if given != key.name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({key.name})")


def check_name(obj: JsonObject, key: Key) -> None:
    """Fill in name and namespace of an update's body; raises 400 when they disagree with the path."""
    meta = obj["metadata"]
    set_namespace(meta, key.namespace)
    meta["name"] = meta.get("name") or key.name
    require_name(meta, key)


def prepare_update(obj: JsonObject, old: JsonObject) -> None:
    """Keep what an update cannot change; fill in what it left out."""
    meta, before = obj["metadata"], old["metadata"]
    for name in ("creationTimestamp", "deletionGracePeriodSeconds", "generation"):
        if name in before:
            meta[name] = before[name]
        else:
            meta.pop(name, None)
    if "deletionTimestamp" in before:
        meta["deletionTimestamp"] = before["deletionTimestamp"]
    meta.pop("selfLink", None)
    if not meta.get("uid"):
        meta["uid"] = before["uid"]
    if "generateName" in before and "generateName" not in meta:
        meta["generateName"] = before["generateName"]
    if not meta.get("resourceVersion"):
        meta["resourceVersion"] = before["resourceVersion"]


def validate(served: ServedType, obj: JsonObject) -> list[FieldError]:
    """Complaints about name, labels, annotations, finalizers and owners."""
    meta = obj["metadata"]
    found: list[FieldError] = []
    generate = meta.get("generateName")
    rule = name_rule(served)
    if generate:
        found += [invalid("metadata.generateName", generate, why) for why in rule(_without_dash(generate))]
    name = meta.get("name") or ""
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        found += [invalid("metadata.name", name, why) for why in rule(name)]
    if served.resource.namespaced and meta.get("namespace"):
        found += [
            invalid("metadata.namespace", meta["namespace"], why) for why in names.dns1123_label(meta["namespace"])
        ]
    found += fields.labels("metadata.labels", meta.get("labels"))
    return found + _annotations(meta) + _finalizers(served, meta) + _owners(meta)


def times_told(served: ServedType) -> int:
    """How often an update tells a complaint about labels, annotations or owners: Kubernetes checks them in several places."""
    return 4 if served.resource.group == "" and served.resource.kind in _CHECKED_WHOLE else 3


def _without_dash(generate: str) -> str:
    return generate[:-1] + "a" if len(generate) > 1 and generate.endswith("-") else generate


def name_rule(served: ServedType) -> Callable[[str], list[str]]:
    """The rule for names of a kind."""
    rt = served.resource
    if rt.group == "rbac.authorization.k8s.io":
        return _path_segment
    if rt.group == "" and rt.plural in ("namespaces", "services"):
        return names.dns1123_label
    return names.dns1123_subdomain


def _path_segment(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in value]


def _annotations(meta: JsonObject) -> list[FieldError]:
    annotations = meta.get("annotations")
    if not annotations:
        return []
    path = "metadata.annotations"
    found = list(fields.annotation_keys(path, annotations))
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    return [*found, too_long(path, "", _ANNOTATIONS_LIMIT)] if size > _ANNOTATIONS_LIMIT else found


def _knows_finalizers(served: ServedType) -> bool:
    """Whether a kind takes only the finalizers that Kubernetes knows, or ones with a domain."""
    return not served.custom and served.resource.group != "apiextensions.k8s.io"


def _finalizers(served: ServedType, meta: JsonObject) -> list[FieldError]:
    found: list[FieldError] = []
    finalizers = meta.get("finalizers") or ()
    path = "metadata.finalizers"
    for at, name in enumerate(finalizers):
        found += [invalid(path, name, why) for why in names.qualified_name(name)]
        if _knows_finalizers(served) and "/" not in name and name not in _STANDARD_FINALIZERS:
            found.append(
                invalid(f"{path}[{at}]", name, "name is neither a standard finalizer name nor is it fully qualified")
            )
    both = {"orphan", "foregroundDeletion"} <= set(finalizers)
    if both:
        found.append(
            invalid("metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set")
        )
    return found


def finalizer_warnings(meta: JsonObject) -> tuple[str, ...]:
    """Advice about finalizers of custom resources without a domain."""
    return tuple(
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental conflicts with other '
        "finalizer writers"
        for name in meta.get("finalizers") or ()
        if "/" not in name and name not in _STANDARD_FINALIZERS
    )


def _owners(meta: JsonObject) -> list[FieldError]:
    found: list[FieldError] = []
    controller = ""
    for owner in meta.get("ownerReferences") or ():
        path = "metadata.ownerReferences"
        version = owner.get("apiVersion") or ""
        if not version or version.count("/") > 1:
            found.append(invalid(f"{path}.apiVersion", version, "version must not be empty"))
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                found.append(invalid(f"{path}.{name}", owner.get(name, ""), "must not be empty"))
        if version == "v1" and owner.get("kind") == "Event":
            found.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            named = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                found.append(
                    invalid(
                        "metadata.ownerReferences",
                        Verbatim(go_json([_in_order(item) for item in meta["ownerReferences"]])),
                        'Only one reference can have Controller set to true. Found "true" in references for '
                        f"{controller} and {named}",
                    )
                )
            controller = named
    return found


def _in_order(owner: JsonObject) -> JsonObject:
    return {name: owner[name] for name in _OWNER_FIELDS if name in owner}


def validate_update(obj: JsonObject, old: JsonObject) -> list[FieldError]:
    """Complaints about metadata that an update may not change."""
    meta, before = obj["metadata"], old["metadata"]
    found: list[FieldError] = []
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        if meta.get(name) != before.get(name):
            found.append(invalid(f"metadata.{name}", meta.get(name), "field is immutable"))
    if before.get("deletionTimestamp"):
        added = sorted(set(meta.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if added:
            shown = f"[]string{{{', '.join(map(format_value, added))}}}"
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
            found.append(forbidden("metadata.finalizers", why))
    return found


def check_preconditions(obj: JsonObject, uid: str | None, version: str | None) -> str:
    """The sentence of a precondition that fails; empty when all hold."""
    meta = obj["metadata"]
    if uid is not None and uid != meta.get("uid"):
        return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta.get('uid')}"
    if version is not None and version != meta.get("resourceVersion"):
        return (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {meta.get('resourceVersion')}"
        )
    return ""


def require_metadata(obj: JsonObject, kind: str) -> None:
    """Make sure that `metadata` is an object; raises 400 when it is something else."""
    meta = obj.get("metadata")
    if meta is None:
        obj["metadata"] = {}
    elif not isinstance(meta, dict):
        raise StatusError(
            400, "BadRequest", f"{kind} cannot be handled as a {kind}: json: cannot unmarshal into metadata"
        )
    elif meta.get("generation") is not None and not is_integer(meta["generation"]):
        why = f"json: cannot unmarshal number {meta['generation']} into Go struct field ObjectMeta.metadata.generation of type int64"
        raise bad_request(f"{kind} cannot be handled as a {kind}: {why}")
