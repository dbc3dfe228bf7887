"""What a backend's projection is made from besides its declaration: Secrets, the provider's metadata, the public address.

Enters: nothing. Leaves: frozen values that `observe.py` fills and `render.py` reads. It fetches and decodes nothing itself, and no
value of it is ever printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

DOCUMENT_LIMIT: Final = 262144
"""Bytes of a metadata document at most, whatever its source."""
Data: TypeAlias = Mapping[str, bytes]


class Fault(NamedTuple):
    """Why a backend is skipped; its siblings are not. `message` names the object, the rule and the fix, never a value.

    `pending`: nobody needs to do anything, what is missing comes by itself.
    """

    reason: str
    message: str
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """Accepted metadata of a provider: an OIDC discovery document or one SAML EntityDescriptor.

    Args:
        content: the bytes that the sidecar reads.
        introspection_endpoint: of an OIDC provider, "" when it names none.
        ports: TCP ports of the provider's endpoints that the sidecar itself connects to.
        fetched: when it was fetched, None for a declared one.
        valid_until: when the document itself, or its last signing certificate, ends; None when neither says so.
        stale: a newer fetch failed, this is the last good one.
        why: why it is stale, one sentence without foreign text; "" when it is not.
        expires: when the document itself must not be used any more; documents.py refuses it from then on.
        max_age: how long the provider lets others keep it, None when it does not say.
    """

    content: bytes = field(repr=False)
    introspection_endpoint: str = ""
    ports: frozenset[int] = frozenset()
    fetched: datetime | None = None
    valid_until: datetime | None = None
    stale: bool = False
    why: str = ""
    expires: datetime | None = None
    max_age: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Materials:
    """All that a projection needs.

    Args:
        secrets: decoded data of every Secret that the backend names (and of `<keystone>-saml-sp`), by name; None: it does not exist.
        base: public URL of the Keystone without `/v3` and without a final slash; "" while it is not known.
        document: the provider's metadata; a Fault says why there is none (also "not fetched yet"). None for LDAP.
    """

    secrets: Mapping[str, Data | None] = field(default_factory=dict, repr=False)
    base: str = ""
    document: Document | Fault | None = None
