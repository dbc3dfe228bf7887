"""The keywords that restrict one value: enum, pattern, lengths, ranges, counts, formats.

Enters: a Node. Leaves: closures that check one value and add complaints, worded as kube-apiserver words them.
They look at the value alone; walking into it is `validate.py`'s work.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from .fielderror import FieldError, format_value, invalid, not_supported, too_long, too_many, type_invalid
from .fieldpath import Path, path_text
from .formats import FORMATS, INTEGER_RANGES
from .gopattern import compile_pattern
from .node import Node
from .sameness import same

Check: TypeAlias = Callable[[Any, Path, list[FieldError]], None]
_IN_BODY: Final = "in body"
_FITS_64: Final = INTEGER_RANGES["int64"]
_LARGEST_FLOAT: Final = 3.4028234663852886e38


def checks_of(node: Node) -> tuple[Check, ...]:
    """The checks of a node in the order in which kube-apiserver makes them."""
    if "checks" not in node.cache:
        node.cache["checks"] = tuple(_make_checks(node))
    found: tuple[Check, ...] = node.cache["checks"]
    return found


def _make_checks(node: Node) -> list[Check]:
    bounds = node.bounds
    made: list[Check] = []
    if {"minLength", "maxLength", "pattern"} & bounds.keys():
        made.append(_text_check(bounds))
    if node.format in INTEGER_RANGES and node.type != "number":
        made.append(_integer_check(node.format))
    elif node.type == "integer" and not node.format:
        made.append(_whole_check)
    elif node.format == "float":
        made.append(_float_check)
    elif node.format in FORMATS:
        made.append(_format_check(node.format, FORMATS[node.format]))
    if {"minimum", "maximum", "multipleOf"} & bounds.keys():
        made.append(_number_check(bounds))
    if {"minItems", "maxItems", "uniqueItems"} & bounds.keys():
        made.append(_items_check(bounds))
    if "minProperties" in bounds or "maxProperties" in bounds:
        made.append(_properties_check(bounds))
    if "enum" in bounds:
        made.append(_enum_check(bounds["enum"]))
    return made


def _text_check(bounds: dict[str, Any]) -> Check:
    least, most = bounds.get("minLength"), bounds.get("maxLength")
    source = bounds.get("pattern")
    pattern = compile_pattern(source) if source else None

    def check(value: Any, path: Path, out: list[FieldError]) -> None:
        if type(value) is not str:
            return
        if most is not None and len(value) > most:
            out.append(too_long(path_text(path), value, most))
        elif least is not None and len(value) < least:
            _refuse(out, path, value, f"should be at least {least} chars long")
        elif pattern is not None and pattern.search(value) is None:
            _refuse(out, path, value, f"should match '{source}'")

    return check


def _refuse(out: list[FieldError], path: Path, value: Any, rule: str) -> None:
    where = path_text(path)
    out.append(invalid(where, value, f"{where} {_IN_BODY} {rule}"))


def _format_check(name: str, holds: Callable[[str], bool]) -> Check:
    def check(value: Any, path: Path, out: list[FieldError]) -> None:
        if type(value) is str and not holds(value):
            where = path_text(path)
            out.append(type_invalid(where, value, f"{where} {_IN_BODY} must be of type {name}: {format_value(value)}"))

    return check


def _integer_check(name: str) -> Check:
    least, most = INTEGER_RANGES[name]

    def check(value: Any, path: Path, out: list[FieldError]) -> None:
        whole = type(value) is int or (type(value) is float and value.is_integer())
        if type(value) not in (int, float) or (whole and least <= value <= most):
            return
        where = path_text(path)
        if type(value) is int and not _FITS_64[0] <= value <= _FITS_64[1]:
            out.append(type_invalid(where, "float64", f'{where} {_IN_BODY} must be of type {name}: "float64"'))
        out.append(invalid("", "", f"Checked value must be of type integer with format {name} in {where}"))

    return check


def _whole_check(value: Any, path: Path, out: list[FieldError]) -> None:
    if type(value) is int and not _FITS_64[0] <= value <= _FITS_64[1]:
        where = path_text(path)
        out.append(type_invalid(where, "number", f'{where} {_IN_BODY} must be of type integer: "number"'))
        out.append(invalid("", "", f"Checked value must be of type integer (default format) in {where}"))


def _float_check(value: Any, path: Path, out: list[FieldError]) -> None:
    if type(value) in (int, float) and abs(value) > _LARGEST_FLOAT:
        text = f"Checked value must be of type number with format float in {path_text(path)}"
        out.append(invalid("", "", text))


def _number_check(bounds: dict[str, Any]) -> Check:
    least, most, factor = bounds.get("minimum"), bounds.get("maximum"), bounds.get("multipleOf")
    above, below = "exclusiveMinimum" in bounds, "exclusiveMaximum" in bounds

    def check(value: Any, path: Path, out: list[FieldError]) -> None:
        if type(value) not in (int, float):
            return
        if factor is not None and (complaint := _factor_complaint(value, factor)):
            _refuse(out, path, value, complaint)
        if most is not None and (value > most or (below and value == most)):
            shown = _number(int(most) if type(value) is int else most)  # so does Kubernetes, wrong as it is
            _refuse(out, path, value, f"should be less than {'' if below else 'or equal to '}{shown}")
        if least is not None and (value < least or (above and value == least)):
            shown = _number(int(least) if type(value) is int else least)
            _refuse(out, path, value, f"should be greater than {'' if above else 'or equal to '}{shown}")

    return check


def _factor_complaint(value: float, factor: float) -> str:
    if not factor or Decimal(str(value)) % Decimal(str(factor)) == 0:
        return ""
    return f"should be a multiple of {_number(factor)}"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def _items_check(bounds: dict[str, Any]) -> Check:
    least, most, unique = bounds.get("minItems"), bounds.get("maxItems"), bounds.get("uniqueItems")

    def check(value: Any, path: Path, out: list[FieldError]) -> None:
        if type(value) is not list:
            return
        if least is not None and len(value) < least:
            _refuse(out, path, len(value), f"should have at least {least} items")
        if most is not None and len(value) > most:
            out.append(too_many(path_text(path), len(value), most))
        if unique and any(same(item, other) for at, item in enumerate(value) for other in value[:at]):
            _refuse(out, path, value, "shouldn't contain duplicates")

    return check


def _properties_check(bounds: dict[str, Any]) -> Check:
    least, most = bounds.get("minProperties"), bounds.get("maxProperties")

    def check(value: Any, path: Path, out: list[FieldError]) -> None:
        if type(value) is not dict:
            return
        if least is not None and len(value) < least:
            _refuse(out, path, len(value), f"should have at least {least} properties")
        if most is not None and len(value) > most:
            out.append(too_many(path_text(path), len(value), most))

    return check


def _enum_check(allowed: list[Any]) -> Check:
    shown = [item if isinstance(item, str) else format_value(item) for item in allowed]

    def check(value: Any, path: Path, out: list[FieldError]) -> None:
        if not any(_equals(value, item) for item in allowed):
            out.append(not_supported(path_text(path), value, shown))

    return check


def _equals(value: Any, item: Any) -> bool:
    """Equality as kube-apiserver tests it: a number is first converted to the kind of the enum's number."""
    if type(value) is float and type(item) is int:
        return int(value) == item
    if type(value) is int and type(item) is float:
        return float(value) == item
    return same(value, item)
