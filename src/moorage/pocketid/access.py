"""What the Pocket-ID rooms may do with other people's resources: the RBAC rules of the operator.

Source: spec/pocketid.md 6.4. Secrets are read where a resource names them and written as our children; an external server needs no more.
"""

from __future__ import annotations

from typing import Final

from moorage.runtime.install import Access

ACCESS: Final = (
    Access("", ("secrets",), ("get", "list", "watch", "create", "patch", "update", "delete")),
    Access("", ("configmaps",), ("get",)),
)
