"""The projection of all attached backends into one set of domain files.

Enters: the backends that name a Keystone, with their Secrets. Leaves: files, and for each backend that is left out the reason.
One bad backend never harms a sibling; the order of the backends never matters. Source: spec/keystone.md 4.5; decisions, Keystone 6.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from moorage.core.meta import JsonObject
from moorage.keystone.backend.render import Fault, project

from .collisions import collisions, ranked
from .seen import Attached

BUDGET: Final = 1024 * 1024
"""Bytes of data that one Secret may hold."""


@dataclass(frozen=True, slots=True)
class Left:
    """A backend that is not projected. `fault`: a person must mend it, so an event says so; `reason`: that of the fault, if any."""

    name: str
    why: str
    fault: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Domains:
    """What is projected: files by data key, the backends behind them, and those that are left out."""

    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    attached: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    total: int = 0


def project_all(backends: Iterable[Attached]) -> Domains:
    """The projection of these backends, by name; terminating ones are left out silently."""
    everyone = ranked(backends)
    ours = [item for item in everyone if item.backend.spec.type == "LDAP" and not item.terminating]
    clashes = collisions(everyone) if ours else {}
    files: dict[str, bytes] = {}
    attached: list[str] = []
    left: list[Left] = []
    for item in ours:
        found = _one(item, clashes)
        if isinstance(found, Left):
            left.append(found)
        elif (size := _size(files) + _size(found)) > BUDGET:
            left.append(
                Left(
                    item.name,
                    f"all domain files together would have {size} bytes, at most {BUDGET} fit; who is served already stays",
                    True,
                )
            )
        else:
            files.update(found)
            attached.append(item.name)
    left.sort(key=lambda item: item.name)
    return Domains(files, tuple(sorted(attached)), tuple(left), len(ours))


def _one(item: Attached, clashes: Mapping[str, str]) -> Mapping[str, bytes] | Left:
    if why := clashes.get(item.name):
        return Left(item.name, why, fault=True)
    if not item.domain_ready:
        return Left(item.name, f'domain "{item.domain}" is not ready')
    found = project(item.backend, item.materials)
    if isinstance(found, Fault):
        return Left(item.name, found.message, fault=not found.pending, reason=found.reason)
    return found.files


def _size(files: Mapping[str, bytes]) -> int:
    return sum(map(len, files.values()))


def data_of(secret: JsonObject | None) -> Mapping[str, bytes] | None:
    """The decoded data of a Secret; None when it does not exist, a value that is no base64 is left out."""
    if secret is None:
        return None
    decoded: dict[str, bytes] = {}
    for key, value in (secret.get("data") or {}).items():
        try:
            decoded[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            continue
    return decoded
