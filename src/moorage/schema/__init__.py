"""Typed declarations, CRDs and the schema engine: one declaration, three uses. See contracts.md for the names."""

from .crdcheck import validate_crd, validate_crd_schema
from .fielderror import (
    NO_PATH,
    NO_VALUE,
    ErrorType,
    FieldError,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)
from .kind import Kind
from .model import Model, ObjectMeta, OwnerReference, Resource, StoredCondition, conditions_field, field
from .node import Compiler
from .review import Admission, Review, Verdict, verdict
from .rule import Column, Rule
from .structural import Structural, check

__all__ = [
    "NO_PATH",
    "NO_VALUE",
    "Admission",
    "Column",
    "Compiler",
    "ErrorType",
    "FieldError",
    "Kind",
    "Model",
    "ObjectMeta",
    "OwnerReference",
    "Resource",
    "Review",
    "Rule",
    "StoredCondition",
    "Structural",
    "Verdict",
    "check",
    "conditions_field",
    "duplicate",
    "field",
    "forbidden",
    "internal",
    "invalid",
    "not_found",
    "not_supported",
    "required",
    "too_long",
    "too_many",
    "type_invalid",
    "validate_crd",
    "validate_crd_schema",
    "verdict",
]
