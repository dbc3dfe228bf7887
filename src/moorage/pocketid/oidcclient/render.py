"""The credentials Secret, whole: keys, labels, annotations, owner; and what a Secret of ours tells about the past.

Enters: the client, what the pass found out, the live Secret. Leaves: the manifest that replaces it, or why it cannot be written. Pure. Data is
replaced as a whole; of labels only ours are taken away again; annotations are exactly ours and the declared ones. A Secret that this client
does not control is never read, written or deleted. Source: seed 004, Credentials Secret; spec/pocketid.md 1.6, 1.8, 1.9, 3.11.10.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from moorage.calling import wire
from moorage.core.cron import EPOCH
from moorage.core.digest import concealed_digest
from moorage.core.meta import JsonObject, Key, Ref, controlled_by, owner_reference, owners_of
from moorage.core.secret import SecretText
from moorage.pocketid.references import GROUP, MANAGED_BY, OPERATOR

from .rotation import moment, stamp
from .secrets import Trigger
from .types import KIND, PocketIDOIDCClient
from .types_access import ApiAccess
from .types_status import Credentials

ROTATED_AT: Final = f"{GROUP}/last-rotated-at"
SCHEDULED_AT: Final = f"{GROUP}/last-scheduled-rotation-at"
VALUE_KEY: Final = f"{GROUP}/client-secret-key"
"""Name of the key that holds the client secret: a rename finds the value under it."""
LABELS: Final = f"{GROUP}/additional-labels"
"""Names of the declared labels: those that are declared no more are taken away."""
MARK: Final = f"{GROUP}/client-secret-mark"
"""Which secret of the server the value is, and by what that is known: four characters do not tell it, and a value may be cut or changed later."""
DIGEST: Final = "digest:"
_OURS: Final = frozenset({ROTATED_AT, SCHEDULED_AT, VALUE_KEY, LABELS, MARK})
_LONGEST_KEY: Final = 253
_ENDPOINTS: Final = {
    "issuer_url": "",
    "discovery_url": "/.well-known/openid-configuration",
    "authorization_url": "/authorize",
    "token_url": "/api/oidc/token",
    "userinfo_url": "/api/oidc/userinfo",
    "jwks_url": "/.well-known/jwks.json",
    "end_session_url": "/api/oidc/end-session",
}


@dataclass(frozen=True, slots=True)
class History:
    """When the secret was last made, and last made on schedule, and its mark: the texts of the annotations, which may be unreadable."""

    rotated_at: str | None = None
    scheduled_at: str | None = None
    mark: str = ""

    def after(self, trigger: Trigger, now: datetime) -> History:
        """A declared value is no rotation: the anchor stays where it was."""
        if trigger is Trigger.DECLARED:
            return self
        return History(stamp(now), stamp(now) if trigger is Trigger.SCHEDULED else self.scheduled_at)


@dataclass(frozen=True, slots=True)
class Stored:
    """What Secrets of ours hold: the client secret under whatever key and name it stands, and its history."""

    value: SecretText | None = None
    history: History = History()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the pass found out. `value`: what is presented. `audiences`: the audience of each PocketIDAPI that could be read. `mark`: of the value."""

    client_id: str
    issuer: str
    value: SecretText | None
    history: History = History()
    audiences: Mapping[Key, str] = field(default_factory=dict)
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the Secret is not written, in a sentence with the remedy."""

    reason: str
    message: str


# --- what is there


def stored(client: PocketIDOIDCClient, live: JsonObject | None, former: JsonObject | None = None) -> Stored:
    """What is stored; of two Secrets that hold a value, the one made later.

    `former` is the Secret of the name that `status.credentials` records, when the spec has another one now.
    """
    ours = [item for item in (live, former) if item is not None and owned(item, client)]
    holding = [(item, value) for item in ours if (value := _value(item, client))]
    if holding:
        newest, value = max(holding, key=lambda pair: moment(_history(pair[0]).rotated_at) or EPOCH)
        return Stored(value, _history(newest))
    return Stored(None, next((found for item in ours if (found := _history(item)) != History()), History()))


def owned(secret: JsonObject, client: PocketIDOIDCClient) -> bool:
    """Whether the client is its controller; the label alone proves nothing."""
    return controlled_by(secret, client.metadata.uid) or _has_lost_owner(secret, client)


def _has_lost_owner(secret: JsonObject, client: PocketIDOIDCClient) -> bool:
    """Whether it is the Secret that we wrote last, whose owner a restore or an edit took away: nobody owns it, and it names our client."""
    recorded, id = client.status.credentials, client.status.client_id
    if owners_of(secret) or not _is_labelled(secret) or recorded is None or id is None:
        return False
    known = _decoded((secret.get("data") or {}).get(client.spec.credentials.key_names.client_id))
    return recorded.secret_name == secret["metadata"]["name"] and known == SecretText(id)


def _is_labelled(secret: JsonObject) -> bool:
    return bool((secret["metadata"].get("labels") or {}).get(MANAGED_BY) == OPERATOR)


def removable(secret: JsonObject, client: PocketIDOIDCClient) -> bool:
    """Whether a Secret that is switched off, or left behind by a rename, may be deleted: label and owner are ours."""
    return _is_labelled(secret) and owned(secret, client)


def _value(secret: JsonObject, client: PocketIDOIDCClient) -> SecretText | None:
    data = secret.get("data") or {}
    return _decoded(data.get(_value_key(secret, client)))


def _value_key(secret: JsonObject, client: PocketIDOIDCClient) -> str:
    """The key of the value: as the Secret says, else the status, else the spec; a key may have been given to something else since."""
    if name := _annotations(secret).get(VALUE_KEY):
        return name
    recorded = client.status.credentials
    if recorded and recorded.client_secret_key and recorded.secret_name == secret["metadata"]["name"]:
        return recorded.client_secret_key
    return client.spec.credentials.key_names.client_secret


def _history(secret: JsonObject) -> History:
    found = _annotations(secret)
    return History(found.get(ROTATED_AT), found.get(SCHEDULED_AT), found.get(MARK, ""))


def mark_of(id: str, value: SecretText) -> str:
    """The mark of a value that the server made, as long and as random as a key: a digest tells nothing of it."""
    return f"{id} {DIGEST}{concealed_digest(value.reveal(), id.encode())}"


def _annotations(secret: JsonObject) -> Mapping[str, str]:
    found: Mapping[str, str] = secret["metadata"].get("annotations") or {}
    return found


def _decoded(text: str | None) -> SecretText | None:
    """Bytes that are no text become characters that no client secret has, so that they match none."""
    if not text:
        return None
    try:
        return SecretText(base64.b64decode(text, validate=True).decode(errors="replace"))
    except (binascii.Error, ValueError):
        return SecretText("\ufffd")


# --- what is wanted


def render(client: PocketIDOIDCClient, facts: Facts, live: JsonObject | None) -> JsonObject | Refused:
    """The Secret that takes the place of `live`, or is created."""
    if live is not None and not owned(live, client):
        return Refused("ForeignSecret", foreign(client))
    data = _contents(client, facts, live)
    if isinstance(data, Refused):
        return data
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(client, facts, live),
        "type": "Opaque",
        "data": {key: base64.b64encode(data[key].encode()).decode() for key in sorted(data)},
    }


def differs(live: JsonObject | None, wanted: JsonObject) -> bool:
    """Whether the wanted Secret has to be written."""
    if live is None:
        return True
    mine, theirs = wanted["metadata"], live["metadata"]
    parts = ("labels", "annotations", "ownerReferences")
    return (live.get("data") or {}) != wanted["data"] or any(
        (theirs.get(part) or {}) != (mine[part] or {}) for part in parts
    )


def recorded(client: PocketIDOIDCClient, facts: Facts) -> Credentials:
    """`status.credentials` once the Secret is written."""
    wanted = client.spec.credentials
    return Credentials(
        secret_name=client.secret_name,
        client_secret_key=wanted.key_names.client_secret if facts.value else None,
        labels=tuple(sorted(wanted.additional_labels or {})),
    )


def foreign(client: PocketIDOIDCClient) -> str:
    """That the wanted name is somebody else's, and the remedy."""
    return (
        f"Secret {client.secret_name} exists and does not belong to this client; it is left alone."
        " Set spec.secret.name to another name; if nobody needs that Secret, delete it"
    )


