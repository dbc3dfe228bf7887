"""Quantities in canonical form, as the server stores them: `0.5` becomes `500m`, `1024Mi` becomes `1Gi`.

Enters: quantities as clients write them. Leaves: text. A value that is no quantity is left alone, for validation to refuse.
Source: apimachinery resource.Quantity, "canonical form".
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity

_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
"""Beyond E there is no suffix, and kube-apiserver writes none: 1e21 bytes are stored as 1. So do we."""
_MOST = (1 << 63) - 1
"""Binary amounts end here; decimal ones do not."""
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def canonical(value: Any) -> Any:
    """The canonical text of a quantity; anything else is returned as it is."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = str(value).strip()
    try:
        number = parse_quantity(text)
    except ValueError:
        return value
    if text.endswith("i") and abs(number) >= 1024 and number == int(number):
        return _binary(min(int(number), _MOST))
    return _decimal(number, exponent=any(sign in text for sign in "eE") and not text.endswith("E"))


def _binary(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power < len(_BINARY) - 1:
        number, power = number // 1024, power + 1
    return f"{number}{_BINARY[power]}"


def _decimal(number: Decimal, *, exponent: bool) -> str:
    if not number:
        return "0"
    scaled, power = int(number.scaleb(9).to_integral_value(rounding="ROUND_UP")), -9
    while scaled % 1000 == 0:
        scaled, power = scaled // 1000, power + 3
    if exponent:
        return f"{scaled}e{power}" if power else str(scaled)
    return f"{scaled}{_DECIMAL.get(power, '')}"


def canonical_values(quantities: JsonObject | None) -> None:
    """Rewrites the values of a resource list in place."""
    for name, value in (quantities or {}).items():
        quantities[name] = canonical(value)  # type: ignore[index]
