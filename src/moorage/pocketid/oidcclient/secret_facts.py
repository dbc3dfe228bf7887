"""The snapshot of a client's secrets: from the resource, its Secrets, and what the server lists.

Enters: a snapshot with the client in it, the server's time. Leaves: Secrets for the secret engine. Pure.
"""

from __future__ import annotations

from datetime import datetime

from moorage.core.secret import SecretText
from moorage.pocketid.rest_types import Client

from .render import DIGEST, declared_mark, mark_of, stored
from .rotation import NEVER, anchor_of, due, spacing_of, span_of
from .secret_steps import Mode, Secrets, mode_of, stores
from .secrets import present, resolve
from .seen import Seen
from .types import REGENERATE
from .wanted import own_id


def with_secrets(seen: Seen, client: Client, server_now: datetime) -> Seen:
    """The snapshot with what is known of the secrets, once the client is known."""
    resource, declared, mode = seen.client, seen.declared, mode_of(seen.client)
    found = stored(resource, seen.kept.live, seen.kept.former)
    spec, status, instance = resource.spec, resource.status, seen.instance
    version = declared.version if declared is not None else ""
    ours = seen.created or (seen.known_id is None and client.id == own_id(seen))
    pending = bool(status.initial_secret_pending) or (ours and mode in (Mode.KEPT, Mode.OWN))
    value = found.value
    if pending and value is not None and not present(value, client.secrets, server_now):
        value = None  # it was of a client that is gone
    mark = found.history.mark
    own = value if mode is Mode.OWN else None
    secrets = Secrets(
        mode=mode,
        held=client.secrets,
        server_now=server_now,
        stored=value,
        stores=stores(resource),
        overlap=NEVER if pending else span_of(spec.client_secret_overlap),
        declared=declared.value if declared is not None and not declared.fault else None,
        changed=version not in (status.client_secret_source_version, seen.pushed_version),
        asked=seen.annotations.get(REGENERATE) == "true",
        pending=pending,
        altered=own is not None and _is_altered(own, mark, client, server_now),
        known=_known(mark, version) if mode is Mode.DECLARED else "",
        rotation=due(
            seen.now,
            anchor_of(found.history.rotated_at, resource.metadata.creation_timestamp or ""),
            spec.client_secret_rotation,
            seen.settings.zone,
            spacing_of(instance.last_rotated if instance else None, instance.least_spacing if instance else None),
        ),
    )
    return seen.after(secrets=secrets, history=found.history)


def _is_altered(value: SecretText, mark: str, client: Client, server_now: datetime) -> bool:
    """Whether it looks like the secret that we marked, and is another text; what begins like another secret is a person's own choice."""
    found = resolve(value, client.secrets, server_now) if mark else None
    return found is not None and mark.startswith(f"{found.id} {DIGEST}") and mark != mark_of(found.id, value)


def _known(mark: str, version: str) -> str:
    """The id that the mark proves, of the declared value of this revision."""
    id = mark.partition(" ")[0]
    return id if mark == declared_mark(id, version) else ""
