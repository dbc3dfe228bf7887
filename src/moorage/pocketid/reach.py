"""From a PocketIDInstance to its server: what the status says of it, and a client with its API key.

Enters: the world and an instance as it stands on the wire. Leaves: Facts, a REST client, or one sentence why there is none. It asks the
server nothing. Shared memory (lists of a moment ago) belongs to a world and is empty after a restart.
Source: spec/pocketid.md 1.6, 2.1, 3.3; contracts of issue 5.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from moorage.core import conditions
from moorage.core.meta import JsonObject, Key, controller_of, is_terminating, key_of
from moorage.core.secret import SecretText
from moorage.kube.resources import SECRETS
from moorage.net.sessions import Sessions
from moorage.runtime.world import World

from . import metrics
from .instance.types import KEY_SUFFIX, KEY_TOKEN
from .instance.types import KIND as INSTANCE
from .listings import Listing
from .references import LEAVE, READY
from .rest import Access, Api, Client, Feature, Group, PocketID, Server, User, Version, nfc
from .rest_rows import as_it_was_kept
from .rest_version import LACKED_FOR, Support
from .selection import is_told_of
from .weights import Scale, Weights

_A_DAY: Final = timedelta(days=1)
_END: Final = "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Facts:
    """What other rooms need to know of an instance.

    Args:
        url: where we reach it; "" while that is not known.
        issuer: what its tokens name; without a trailing slash.
        ready: Ready is True, and of this address; `why` is the condition's message otherwise.
        version: as it last said; None before the first look.
        least_spacing, last_rotated: of scheduled rotations, as spec and status hold them.
        leaves: what belongs to it stays at the server, whatever is deleted.
    """

    key: Key
    url: str
    issuer: str
    ready: bool
    why: str
    version: Version | None
    terminating: bool = False
    least_spacing: str | None = None
    last_rotated: str | None = None
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class NotReachable:
    """There is no API client, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What the server made of a grant on an API for a client that was public or not, and until when it is not sent again."""

    public: bool
    sent: Access
    granted: Access
    until: datetime


@dataclass
class Lists:
    """What all passes share of one server.

    `skew`: how far its clock is ahead of ours. `lacks`: features that the server of `version` turned out not to have, and when. `refused`: logo URLs that it refused, and until
    when they are not tried again. `narrowed`: grants by client and API. `takers`: uid and key of the resource whose pass
    makes or adopts a client, by its id or name, from then until its status tells: of two passes at once the second one must not take it, too. `pushed`: by
    uid the mark of the declared secret that was pushed last; a digest of what a person chose is nowhere but here.
    """

    clients: Listing[Client] = field(default_factory=lambda: Listing(lambda client: nfc(client.name), as_it_was_kept))
    groups: Listing[Group] = field(default_factory=Listing)
    apis: Listing[Api] = field(default_factory=Listing)
    users: Listing[User] = field(default_factory=Listing)
    skew: timedelta = timedelta(0)
    lacks: dict[Feature, datetime] = field(default_factory=dict)
    version: Version | None = None
    refused: dict[str, datetime] = field(default_factory=dict)
    narrowed: dict[tuple[str, str], Narrowed] = field(default_factory=dict)
    takers: dict[str, tuple[str, Key]] = field(default_factory=dict)
    pushed: dict[str, str] = field(default_factory=dict, repr=False)
    scale: Scale = field(default_factory=lambda: Weights().of(""), repr=False)

    def lacking(self, version: Version | None, now: datetime) -> dict[Feature, datetime]:
        """What a server of this version turned out not to have, and when: forgotten with the version; against the version's word it counts for an hour.

        Args:
            version: of an instance that is Ready; another one, which was never let in, knows nothing of the server. None: it does not tell, and
                nothing is forgotten.
        """
        if version not in (None, self.version):
            self.version = version
            self.lacks.clear()
        return {
            feature: since
            for feature, since in self.lacks.items()
            if now < since + LACKED_FOR or version is None or version.supports(feature) is not Support.YES
        }

    def let_go(self) -> None:
        """Keep no list."""
        for listing in (self.clients, self.groups, self.apis, self.users):
            listing.let_go()

    def release(self, uid: str) -> None:
        """The resource takes nothing: it is held back, or its status tells by now what it has."""
        for claim in [claim for claim, (taker, _) in self.takers.items() if taker == uid]:
            del self.takers[claim]

    def clock(self, remote: PocketID, now: datetime) -> datetime:
        """The server's time by its latest answer, else by what was known of its clock; no clock is a day wrong."""
        if remote.date is not None and abs(remote.date - now) < _A_DAY:
            self.skew = remote.date - now
        return now + self.skew


