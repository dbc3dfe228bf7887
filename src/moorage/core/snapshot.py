"""What passes look at: frozen values, of which each answer of a server makes another.

Enters: changes. Leaves: a copy with them. It is no place for rules.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self


class Snapshot:
    """Base of frozen dataclasses without slots that are copied many times in a pass.

    `derived` names their cached properties, which follow from the fields and are not copied.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def after(self, **changes: Any) -> Self:
        """The snapshot with an answer in it; many times quicker than `dataclasses.replace`."""
        assert changes.keys() <= self.__dataclass_fields__.keys()
        twin = object.__new__(type(self))
        fields = twin.__dict__
        fields.update(self.__dict__)
        for name in self.derived:
            fields.pop(name, None)
        fields.update(changes)
        return twin
