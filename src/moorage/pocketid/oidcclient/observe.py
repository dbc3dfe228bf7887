"""Reads everything that one pass over a client needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. Own objects come from the shared cache; Secrets and ConfigMaps that people name are read
uncached and are not watched. At the server a steady pass asks for the shared list, and beside it only for what no list tells.
Source: spec/pocketid.md 3.1 to 3.4; contracts of issue 5.
"""

from __future__ import annotations

from functools import partial

from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.core.secret import SecretText
from moorage.kube.errors import NotFound as NoObject
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.metrics import EXTERNAL_DELETIONS
from moorage.pocketid.reach import NotReachable, data_text, facts_of, keeper_of, lists_of, reach
from moorage.pocketid.rest import PocketID
from moorage.pocketid.selection import NotSelected, bound_instance, is_bound_to, select, trusts
from moorage.pocketid.settings import settings
from moorage.runtime.world import World

from . import metrics
from .lookups import Place, Unknown
from .observe_keys import identities_of
from .observe_references import apis_of, groups_of, listing_groups
from .observe_server import look, look_aside
from .powers import is_another, overreach
from .render import foreign, owned
from .rivals import BY_CLAIM, claims, has_client, rival_of
from .secret_facts import with_secrets
from .secrets import declared_fault, source_version
from .seen import Seen
from .seen_parts import Declared, Kept
from .sizes import excess
from .types import KIND, PocketIDOIDCClient


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one client, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        metrics.forget(key)
        return None
    client = KIND.parse(obj)
    seen = Seen(client, settings(), world.now(), annotations=client.metadata.annotations)
    seen = _with_rival(world, _with_instance(world, seen), obj)
    seen = seen.after(groups=listing_groups(world, seen))
    if seen.terminating or seen.remote is None or seen.held_back:
        return seen
    if seen.instance is None or not seen.instance.ready or seen.client.spec.is_a_way_up or excess(seen.client.spec):
        return seen
    return await _asked(world, await _with_materials(world, seen), seen.remote)


# --- Kubernetes


def _with_instance(world: World, seen: Seen) -> Seen:
    """The instance and the REST client; of a resource on its way out that to which it is bound."""
    instances, bound = world.cache.list(INSTANCE.resource), seen.client.status.instance
    if seen.terminating and bound is not None:
        held = bound_instance(bound, instances)
        if held is not None:
            seen = _reached(world, seen, held).after(trusted=trusts(held, seen.key.namespace))
        return _with_places(world, seen, Key(bound.namespace, bound.name))
    chosen = select(seen.client.spec.instance_selector, seen.key.namespace, instances, bound)
    if isinstance(chosen, NotSelected):
        gone = seen.terminating and not instances
        return seen if gone else seen.after(instance_fault=chosen.why)
    seen = _reached(world, seen, chosen.instance).after(trusted=trusts(chosen.instance, seen.key.namespace))
    return _with_places(world, seen.after(moved=chosen.left is not None), chosen.key)


def _with_places(world: World, seen: Seen, here: Key) -> Seen:
    """Where else the status knows of clients, and how to reach them."""
    status, instances = seen.client.status, world.cache.list(INSTANCE.resource)
    told = [(item.instance, item.client_id or "", bool(item.unproven), False) for item in status.moving or ()]
    if status.instance is not None:
        told.insert(0, (status.instance, status.client_id or "", bool(status.unproven), True))
    places, elsewhere = [], {}
    selected = next((item for item in instances if key_of(item) == here), None)
    for where, id, unproven, home in told:
        if is_bound_to(where, here):
            continue
        obj = bound_instance(where, instances)
        facts = None if obj is None else facts_of(obj)
        if facts is not None and where.url.rstrip("/") not in ("", facts.url):
            facts = None
        trusted = obj is not None and trusts(obj, seen.key.namespace)
        believed = selected is not None and trusts(selected, where.namespace)
        doubted = unproven and not trusted and seen.client.spec.client_id is not None
        believes = obj is not None and trusts(obj, here.namespace)
        places.append(Place(where, id, facts, home, trusted, believed, believes, doubted))
        if obj is not None and not isinstance(remote := reach(world, obj), NotReachable):
            elsewhere[places[-1].key] = remote
    return seen.after(places=tuple(places), elsewhere=elsewhere)


def _reached(world: World, seen: Seen, instance: JsonObject) -> Seen:
    facts, remote = facts_of(instance), reach(world, instance)
    lacks = lists_of(world, facts.url).lacking(facts.version, seen.now) if facts.ready else {}
    if isinstance(remote, NotReachable):
        return seen.after(instance=facts, api_fault=f"PocketIDInstance {facts.key}: {remote.why}")
    return seen.after(instance=facts, remote=remote, lacks=lacks)


def _with_rival(world: World, seen: Seen, obj: JsonObject) -> Seen:
    others = {
        item["metadata"]["uid"]: item
        for claim in claims(obj)
        for item in world.cache.list(KIND.resource, index=BY_CLAIM, value=claim)
    }
    rival = rival_of(obj, others.values(), world.cache.list(INSTANCE.resource))
    seen = seen.after(claimed=partial(_claimant, world, seen, obj))
    if rival is None:
        return seen
    if rival.first and seen.instance is not None:
        lists_of(world, seen.instance.url).release(seen.client.metadata.uid)
    return seen.after(rival=str(rival.key), held_back=rival.first)


