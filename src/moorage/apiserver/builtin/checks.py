"""x"""

from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError


def validate_builtin(rt: ResourceType, obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    return []
