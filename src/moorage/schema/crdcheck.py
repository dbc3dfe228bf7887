"""CustomResourceDefinitions that users create: may they be served?

Enters: a CRD as it came. Leaves: complaints, worded as kube-apiserver's where it has the same rule. One version only:
conversion between versions is not part of one-machine mode (spec/embedded.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from moorage.core.meta import JsonObject
from moorage.core.names import dns1035_label, dns1123_subdomain

from .crdschema import structural_errors
from .fielderror import FieldError, Verbatim, forbidden, go_json, invalid, not_supported, required

_BASE: Final = "spec.validation.openAPIV3Schema"
"""As kube-apiserver shows the path of the schema of a single version."""
_MIXED: Final = "may have mixed case, but should otherwise match: "
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")


def validate_crd_schema(schema: JsonObject) -> list[FieldError]:
    """Complaints about the schema of a CRD; empty when it can be served."""
    errors = structural_errors(schema, _BASE)
    if errors:
        return errors
    from .crdrules import rule_errors

    return rule_errors(schema, _BASE)


def validate_crd(crd: JsonObject) -> list[FieldError]:
    """Complaints about a whole CustomResourceDefinition, of one version."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    errors = [*_group_errors(crd, spec, names), *_name_errors(names)]
    versions = spec.get("versions") or []
    if len({version.get("name") for version in versions}) < len(versions):
        return [*errors, invalid("spec.versions", _shown(spec.get("versions")), "must contain unique version names")]
    if len(versions) > 1:
        text = "Moorage serves one version of each custom resource: several versions need conversion; declare one"
        return [*errors, forbidden("spec.versions", text)]
    if not any(version.get("storage") for version in versions):
        text = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", _shown(spec.get("versions")), text))
        errors.append(invalid("status.storedVersions", None, "must have at least one stored version"))
    for version in versions:
        errors += _version_errors(version)
    return errors


_VERSION_FIELDS: Final = (
    "Deprecated", "DeprecationWarning", "Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields",
)  # fmt: skip


def _shown(versions: Any) -> Any:
    """Versions as kube-apiserver prints them: what all of them share stands elsewhere."""
    if not versions:
        return versions
    rows = []
    for version in versions:
        row: JsonObject = {"Name": version.get("name") or "", "Served": bool(version.get("served"))}
        row |= {"Storage": bool(version.get("storage")), **dict.fromkeys(_VERSION_FIELDS), "Deprecated": False}
        rows.append(row)
    return Verbatim(go_json(rows))


def _group_errors(crd: JsonObject, spec: JsonObject, names: JsonObject) -> Iterator[FieldError]:
    name, group = (crd.get("metadata") or {}).get("name", ""), spec.get("group") or ""
    if name != f"{names.get('plural', '')}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    elif complaints := dns1123_subdomain(group):
        yield invalid("spec.group", group, ",".join(complaints))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", True, text)


def _name_errors(names: JsonObject) -> Iterator[FieldError]:
    kind = names.get("kind") or ""
    implied = {"singular": kind.lower(), "listKind": kind and f"{kind}List"}
    for field in ("plural", "singular", "kind", "listKind"):
        value = names.get(field) or implied.get(field, "")
        mixed = _MIXED if field in ("kind", "listKind") else ""
        if not value:
            yield required(f"spec.names.{field}")
        else:
            texts = dns1035_label(value.lower() if mixed else value)
            yield from (invalid(f"spec.names.{field}", value, mixed + text) for text in texts)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    for field in ("shortNames", "categories"):
        for at, value in enumerate(names.get(field) or ()):
            yield from (invalid(f"spec.names.{field}[{at}]", value, text) for text in dns1035_label(value))


def _version_errors(version: JsonObject) -> list[FieldError]:
    name = version.get("name") or ""
    places = ("spec.versions[0].name", "spec.version")  # the second is where a single version once stood
    errors = [invalid(place, name, text) for place in places for text in dns1035_label(name)]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        return [*errors, required("spec.versions[0].schema.openAPIV3Schema")]
    errors += validate_crd_schema(schema)
    for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
        errors += _column_errors(column, f"spec.additionalPrinterColumns[{at}]")
    errors += _scale_errors((version.get("subresources") or {}).get("scale"))
    errors += _selectable_errors(version.get("selectableFields") or (), schema)
    return errors


def _column_errors(column: JsonObject, path: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    kind, json_path = column.get("type"), column.get("jsonPath")
    if not kind:
        yield required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    if not json_path:
        yield required(f"{path}.JSONPath")
    elif not str(json_path).startswith("."):
        yield invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with .")


def _scale_errors(scale: Any) -> Iterator[FieldError]:
    if not isinstance(scale, dict):
        return
    for name, parent in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path, value = f"spec.subresources.scale.{name}", scale.get(name)
        if not value:
            yield required(path)
        elif not str(value).startswith("."):
            yield invalid(path, value, "must be a simple json path starting with .")
        elif not str(value).startswith(f"{parent}."):
            yield invalid(path, value, f"should be a json path under {parent}")


def _selectable_errors(fields: Any, schema: JsonObject) -> Iterator[FieldError]:
    for at, field in enumerate(fields):
        path, where = str(field.get("jsonPath", "")), f"spec.selectableFields[{at}].jsonPath"
        found: Any = schema
        for step in path.removeprefix(".").split("."):
            found = (found.get("properties") or {}).get(step) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            yield invalid(where, path, "is an invalid path: does not refer to a valid field")
        elif found.get("type") not in ("string", "boolean", "integer"):
            text = "must point to a field of type string, boolean or integer."
            yield invalid(where, path, f"{text} Enum string fields and strings with formats are allowed.")