def _claimant(world: World, seen: Seen, obj: JsonObject, id: str, at: Key | None = None) -> str | None:
    """The other resource that has the client of that id; of interest only while this one has none.

    Args:
        at: the instance; None: the selected one.
    """
    if seen.known_id is not None or seen.instance is None:
        return None
    instances = world.cache.list(INSTANCE.resource)
    here = next(item for item in instances if key_of(item) == (at or seen.instance.key))
    if at is None and (taker := _taker(world, seen, obj, id)) is not None:
        return taker
    for item in world.cache.list(KIND.resource, index=BY_CLAIM, value=f"id:{id}"):
        if item["metadata"]["uid"] != obj["metadata"]["uid"] and has_client(item, here, instances, id):
            return str(key_of(item))
    return None


def _taker(world: World, seen: Seen, obj: JsonObject, id: str) -> str | None:
    """Another resource whose pass took the client and has not told yet."""
    assert seen.instance is not None
    uid, key = lists_of(world, seen.instance.url).takers.get(id, ("", seen.key))
    item = world.cache.get(KIND.resource, key)
    if item is None or item["metadata"]["uid"] != uid or uid == obj["metadata"]["uid"] or is_terminating(item):
        return None
    status = item.get("status") or {}
    bound = status.get("instance") or {}
    told = (bound.get("namespace"), bound.get("name")) == (seen.instance.key.namespace, seen.instance.key.name)
    return str(key) if not told or status.get("clientID") in (None, id) else None


async def _with_materials(world: World, seen: Seen) -> Seen:
    """What the resource refers to in Kubernetes."""
    client = seen.client
    apis, audiences = apis_of(world, seen)
    return seen.after(
        kept=_kept(world, client),
        declared=await _declared(world, client),
        identities=await identities_of(world, client),
        apis=apis,
        audiences=audiences,
    )


def _kept(world: World, client: PocketIDOIDCClient) -> Kept:
    """The Secret of the wanted name, and that of the recorded one; what is not ours is not looked at further."""
    namespace = client.metadata.namespace
    live = world.cache.get(SECRETS, Key(namespace, client.secret_name))
    recorded = client.status.credentials
    former = None
    if recorded is not None and recorded.secret_name != client.secret_name:
        former = world.cache.get(SECRETS, Key(namespace, recorded.secret_name))
    if former is not None and not owned(former, client):
        former = None
    if live is not None and not owned(live, client):
        why = keeper_of(world, live)
        return Kept(None, former, f"spec.secret.name: {why}" if why else foreign(client))
    return Kept(live, former)


async def _declared(world: World, client: PocketIDOIDCClient) -> Declared | None:
    """The declared secret, read uncached."""
    ref = client.spec.client_secret_ref
    if ref is None:
        return None
    value, revision = None, ""
    try:
        secret = await world.client.get(SECRETS, Key(client.metadata.namespace, ref.name))
    except NoObject:
        secret = {"metadata": {}}
    else:
        if why := keeper_of(world, secret):
            return Declared(None, source_version(ref.name, ref.key, revision), f"clientSecretRef: {why}")
    if ref.key in (secret.get("data") or {}):
        value = SecretText(data_text(secret, ref.key, whole=True))
        revision = secret["metadata"].get("resourceVersion") or ""
    fault = declared_fault(value, f"{ref.name}/{ref.key}", ref.name, client.secret_name)
    return Declared(value, source_version(ref.name, ref.key, revision), fault or "")


# --- Pocket-ID


async def _asked(world: World, seen: Seen, remote: PocketID) -> Seen:
    """The snapshot with what the server says."""
    lists = lists_of(world, remote.url)
    refused = frozenset(url for url, until in lists.refused.items() if until > seen.now)
    seen = seen.after(refused_logos=refused)
    seen = seen.after(groups=await groups_of(world, seen, lists))
    seen = seen.after(look=await look(seen, remote, lists))
    found = seen.found
    if found is None:
        return _doubting(world, seen)
    if (other := seen.claimed(found.id)) is not None:
        return seen.after(rival=other, held_back=True)
    if is_another(seen):
        if not seen.is_doubted:
            EXTERNAL_DELETIONS.labels(KIND.kind).inc()
        seen = seen.after(another=True)
    if overreach(seen):
        return seen
    if seen.known_id == found.id:
        lists.release(seen.client.metadata.uid)
    else:
        lists.takers[found.id] = seen.client.metadata.uid, seen.key
    seen = await look_aside(world, seen, remote)
    seen = seen.after(last_pushed=lists.pushed.get(seen.client.metadata.uid, ""))
    return with_secrets(seen, found, lists.clock(remote, seen.now))


def _doubting(world: World, seen: Seen) -> Seen:
    """A look that nobody answered: the instance is looked at at once, so that one asks for all while the server is down, and tells all when it is back."""
    if isinstance(seen.look, Unknown) and seen.look.after is None and seen.instance is not None:
        world.wake(INSTANCE.resource, seen.instance.key)
    return seen
