"""One system of kinds, such as Keystone: which folder holds which kind, and what the command line and the operator take from it.

Enters: the package and its folders. Leaves: kinds, admissions, rooms and access, each loaded when first asked for, so that
`moorage lint` never loads the HTTP stack that rooms bring. It knows no kind by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from moorage.runtime.install import Access
    from moorage.runtime.room import Room
    from moorage.schema import Admission, Kind

CONSTANTS: Final = ("ADMISSIONS", "KINDS", "ROOMS", "RULES")


@dataclass(frozen=True)
class System:
    """A package with one folder a kind.

    Args:
        package: dotted name.
        folders: kind to folder, in the order in which kinds are listed and installed.
        access: module of the package whose ACCESS says what the rooms need of other people's resources.
    """

    package: str
    folders: Mapping[str, str]
    access: str

    @cached_property
    def kinds(self) -> tuple[Kind[Any], ...]:
        """The declarations; light."""
        return tuple(self._door(folder, "types").KIND for folder in self.folders.values())

    @cached_property
    def admissions(self) -> tuple[Admission, ...]:
        """How objects are completed and judged."""
        return self.admissions_of(self.folders)

    @cached_property
    def rooms(self) -> tuple[Room[Any, Any], ...]:
        """The controllers."""
        return tuple(self._door(folder, "room").ROOM for folder in self.folders.values() if self._has(folder, "room"))

    @cached_property
    def rules(self) -> tuple[Access, ...]:
        """RBAC of the controllers."""
        found: tuple[Access, ...] = import_module(f"{self.package}.{self.access}").ACCESS
        return found

    def admissions_of(self, kinds: Collection[str]) -> tuple[Admission, ...]:
        """The admissions of these kinds only, so that the others are not loaded; names that are not ours count for nothing."""
        return tuple(
            self._door(folder, "admission").ADMISSION for kind, folder in self.folders.items() if kind in kinds
        )

    def reasons(self, kind: str) -> Mapping[str, Collection[str]]:
        """Conditions of a kind and the reasons that each may have, as its report declares them."""
        folder = self.folders[kind]
        found: Mapping[str, Collection[str]] = (
            self._door(folder, "report").REASONS if self._has(folder, "report") else {}
        )
        return found

    def constant(self, name: str) -> Any:
        """KINDS, ADMISSIONS, ROOMS or RULES, for the package's own `__getattr__`.

        Raises:
            AttributeError: another name, as a module says it.
        """
        if name not in CONSTANTS:
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
        return getattr(self, name.lower())

    def _door(self, folder: str, door: str) -> Any:
        return import_module(f"{self.package}.{folder}.{door}")

    def _has(self, folder: str, door: str) -> bool:
        return find_spec(f"{self.package}.{folder}.{door}") is not None
