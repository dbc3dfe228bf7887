"""How `podTemplate`, `serviceTemplate` and `route.template` are laid over what we make: as `kubectl patch` lays a patch.

Enters: a wire object and a person's fields for it. Leaves: a new object. Containers, volumes and variables merge by their names, null takes a
field away. Pure but for the one reading of Kubernetes' schemas, which come with this package.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from moorage.apiserver.patcherror import PatchError
from moorage.apiserver.strategic import strategic_merge
from moorage.core.meta import JsonObject

POD_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
SERVICE: Final = "io.k8s.api.core.v1.Service"
PLAIN: Final = ""
"""Of a kind that is no built-in: maps merge, lists are replaced."""


class TemplateFault(ValueError):
    """Fields that cannot be laid over what we make; the text says why."""


def merged(base: JsonObject, patch: JsonObject | None, form: str) -> JsonObject:
    """The object with the patch over it.

    Raises:
        TemplateFault: it does not fit, such as a container without a name.
    """
    if not patch:
        return base
    known = _schemas() if form else {}
    try:
        return strategic_merge(base, patch, known.get(form, {}), known)
    except PatchError as error:
        raise TemplateFault(_why(error.message)) from None


def _why(said: str) -> str:
    """The refusal without what the template holds, which may be secret."""
    _, found, key = said.rpartition("declared merge key: ")
    return f"an item of a list lacks {key}, by which such items are told apart" if found else "it has an unknown $patch"


@lru_cache(maxsize=1)
def _schemas() -> dict[str, JsonObject]:
    found: Any = json.loads((files("moorage.apiserver") / "data" / "schemas.json").read_bytes())
    return dict(found)