class Memory:
    """What a process remembers of all servers that PocketIDInstances name.

    Args:
        instances: those of all namespaces, as they stand now.
    """

    def __init__(self, instances: Callable[[], Iterable[JsonObject]]) -> None:
        self._instances = instances
        self._servers: dict[str, Lists] = {}
        self._weights = Weights(users=self._users)

    def of(self, url: str) -> Lists:
        """What it remembers of one; with a new one goes what nobody names any more."""
        if url not in self._servers:
            self.tidy()
            scale = self._weights.of(url)
            found = self._servers[url] = Lists(scale=scale)
            scale.let_go = found.let_go
        return self._servers[url]

    def tidy(self) -> None:
        """Forget the servers that nobody names any more: deleted, or at another address."""
        named = {facts_of(item).url for item in self._instances()}
        for url in self._servers.keys() - named:
            self._weights.forget(url)
            del self._servers[url]

    def _users(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for facts in map(facts_of, self._instances()):
            if facts.ready:
                found.setdefault(facts.url, set()).add(facts.key.namespace)
        return found


_MEMORIES: Final[WeakKeyDictionary[Sessions, Memory]] = WeakKeyDictionary()


def facts_of(instance: JsonObject) -> Facts:
    """What the wire object says."""
    spec, status = instance["spec"], instance.get("status") or {}
    ready = conditions.find(conditions.from_wire(status.get("conditions")), READY)
    url, told = (spec.get("external") or {}).get("url") or status.get("url") or "", is_told_of(instance)
    return Facts(
        key=key_of(instance),
        url=url.rstrip("/"),
        issuer=(spec.get("appUrl") or url).rstrip("/"),
        ready=ready is not None and ready.is_true and told,
        why=ready.message if ready is not None and told else "it was not looked at yet",
        version=Version.of(status["version"]) if status.get("version") else None,
        terminating=is_terminating(instance),
        least_spacing=(spec.get("OIDCClientRotation") or {}).get("minSpacing"),
        last_rotated=status.get("lastRotatedClientSecret"),
        leaves=(instance["metadata"].get("annotations") or {}).get(LEAVE) == "true",
    )


def key_source(instance: JsonObject) -> tuple[Key, str]:
    """The Secret with the API key, and the key of its data."""
    external, name = instance["spec"].get("external"), instance["metadata"]["name"]
    namespace = instance["metadata"]["namespace"]
    if external is not None:
        ref = external["apiKeySecretRef"]
        return Key(namespace, ref["name"]), ref["key"]
    stored = (instance.get("status") or {}).get("staticApiKeySecretName")
    return Key(namespace, stored or f"{name}{KEY_SUFFIX}"), KEY_TOKEN


def keeper_of(world: World, secret: JsonObject) -> str:
    """Why a Secret is not read for clients and users: an instance keeps its keys in it; "" when none does.

    Else whoever may write clients, and not read Secrets, could have the administrator's key sent to a server of theirs.
    """
    namespace, owner = secret["metadata"].get("namespace", ""), controller_of(secret)
    named = [item for item in world.cache.list(INSTANCE.resource, namespace) if key_source(item)[0] == key_of(secret)]
    if not named and (owner is None or owner.kind != INSTANCE.kind):
        return ""
    name = named[0]["metadata"]["name"] if named else owner.key.name if owner else ""
    return f"Secret {secret['metadata']['name']} holds keys of PocketIDInstance {name}; name another Secret"


def reach(world: World, instance: JsonObject) -> PocketID | NotReachable:
    """A client for one pass, with the API key as the Secret holds it now."""
    facts = facts_of(instance)
    if not facts.url:
        return NotReachable("the address of the server is not known yet")
    source, name = key_source(instance)
    secret = world.cache.get(SECRETS, source)
    if secret is None:
        return NotReachable(f"Secret {source} with the API key does not exist")
    api_key = data_text(secret, name)
    if not api_key:
        return NotReachable(f"key {name} of Secret {source} is missing, empty or no UTF-8 text; it holds the API key")
    certificate, own = _certificate(world, instance), _serves_tls(instance)
    if own and certificate is None:
        return NotReachable("the Secret that spec.tls names holds no certificate under tls.crt")
    server = Server(facts.url, SecretText(api_key), certificate, own)
    return PocketID(world.http.calls, server, metrics.called, lists_of(world, facts.url).scale)


def _serves_tls(instance: JsonObject) -> bool:
    """Whether a server that we deployed speaks TLS itself."""
    return instance["spec"].get("external") is None and instance["spec"].get("tls") is not None


def _certificate(world: World, instance: JsonObject) -> bytes | None:
    """The certificate that a server of ours shows: it alone is trusted, by whatever name, since nobody else has its key."""
    if not _serves_tls(instance):
        return None
    named = Key(instance["metadata"]["namespace"], instance["spec"]["tls"]["secretRef"]["name"])
    secret = world.cache.get(SECRETS, named)
    text = data_text(secret, "tls.crt") if secret is not None else ""
    own, end, _ = text.partition(_END)
    return f"{own}{end}\n".encode() if end else None


def lists_of(world: World, url: str) -> Lists:
    """The shared lists of a server."""
    return _memory(world).of(url)


def forget_unnamed(world: World) -> None:
    """An instance is gone: what is remembered of servers that no other names goes, too."""
    _memory(world).tidy()


def _memory(world: World) -> Memory:
    if world.http not in _MEMORIES:
        _MEMORIES[world.http] = Memory(partial(world.cache.list, INSTANCE.resource))
    return _MEMORIES[world.http]


def data_text(secret: JsonObject, name: str, *, whole: bool = False) -> str:
    """A value of a Secret; "" when it is absent or no base64.

    Args:
        whole: the value as it is, with what is no UTF-8 replaced; else without trailing line ends, and "" when it is no UTF-8.
    """
    try:
        raw = base64.b64decode((secret.get("data") or {}).get(name) or "")
        return raw.decode(errors="replace") if whole else raw.decode().rstrip("\r\n")
    except (ValueError, binascii.Error):
        return ""
