"""Server-side apply and the tracking of field owners, pure.

Enters: the stored object, the wanted one, and the time as text. Leaves: the new object with its `metadata.managedFields`.
It must not store, validate or default anything.

Order of a write, as Kubernetes has it: decode and default, then `track_update` or (`apply_object`, then default), then
what the kind's strategy does (`prepare_create`, `prepare_update`, addresses and other generated fields), then `settled`.
Fields that the strategy fills in are owned by nobody.
"""

from __future__ import annotations

from moorage.apiserver.apply.merge import ApplyConflict, ApplyInvalid, apply_object
from moorage.apiserver.apply.track import settled, track_update
from moorage.apiserver.apply.types import TypeMap
from moorage.apiserver.apply.values import BadValue

__all__ = ["ApplyConflict", "ApplyInvalid", "BadValue", "TypeMap", "apply_object", "settled", "track_update"]
