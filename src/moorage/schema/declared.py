"""Frozen typed structures on pydantic's validator: a class body declares fields, the wire form is read and written in Rust.

Enters: a class body. Leaves: a class whose objects are checked when they are made, and `Field`s that say what was declared.
It stands on `pydantic_core` alone: the classes of `pydantic` take longer to load than everything that `moorage lint` does (ADR 0021).
What a class declares is looked at when it is first needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self, dataclass_transform, get_args, get_origin

from pydantic_core import SchemaSerializer, SchemaValidator

from moorage.core.meta import JsonObject

from .parsing import Schema, core_schema


class _Nothing(Enum):
    NOTHING = "nothing"


NOTHING: Final = _Nothing.NOTHING
"""Stands where no default is declared."""


@dataclass(frozen=True, slots=True)
class Field:
    """One declared field.

    Attributes:
        default: NOTHING where none is declared.
        factory: makes the default for each object anew, where it could be changed.
        alias: name on the wire.
        description: one or two sentences for people.
        extra: what else the declaration noted.
        annotation: the type, without the marks that stand beside it in Annotated.
        metadata: those marks.
    """

    default: Any = NOTHING
    factory: Callable[[], Any] | None = None
    alias: str = ""
    description: str = ""
    extra: Any = None
    annotation: Any = None
    metadata: tuple[Any, ...] = ()

    @property
    def is_required(self) -> bool:
        """Whether each object must have it."""
        return self.default is NOTHING and self.factory is None

    def any_default(self) -> Any:
        """The default that a new object gets."""
        return self.factory() if self.factory else self.default

    def typed(self, annotation: Any, alias: str) -> Field:
        """The field as it stands in a class; `alias` is for one that has no alias of its own."""
        marks: tuple[Any, ...] = ()
        if get_origin(annotation) is Annotated:
            annotation, *found = get_args(annotation)
            marks = tuple(found)
        return replace(self, alias=self.alias or alias, annotation=annotation, metadata=marks)

    def core_schema(self) -> Schema:
        """How the field is read and written."""
        schema = core_schema(self.annotation)
        if self.factory:
            schema = {"type": "default", "schema": schema, "default_factory": self.factory}
        elif self.default is not NOTHING:
            schema = {"type": "default", "schema": schema, "default": self.default}
        return {
            "type": "model-field",
            "schema": schema,
            "validation_alias": self.alias,
            "serialization_alias": self.alias,
        }


def declare(default: Any = NOTHING, **noted: Any) -> Any:
    """A field with its default, or with `factory`, and what is noted of it: the attributes of Field."""
    return Field(default=default, **noted)


class _Form:
    """What a class declares, and how its objects are read and written; each made when it is first asked for."""

    def __init__(self, of: Declared, given: Mapping[str, Any]) -> None:
        self._of = of
        self._given = given

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields by name, those of base classes first."""
        found: dict[str, Field] = {}
        for base in reversed(self._of.__mro__[1:]):
            if isinstance(base, Declared):
                found.update(base.model_fields)
        for name, annotation in inspect.get_annotations(self._of, eval_str=True).items():
            if not _is_class_variable(annotation):
                default = self._given.get(name, NOTHING)
                field = default if isinstance(default, Field) else Field(default)
                found[name] = field.typed(annotation, self._of.wire_name(name))
        return found

    @cached_property
    def core_schema(self) -> Schema:
        """The core schema of the class."""
        name, unknown = self._of.__name__, self._of.unknown
        fields = {name: field.core_schema() for name, field in self.fields.items()}
        return {
            "type": "model",
            "cls": self._of,
            "schema": {"type": "model-fields", "fields": fields, "model_name": name},
            "config": {
                "title": name,
                "validate_by_name": True,
                "hide_input_in_errors": True,
                "extra_fields_behavior": unknown,
            },
        }

    @cached_property
    def validator(self) -> SchemaValidator:
        return SchemaValidator(self.core_schema)

    @cached_property
    def serializer(self) -> SchemaSerializer:
        return SchemaSerializer(self.core_schema)


def _is_class_variable(annotation: Any) -> bool:
    return str(annotation).removeprefix("typing.").startswith("ClassVar")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(declare,))
class Declared(type):
    """The class of all declared structures."""

    form: _Form
    unknown: Literal["ignore", "allow", "forbid"]
    wire_name: Callable[[str], str]

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Declared:
        given = {
            field: body.pop(field)
            for field in body.get("__annotations__", ())
            if field in body and not _is_class_variable(body["__annotations__"][field])
        }
        made = super().__new__(meta, name, bases, body)
        made.form = _Form(made, given)
        return made

    @property
    def model_fields(cls) -> Mapping[str, Field]:
        """What the class declares, by the names of the attributes."""
        return cls.form.fields

    @property
    def core_schema(cls) -> Schema:
        """How its objects are read and written, for the classes that hold them."""
        return cls.form.core_schema


class _Parsed:
    """What the validator sets on an object."""

    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
    __pydantic_extra__: dict[str, Any] | None
    __pydantic_fields_set__: set[str]


class Structure(_Parsed, metaclass=Declared):
    """Base of all declared structures: frozen.

    Attributes:
        unknown: what becomes of wire fields that are not declared.
    """

    __slots__ = ()
    unknown = "ignore"

    @staticmethod
    def wire_name(attribute: str) -> str:
        """As it is called."""
        return attribute

    def __init__(self, **given: Any) -> None:
        type(self).form.validator.validate_python(given, self_instance=self)

    @classmethod
    def model_validate(cls, wire: Any) -> Self:
        """The object of a wire form.

        Raises:
            ValidationError: it does not fit what is declared.
        """
        made: Self = cls.form.validator.validate_python(wire)
        return made

    @property
    def model_fields_set(self) -> frozenset[str]:
        """Names of the fields that were given, defaults left out."""
        return frozenset(self.__pydantic_fields_set__)

    def model_dump(
        self, *, by_alias: bool = False, exclude_unset: bool = False, exclude_none: bool = False
    ) -> JsonObject:
        """The fields as JSON values."""
        written: JsonObject = type(self).form.serializer.to_python(
            self, mode="json", by_alias=by_alias, exclude_unset=exclude_unset, exclude_none=exclude_none
        )
        return written

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """The same with other values for some fields, which are not checked."""
        made = object.__new__(type(self))
        for slot, value in (
            ("__dict__", {**self.__dict__, **update}),
            ("__pydantic_fields_set__", {*self.__pydantic_fields_set__, *update}),
            ("__pydantic_extra__", self.__pydantic_extra__),
            ("__pydantic_private__", None),
        ):
            object.__setattr__(made, slot, value)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__ and self.__pydantic_extra__ == other.__pydantic_extra__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"
