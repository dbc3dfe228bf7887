"""Defaulting and validation of PocketIDAPI: what bounds and CEL of `types.py` cannot say.

Enters: an object, its stored form and its siblings. Leaves: the completed object, or a verdict. Pure.
Source: spec/pocketid.md 2.3, 4.8; decisions, Admission 1, 4, 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from moorage.core.meta import JsonObject
from moorage.core.unseen import has_unseen
from moorage.pocketid.api.types import KIND, PocketIDAPI
from moorage.pocketid.judgement import Check, Finding, admission, beside, limit, one_line, selector
from moorage.schema.fielderror import duplicate, invalid
from moorage.schema.review import Review

NAME_LIMIT: Final = 50
KEY_LIMIT: Final = 128
PERMISSION_NAME_LIMIT: Final = 50
DESCRIPTION_LIMIT: Final = 200
"""Characters that Pocket-ID admits of an API's name and of a permission's key, name and description."""
_URI: Final = re.compile(r"(?i)(?!(javascript|data):)[a-z][a-z0-9+.-]*:[^#]")


def normalised(resource: str) -> str:
    """The audience as Pocket-ID keeps it: without slashes at its end."""
    return resource.rstrip("/")


def audience(api: PocketIDAPI, _review: Review) -> Iterator[Finding]:
    """The audience is one word, and is what tokens will carry."""
    resource = api.spec.resource
    if has_unseen(resource) or any(char.isspace() for char in resource):
        yield invalid("spec.resource", resource, "must not contain blanks or control characters")
    elif not normalised(resource):
        yield invalid("spec.resource", resource, "must be more than slashes")
    elif "#" in resource or not _URI.match(resource):
        yield "spec.resource: Pocket-ID wants a URI without a fragment, such as https://api.example.com or urn:example:api: the server will refuse this"
    elif normalised(resource) != resource:
        yield f"spec.resource: Pocket-ID takes slashes at the end away; tokens carry {normalised(resource)}"


def server_limits(api: PocketIDAPI, _review: Review) -> Iterator[Finding]:
    """What only the server refuses is told at once and fails in the pass (decisions, Admission 4)."""
    yield from limits(api)
    yield from one_line("spec.name", api.spec.name)
    for index, item in enumerate(api.spec.permissions or ()):
        yield from one_line(f"spec.permissions[{index}].name", item.name)
        if item.cimd_access and not api.spec.cimd_access:
            yield f"spec.permissions[{index}].cimdAccess: has no effect while spec.cimdAccess is not true"


def limits(api: PocketIDAPI) -> Iterator[str]:
    """What Pocket-ID will refuse of names, keys and descriptions, a sentence each; of a pass it is the error."""
    spec = api.spec
    name = spec.name or api.metadata.name
    path = "spec.name" if spec.name else "metadata.name"
    yield from limit(path, name, NAME_LIMIT)
    if len(name) < 2:
        yield f"{path}: Pocket-ID wants names of at least 2 characters: set spec.name"
    for index, item in enumerate(spec.permissions or ()):
        yield from limit(f"spec.permissions[{index}].key", item.key, KEY_LIMIT)
        yield from limit(f"spec.permissions[{index}].name", item.name, PERMISSION_NAME_LIMIT)
        yield from limit(f"spec.permissions[{index}].description", item.description, DESCRIPTION_LIMIT)


def siblings(api: PocketIDAPI, review: Review) -> Iterator[Finding]:
    """Two resources never claim one audience; the later one is told."""
    for other in beside(review):
        if normalised(other["spec"]["resource"]) == normalised(api.spec.resource):
            detail = f"is claimed by PocketIDAPI {other['metadata']['name']} already"
            yield duplicate("spec.resource", api.spec.resource, detail)


def meets(obj: JsonObject) -> Iterator[str]:
    """The audience."""
    yield normalised(obj["spec"]["resource"])


CHECKS: Final[tuple[Check[PocketIDAPI], ...]] = (audience, server_limits, selector, siblings)
ADMISSION: Final = admission(KIND, CHECKS, meets)
