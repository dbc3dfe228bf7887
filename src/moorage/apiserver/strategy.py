"""What happens to an object between the wire and the store: decode, default, prepare, validate. Pure.

Enters: an object as a client sent it, and the stored one. Leaves: the object as it may be stored, or all complaints.
Built-in kinds go through builtin.py, custom ones through their schema; both through `metadata`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.apiserver import builtin, metadata
from moorage.apiserver.errors import bad_request
from moorage.apiserver.gotypes import first_mismatch
from moorage.apiserver.registry import OBJECT_META, Registry, check_gvk
from moorage.apiserver.request import Request
from moorage.apiserver.scalepaths import scale_errors
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject
from moorage.schema import ErrorType, FieldError, Verdict, validate_crd
from moorage.schema import invalid as invalid_value
from moorage.schema.node import has_rules

_SHOWN_WARNINGS = 100
_BLOCKING = {
    ErrorType.NOT_SUPPORTED,
    ErrorType.REQUIRED,
    ErrorType.TOO_LONG,
    ErrorType.TOO_MANY,
    ErrorType.TYPE_INVALID,
}
_UNCHECKED = invalid_value(
    "",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


def decode_object(
    registry: Registry, served: ServedType, request: Request, found: tuple[JsonObject, list[str]]
) -> JsonObject:
    """The object of a body: kind checked, unknown fields dropped and reported as `fieldValidation` asks.

    Raises:
        StatusError: 400, another kind, wrong types of a built-in, or unknown fields under Strict.
    """
    obj, repeated = found
    check_gvk(served, obj)
    metadata.require_metadata(obj, served.resource.kind)
    problems = [*repeated]
    problems += [f'unknown field "{path}"' for path in prune(registry, served, obj)]
    if served.custom:
        _check_metadata_types(registry, served, obj)
    else:
        check_types(served, obj)
    report_fields(request, served, problems)
    _drop_repeated_owners(request, obj["metadata"])
    return obj


def _check_metadata_types(registry: Registry, served: ServedType, obj: JsonObject) -> None:
    rt, meta = served.resource, obj["metadata"]
    if any(error.type is ErrorType.TYPE_INVALID for error in registry.object_meta.validate(meta).errors):
        schema = registry.definitions[OBJECT_META]
        if why := first_mismatch(schema, registry.definitions, {"kind": "ObjectMeta", **meta}):
            raise bad_request(f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}: {why}')


def _drop_repeated_owners(request: Request, meta: JsonObject) -> None:
    owners = meta.get("ownerReferences")
    if not owners or len({owner.get("uid") for owner in owners}) == len(owners):
        return
    seen: list[JsonObject] = []
    for owner in owners:
        if owner not in seen:
            seen.append(owner)
    uids = [owner.get("uid") for owner in owners]
    repeated = ", ".join(dict.fromkeys(str(uid) for uid in uids if uids.count(uid) > 1))
    request.warnings.append(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
        f"such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {repeated}"
    )
    meta["ownerReferences"] = seen


def prune(registry: Registry, served: ServedType, obj: JsonObject) -> list[str]:
    """Drop what the schema does not know; the dropped paths."""
    if not served.custom:
        return served.structural.prune(obj)
    meta = obj["metadata"]
    dropped = sorted(served.structural.prune(obj), key=lambda path: (not path.startswith("metadata."), path))
    return [f"metadata.{path}" for path in registry.object_meta.prune(meta)] + dropped


def report_fields(request: Request, served: ServedType, problems: Sequence[str]) -> None:
    """Raise or warn about unknown and repeated fields, as `fieldValidation` says (Warn when it is not given)."""
    mode = request.query.get("fieldValidation") or "Warn"
    if not problems or mode == "Ignore":
        return
    if mode == "Strict":
        rt = served.resource
        raise bad_request(
            f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}: '
            f"strict decoding error: {', '.join(problems)}"
        )
    request.warnings.extend(problems[:_SHOWN_WARNINGS])


def check_types(served: ServedType, obj: JsonObject) -> None:
    """Raises 400 when a field of a built-in kind has another JSON type than its Go struct."""
    if any(error.type is ErrorType.TYPE_INVALID for error in served.structural.validate(obj).errors):
        rt = served.resource
        if why := first_mismatch(served.schema, served.definitions, obj):
            raise bad_request(f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}: {why}')


def default(served: ServedType, obj: JsonObject) -> None:
    """Fill in the defaults of a kind."""
    if not served.custom:
        builtin.tidy(obj)
    served.structural.default(obj)
    if not served.custom:
        builtin.default_builtin(served.resource, obj)


def prepare_create(served: ServedType, obj: JsonObject) -> None:
    """What a create may not set is dropped; generation starts at 1."""
    if not served.custom:
        builtin.prepare_create(served.resource, obj)
        return
    if "status" in served.subresources:
        obj.pop("status", None)
    obj["metadata"]["generation"] = 1


def prepare_update(served: ServedType, obj: JsonObject, old: JsonObject, subresource: str) -> None:
    """Keep what this write may not change; a changed specification raises generation."""
    if not served.custom:
        if subresource == "status":
            builtin.prepare_status(served.resource, obj, old)
        else:
            builtin.prepare_update(served.resource, obj, old, subresource)
        return
    if subresource == "status":
        _only_status(obj, old)
    elif "status" in served.subresources:
        builtin.keep(obj, old, "status")
    generation = old["metadata"].get("generation", 1)
    ignored = {"metadata", "status"} if "status" in served.subresources else {"metadata"}
    obj["metadata"]["generation"] = generation + 1 if _differs(obj, old, ignored) else generation


def _differs(obj: JsonObject, old: JsonObject, ignored: set[str]) -> bool:
    return {k: v for k, v in obj.items() if k not in ignored} != {k: v for k, v in old.items() if k not in ignored}


def _only_status(obj: JsonObject, old: JsonObject) -> None:
    """A status write of a custom resource changes the status, and of the metadata only managedFields."""
    for name in set(obj) | set(old):
        if name not in ("status", "metadata"):
            builtin.keep(obj, old, name)
    meta = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
    for name in ("managedFields", "resourceVersion", "uid"):
        if name in obj["metadata"]:
            meta[name] = obj["metadata"][name]
    obj["metadata"] = meta


def has_wrong_types(served: ServedType, obj: JsonObject) -> bool:
    """Whether some value has another JSON type than the schema says."""
    return any(error.type is ErrorType.TYPE_INVALID for error in served.structural.validate(obj).errors)


def validate(served: ServedType, obj: JsonObject, old: JsonObject | None, subresource: str = "") -> Verdict:
    """All complaints and warnings about an object that is to be stored."""
    errors = metadata.validate(served, obj)
    if old is not None:
        errors = errors * metadata.times_told(served) + metadata.validate_update(obj, old) * 2
    warnings: tuple[str, ...] = ()
    if served.custom:
        found = _by_schema(served, obj, old)
        errors += [_below_status(error) if subresource == "status" else error for error in found.errors]
        errors += scale_errors(served, obj)
        warnings = metadata.finalizer_warnings(obj["metadata"]) + found.warnings
    else:
        warnings = builtin.warn_builtin(served.resource, obj)
        errors += _without_repeats(builtin.validate_builtin(served.resource, obj, old), errors)
        if served.resource.kind == "CustomResourceDefinition":
            errors += _without_repeats(definition_errors(obj, old), errors)
    return Verdict(tuple(errors), warnings)


def _below_status(error: FieldError) -> FieldError:
    """The same complaint as a write of the status words it: the sentence names the field from the status on."""
    if error.path.startswith("status.") and error.detail.startswith(f"{error.path} in body"):
        return error._replace(detail=error.detail.removeprefix("status."))
    return error


def definition_errors(crd: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """Complaints about a CustomResourceDefinition; one whose specification stays as it was stored is not judged again."""
    if old is None:
        return validate_crd(crd)
    if crd["spec"] == old["spec"]:
        return []
    errors = validate_crd(crd)
    established = any(
        item["type"] == "Established" and item["status"] == "True"
        for item in (old.get("status") or {}).get("conditions") or ()
    )
    spec, before = crd["spec"], old["spec"]
    pairs = [("spec.group", spec.get("group"), before["group"])]
    pairs.append(("spec.names.plural", spec["names"].get("plural"), before["names"]["plural"]))
    if established:
        pairs.append(("spec.scope", spec.get("scope"), before["scope"]))
        pairs.append(("spec.names.kind", spec["names"].get("kind"), before["names"]["kind"]))
    return errors + [invalid_value(path, new, "field is immutable") for path, new, was in pairs if new != was]


def _by_schema(served: ServedType, obj: JsonObject, old: JsonObject | None) -> Verdict:
    """Structure, then CEL rules unless the structure is too broken for them."""
    structure = served.structural.validate(obj, old)
    if not has_rules(served.structural.root):
        return structure
    if any(error.type in _BLOCKING for error in structure.errors):
        return Verdict((*structure.errors, _UNCHECKED), structure.warnings)
    rules = served.structural.validate_rules(obj, old)
    return Verdict(structure.errors + rules.errors, structure.warnings + rules.warnings)


def _without_repeats(found: Sequence[FieldError], known: Sequence[FieldError]) -> list[FieldError]:
    messages = {error.message for error in known}
    return [error for error in found if error.message not in messages]
