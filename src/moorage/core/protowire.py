"""Fields of a protobuf message, by number. Pure.

Enters: bytes. Leaves: (field number, value), numbers for varints, bytes for everything else. It must not know messages.
Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in order.

    Raises:
        ValueError: the bytes end within a field, or hold a group.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"proto: illegal wireType {wire}")
        if at + size > end:
            raise ValueError("unexpected EOF")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