def _metadata(client: PocketIDOIDCClient, facts: Facts, live: JsonObject | None) -> JsonObject:
    meta = client.metadata
    before = live["metadata"] if live else {}
    owner = owner_reference(Ref(KIND.resource.api_version, KIND.kind, Key(meta.namespace, meta.name), meta.uid))
    others = [item for item in before.get("ownerReferences") or () if item.get("uid") != meta.uid]
    kept = {name: before[name] for name in ("uid", "resourceVersion", "finalizers") if before.get(name)}
    return {
        "name": client.secret_name,
        "namespace": meta.namespace,
        **kept,
        "labels": _labels(client, before),
        "annotations": _wanted_annotations(client, facts),
        "ownerReferences": [*others, owner],
    }


def _labels(client: PocketIDOIDCClient, before: JsonObject) -> dict[str, str]:
    """Labels of others stay; those that were declared and are no more go."""
    status = client.status.credentials
    declared = set(((before.get("annotations") or {}).get(LABELS) or "").split(","))
    declared |= set(status.labels if status and status.secret_name == client.secret_name else ())
    kept = {name: value for name, value in (before.get("labels") or {}).items() if name not in declared}
    return {**kept, **(client.spec.credentials.additional_labels or {}), MANAGED_BY: OPERATOR}


