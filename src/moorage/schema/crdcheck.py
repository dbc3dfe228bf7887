"""Schemas of CRDs that users create: are they structural?

Enters: an OpenAPI v3 schema. Leaves: complaints as kube-apiserver makes them when the CRD is created.
"""

from __future__ import annotations

from moorage.core.meta import JsonObject

from .fielderror import FieldError, required

_BASE = "spec.validation.openAPIV3Schema"


def validate_crd_schema(schema: JsonObject, base: str = _BASE) -> list[FieldError]:
    """Complaints about a schema; empty when it is structural."""
    return [] if schema.get("type") else [required(f"{base}.type", "must not be empty at the root")]
