"""What a declared structure promises, whatever stands behind it: the contract of schema/declared.py with pydantic's validator."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic_core import ValidationError

from moorage.schema.declared import Structure, declare
from moorage.schema.model import Model


class Spare(Model):
    length: int


class Rope(Model):
    made_of: Literal["hemp", "steel"] = "hemp"
    length: int
    knots: tuple[Annotated[str, "a mark"], ...] = ()
    tags: dict[str, str] = declare(factory=dict)
    spare: Spare | None = None
    longest: ClassVar[int] = 9


class TarredRope(Rope):
    length: int = 5
    tar_grade: int | str | None = None


class Label(Structure):
    unknown = "forbid"
    first_line: str


class Open(Model):
    unknown = "allow"
    name: str = ""


def test_the_wire_form_is_read_and_written() -> None:
    """camelCase outside, the attributes' names inside; what was not given is not written."""
    rope = Rope.model_validate({"madeOf": "steel", "length": 3, "knots": ["bowline"], "other": 1})
    assert (rope.made_of, rope.length, rope.knots, rope.tags, rope.longest) == ("steel", 3, ("bowline",), {}, 9)
    assert rope.to_wire() == {"madeOf": "steel", "length": 3, "knots": ["bowline"]}
    assert rope.model_fields_set == {"made_of", "length", "knots"}


@pytest.mark.parametrize(
    ("wire", "place"),
    [
        ({}, ("length",)),
        ({"length": "long"}, ("length",)),
        ({"length": 1, "madeOf": "silk"}, ("madeOf",)),
        ({"length": 1, "knots": ["reef", 2]}, ("knots", 1)),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(wire: Any, place: tuple[Any, ...]) -> None:
    """The place is that of the wire."""
    with pytest.raises(ValidationError) as refused:
        Rope.model_validate(wire)
    assert refused.value.errors()[0]["loc"] == place


def test_objects_made_in_the_code_are_checked_too() -> None:
    """By the names of the attributes."""
    assert Rope(length=1, made_of="steel").made_of == "steel"
    with pytest.raises(ValidationError):
        Rope(length=1, made_of="silk")  # type: ignore[arg-type]


def test_a_class_takes_over_the_fields_of_its_base_and_may_change_them() -> None:
    """In the order of the base."""
    assert [*TarredRope.model_fields] == ["made_of", "length", "knots", "tags", "spare", "tar_grade"]
    assert TarredRope(tar_grade="A").length == 5
    assert Rope.model_fields["length"].is_required


def test_unknown_fields_are_dropped_kept_or_refused() -> None:
    """As the class says."""
    assert Open.model_validate({"name": "a", "more": [1]}).to_wire() == {"name": "a", "more": [1]}
    with pytest.raises(ValidationError):
        Label.model_validate({"first_line": "x", "second_line": "y"})


def test_equal_objects_are_equal_and_hash_alike() -> None:
    """By class and fields, not by what was given and what is a default."""
    assert Label(first_line="x") == Label(first_line="x")
    assert hash(Label(first_line="x")) == hash(Label(first_line="x"))
    assert Rope(length=1) == Rope(length=1, made_of="hemp")
    assert Rope(length=1) != Rope(length=2)
    assert repr(Label(first_line="x")) == "Label(first_line='x')"


def test_a_copy_has_other_values_and_the_first_stays() -> None:
    """What was changed counts as given; nothing can be set or deleted."""
    first = Rope(length=1)
    assert first.model_copy(update={"spare": Spare(length=2)}).to_wire() == {"length": 1, "spare": {"length": 2}}
    assert first.to_wire() == {"length": 1}
    with pytest.raises(AttributeError, match="frozen"):
        del first.length


def test_a_default_that_can_be_changed_is_made_for_each_object() -> None:
    """No two share it."""
    assert Rope(length=1).tags is not Rope(length=1).tags


def test_a_type_without_a_form_in_a_crd_is_told() -> None:
    """When the class is first used."""

    class Odd(Structure):
        what: set[str]

    with pytest.raises(TypeError, match=r"set\[str\] cannot be the type of a declared field"):
        Odd.model_validate({})