def _wanted_annotations(client: PocketIDOIDCClient, facts: Facts) -> dict[str, str]:
    wanted = client.spec.credentials
    own = {
        ROTATED_AT: facts.history.rotated_at,
        SCHEDULED_AT: facts.history.scheduled_at,
        VALUE_KEY: wanted.key_names.client_secret if facts.value else None,
        LABELS: ",".join(sorted(wanted.additional_labels or {})),
        MARK: facts.mark,
    }
    declared = {name: text for name, text in (wanted.additional_annotations or {}).items() if name not in _OURS}
    return {**declared, **{name: text for name, text in own.items() if text}}


def _contents(client: PocketIDOIDCClient, facts: Facts, live: JsonObject | None) -> dict[str, str] | Refused:
    """The data; two values of one key, or a key that is too long, are an error and never a silent choice."""
    found: dict[str, str] = {}
    for key, value in (*_plain(client, facts), *_apis(client, facts, live)):
        if key in found or len(key) > _LONGEST_KEY:
            why = "would hold two values" if key in found else f"has more than {_LONGEST_KEY} characters"
            text = f"key {key} of the credentials Secret {why}; change spec.secret.keys or the names in spec.apiAccess"
            return Refused("SecretReconcileError", text)
        found[key] = value
    return found


def _plain(client: PocketIDOIDCClient, facts: Facts) -> Iterator[tuple[str, str]]:
    spec, keys = client.spec, client.spec.credentials.key_names
    yield keys.client_id, facts.client_id
    if facts.value:
        yield keys.client_secret, facts.value.reveal()
    if spec.callback_urls is not None:
        yield keys.callback_urls, _array(spec.callback_urls)
    if spec.logout_callback_urls is not None:
        yield keys.logout_callback_urls, _array(spec.logout_callback_urls)
    for name, path in _ENDPOINTS.items():
        yield getattr(keys, name), facts.issuer.rstrip("/") + path


def _array(items: tuple[str, ...]) -> str:
    return wire.dumps(items).decode()


def _apis(client: PocketIDOIDCClient, facts: Facts, live: JsonObject | None) -> Iterator[tuple[str, str]]:
    """A pair for each API; the pair without a suffix only while there is one audience to mean."""
    keys = client.spec.credentials.key_names
    granted = [entry for entry in client.spec.api_access or () if entry.delegates or entry.acts_alone]
    scopes = _scopes(granted, client.metadata.namespace)
    audiences = {key: _audience(key, client, facts, live) for key in scopes}
    for key, wanted in scopes.items():
        yield from _pair(f"{keys.resource}_{key.name}", audiences[key], f"{keys.scopes}_{key.name}", wanted)
    if len(set(audiences.values())) == 1:
        every = dict.fromkeys(scope for wanted in scopes.values() for scope in wanted)
        yield from _pair(keys.resource, next(iter(audiences.values())), keys.scopes, tuple(every))


def _pair(resource: str, audience: str | None, scopes: str, wanted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if audience is not None:
        yield resource, audience
        if wanted:
            yield scopes, " ".join(wanted)


def _scopes(granted: list[ApiAccess], namespace: str) -> dict[Key, tuple[str, ...]]:
    """Client permissions by API, in the order of the spec; entries of one API are merged."""
    found: dict[Key, dict[str, None]] = {}
    for entry in granted:
        key = Key(entry.api_ref.namespace or namespace, entry.api_ref.name)
        found.setdefault(key, {}).update(dict.fromkeys(entry.client_permissions or ()))
    return {key: tuple(permissions) for key, permissions in found.items()}


def _audience(key: Key, client: PocketIDOIDCClient, facts: Facts, live: JsonObject | None) -> str | None:
    """The audience; while an API cannot be read, what the Secret said stays."""
    if (known := facts.audiences.get(key)) is not None:
        return known
    name = f"{client.spec.credentials.key_names.resource}_{key.name}"
    kept = _decoded(((live or {}).get("data") or {}).get(name))
    return kept.reveal() if kept else None
