"""Snapshots of a Keystone from `given.yaml`: no server, no clock.

`world: settled` stands for passes of before: all children that the given inputs call for live, Jobs are complete, the Deployment has
rolled out. `live` then bends single objects.
"""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from tests.keystone.service import federated

from moorage.core import conditions
from moorage.core.meta import JsonObject, owner_reference
from moorage.core.outcome import Outcome
from moorage.keystone.backend.materials import Document, Materials
from moorage.keystone.backend.render import secret_names
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.key_pair import CERTIFICATE, KEY, Pair
from moorage.keystone.service import federation_secrets, keys, manifests
from moorage.keystone.service.decide import decide
from moorage.keystone.service.domains import data_of
from moorage.keystone.service.plan import (
    Action,
    CommitKeys,
    Create,
    Ensure,
    MakeKeys,
    MakePair,
    MakePassphrase,
    Plan,
    Probe,
    Project,
    Prune,
    Remove,
    StageKeys,
    SwitchPair,
    Tell,
)
from moorage.keystone.service.render import PASSPHRASE, wanted
from moorage.keystone.service.seen import Attached, Health, Inputs, Note, Seen, Step
from moorage.keystone.service.types import KIND, Keystone

OLD = "2026-10-01T00:00:00Z"
NOW = "2026-11-29T12:00:00Z"
BORN = "2026-11-29T11:00:00Z"
UID = "5f1d9e5c-0c0b-4d0e-9d3c-0f8b5e8a7a11"


def load(path: Path) -> dict[str, Any]:
    """One given.yaml; times stay text."""
    found: dict[str, Any] = yaml.load(path.read_text(), Loader=_Loader)
    return found


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag != "tag:yaml.org,2002:timestamp"]
    for first, forms in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def completed(obj: JsonObject) -> JsonObject:
    """The object as the API server stores it: CRD defaults, webhook defaults, uid, generation."""
    from moorage.keystone.service.admission import default

    whole = copy.deepcopy(obj)
    whole.setdefault("apiVersion", KIND.resource.api_version)
    whole.setdefault("kind", KIND.kind)
    KIND.structural.default(whole)
    whole = default(whole)
    KIND.structural.default(whole)
    meta = whole["metadata"]
    whole["metadata"] = {"namespace": "openstack", "uid": UID, "generation": 1, "creationTimestamp": BORN, **meta}
    return whole


def keystone(spec: JsonObject | None = None, **meta: Any) -> Keystone:
    """A completed Keystone named `keystone`; `spec` is laid over the smallest one."""
    base: JsonObject = {
        "image": {"repository": "moorage/keystone", "tag": "30.0.0"},
        "database": {"embedded": {}},
        "bootstrap": {"adminPasswordSecretRef": {"name": "keystone-admin"}},
    }
    return KIND.parse(completed({"metadata": {"name": "keystone", **meta}, "spec": {**base, **(spec or {})}}))


def secret(name: str, data: dict[str, str]) -> JsonObject:
    """`pair: ...` stands for a key pair that can serve."""
    if "pair" in data:
        data = {CERTIFICATE: federated.CRT, KEY: federated.PRIVATE}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "openstack", "uid": f"uid-{name}", "resourceVersion": "7"},
        "data": encoded,
    }


def backend(obj: JsonObject) -> JsonObject:
    """A backend from its short form: {name, domain, url, bind, ready, deleting, conditions that are True besides}, with `type` a federated
    one, or a whole object."""
    if "spec" in obj:
        return obj
    name = obj["name"]
    meta: JsonObject = {"name": name, "namespace": "openstack", "uid": f"uid-{name}", "generation": 1}
    if obj.get("deleting"):
        meta |= {"deletionTimestamp": NOW, "finalizers": ["x"]}
    ready = "True" if obj.get("ready", True) else "False"
    condition = {"type": "DomainReady", "status": ready, "reason": "DomainProvisioned", "lastTransitionTime": BORN}
    ldap: JsonObject = {
        "url": obj.get("url", "ldap://directory.acme.test"),
        "suffix": "dc=acme,dc=test",
        "bindCredentialsSecretRef": {"name": obj.get("bind", "bind")},
        "users": {"treeDN": "ou=people,dc=acme,dc=test"},
        "readOnly": True,
    }
    if obj.get("ca"):
        ldap["tls"] = {"caBundleSecretRef": {"name": obj["ca"]}}
    typed = federated.spec(obj) if obj.get("type", "LDAP") != "LDAP" else {"ldap": ldap}
    if obj.get("annotations"):
        meta["annotations"] = obj["annotations"]
    return {
        "apiVersion": BACKEND.resource.api_version,
        "kind": BACKEND.kind,
        "metadata": meta,
        "spec": {
            "keystoneRef": {"name": "keystone"},
            "type": obj.get("type", "LDAP"),
            "domain": {"name": obj.get("domain", name), "mode": "Manage", "deletionPolicy": "Retain"},
            **typed,
        },
        "status": {"conditions": [{**condition, "message": ""}, *map(_true, obj.get("conditions", ()))]},
    }


def _true(type_: str) -> JsonObject:
    """A condition of the present generation."""
    said = {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": BORN}
    return {**said, "observedGeneration": 1}


def inputs(given: dict[str, Any]) -> Inputs:
    secrets = {item["name"]: secret(item["name"], item["data"]) for item in given.get("secrets", SECRETS)}
    whole = completed(given["keystone"])
    spec = whole["spec"]
    keystone = KIND.parse(whole)
    attached = []
    for item in given.get("backends", ()):
        parsed = BACKEND.parse(backend(item))
        held = {name: data_of(secrets.get(name)) for name in secret_names(parsed)}
        stale = {"stale": True, "why": item["stale"]} if item.get("stale") else {}
        document = federated.document(parsed)
        if isinstance(document, Document):
            document = replace(document, **stale)
        attached.append(Attached(parsed, Materials(held, keystone.public_base, document)))
    return Inputs(
        keystone=keystone,
        database=secrets.get(spec["database"].get("secretRef", {}).get("name", "")),
        admin=secrets.get(spec["bootstrap"]["adminPasswordSecretRef"]["name"]),
        policy=given.get("policy"),
        backends=tuple(attached),
        passphrase=_ours(keystone, secrets.get("keystone-oidc-crypto-passphrase")),
        pair=_ours(keystone, secrets.get("keystone-saml-sp")),
        staged=_ours(keystone, secrets.get("keystone-saml-sp-next")),
    )


def _ours(keystone: Keystone, obj: JsonObject | None) -> JsonObject | None:
    """A Secret as the room made it."""
    if obj is None:
        return None
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner_reference(keystone.ref)]}}


BROUGHT = [
    {"name": "keystone-admin", "data": {"password": "s3cret-admin"}},
    {"name": "keystone-db", "data": {"username": "keystone", "password": "p@ss/w:rd"}},
    {"name": "bind", "data": {"username": "cn=reader,dc=acme,dc=test", "password": "s3cret-bind"}},
    *federated.BROUGHT,
]
"""Secrets that people bring."""
SECRETS = [*BROUGHT, *federated.MADE]
"""Those, and what the room makes beside them for federation."""


def snapshot(given: dict[str, Any]) -> Seen:
    """The snapshot that a given.yaml describes."""
    found = inputs(given)
    now = time(given.get("now", NOW))
    stored = conditions.from_wire(given.get("stored"))
    seen = Seen(inputs=found, wanted=wanted(found), now=now, stored=stored)
    if given.get("world") == "settled":
        past = inputs({**given, **given.get("before", {})})
        before = Seen(
            inputs=past, wanted=wanted(past), now=time(BORN), health=Health(True, "APIHealthy", "", time(BORN))
        )
        before, _ = settle(before)
        seen = replace(seen, live=before.live, done=_LOOKED_AT)
    live = dict(seen.live)
    for obj in (found.passphrase, found.pair, found.staged):
        if obj is not None:
            live["Secret", obj["metadata"]["name"]] = obj
    for change in given.get("live", ()):
        key = (change["kind"], change["name"])
        if change.get("absent"):
            live.pop(key, None)
        else:
            live[key] = bend(live.get(key, {"metadata": {"name": change["name"]}}), change["merge"])
    health = given.get("health")
    if health is not None:
        seen = replace(seen, health=Health(health["ok"], health["reason"], health.get("message", ""), now))
    return replace(seen, live=live)


_LOOKED_AT: frozenset[Step] = frozenset(
    {"DBConnectionSecret", "SPMetadata", "Config", "NetworkPolicy", "Deployment", "Prune", "TrustFlush"}
)
"""Steps that find everything as wanted in a settled world; decide is asked about the rest."""


def bend(obj: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(obj) if isinstance(obj, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = bend(merged.get(name), value)
    return merged


def settle(seen: Seen, *, rounds: int = 60) -> tuple[Seen, Outcome]:
    """Passes until nothing is left to do, on an imagined server where Jobs succeed and pods become ready at once."""
    for _ in range(rounds):
        answer = decide(seen)
        if not isinstance(answer, Plan):
            return seen, answer
        seen = imagine(seen, answer)
    raise AssertionError("no end")


def imagine(seen: Seen, plan: Plan) -> Seen:
    """What an ideal server answers to a plan."""
    written: dict[tuple[str, str], JsonObject | None] = {}
    health = seen.health
    notes = [Note(item.reason, item.message, True) for item in plan.actions if isinstance(item, Tell)]
    for action in plan.actions:
        if isinstance(action, Probe):
            health = Health(True, "APIHealthy", "", seen.now)
        else:
            _act(seen, action, written)
    return replace(_informed(seen.after(plan.step, written)), health=health, notes=(*seen.notes, *notes))


def _informed(seen: Seen) -> Seen:
    """As `apply` does it."""
    found = federation_secrets.renewed(seen)
    return seen if found is seen.inputs else replace(seen, inputs=found, wanted=wanted(found))


def _act(seen: Seen, action: Action, written: dict[tuple[str, str], JsonObject | None]) -> None:
    match action:
        case Ensure(resource, manifest) | Create(resource, manifest):
            old = seen.child(resource, manifest["metadata"]["name"])
            written[_id(manifest)] = _stored(manifest, old)
        case Remove(resource, live):
            written[resource.kind, live["metadata"]["name"]] = None
        case MakeKeys(name):
            made = manifests.secret(seen.keystone, name.removeprefix(f"{seen.name}-"), keys.initial(key(0), key(1)))
            written[_id(made)] = _stored(made, None)
        case StageKeys(name, most, repository):
            present = keys.keys_of(repository)
            staged = keys.rotate(present, key(100 + keys.primary(present)), most)
            made = manifests.secret(seen.keystone, f"{name.removeprefix(f'{seen.name}-')}-rotation", staged)
            made["metadata"]["annotations"] = {keys.ROTATES: keys.version_of(repository)}
            written[_id(made)] = _stored(made, None)
        case CommitKeys(repository, staging, staged_keys):
            encoded = secret("", dict(staged_keys))["data"]
            done = bend(repository, {"metadata": {"annotations": {keys.ROTATED_AT: f"{seen.now:%Y-%m-%dT%H:%M:%SZ}"}}})
            done = {**done, "data": encoded}
            done["metadata"]["resourceVersion"] = str(int(done["metadata"]["resourceVersion"]) + 1)
            written["Secret", done["metadata"]["name"]] = done
            written["Secret", staging["metadata"]["name"]] = None
        case MakePassphrase(name):
            made = manifests.secret(seen.keystone, name.removeprefix(f"{seen.name}-"), {PASSPHRASE: "made"})
            written[_id(made)] = _stored(made, None)
        case MakePair(name):
            pair = Pair(federated.CRT.encode(), federated.PRIVATE.encode())
            made = manifests.key_pair(seen.keystone, name.removeprefix(f"{seen.name}-"), pair)
            written[_id(made)] = _stored(made, None)
        case SwitchPair(present, staged):
            written["Secret", present["metadata"]["name"]] = {**present, "data": staged["data"]}
            written["Secret", staged["metadata"]["name"]] = None
        case Project() | Prune() | Probe() | Tell():
            return


def key(number: int) -> str:
    """A key of the test, the same on each run."""
    return base64.urlsafe_b64encode(bytes([number % 256]) * 32).decode()


def _id(manifest: JsonObject) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _stored(manifest: JsonObject, old: JsonObject | None) -> JsonObject:
    """The manifest as a server keeps it, with the status of a machine where all goes well."""
    generation = (old or {}).get("metadata", {}).get("generation", 0) + 1 if old is not None else 1
    if old is not None and {**old, "metadata": 0, "status": 0} == {**manifest, "metadata": 0, "status": 0}:
        return old
    stored = copy.deepcopy(manifest)
    stored["metadata"] |= {
        "uid": f"uid-{manifest['kind']}-{manifest['metadata']['name']}",
        "resourceVersion": "1",
        "generation": generation,
        "creationTimestamp": BORN,
    }
    if manifest["kind"] == "Job":
        stored["status"] = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": BORN}]}
    if manifest["kind"] == "Deployment":
        n = manifest["spec"]["replicas"]
        stored["status"] = {
            "observedGeneration": generation, "replicas": n, "updatedReplicas": n, "readyReplicas": n,
            "availableReplicas": n,
        }  # fmt: skip
    return stored


def described(plan: Plan) -> JsonObject:
    """A plan without the content of its manifests, as cases show it."""
    return {"step": plan.step, "actions": [_described(action) for action in plan.actions]}


def _described(action: Action) -> str:
    match action:
        case Ensure(resource, manifest) | Create(resource, manifest) | Project(resource, manifest):
            return f"{type(action).__name__} {resource.kind} {manifest['metadata']['name']}"
        case Remove(resource, live, propagation):
            return f"Remove {resource.kind} {live['metadata']['name']} ({propagation})"
        case Prune(resource, base, _, keep):
            return f"Prune {resource.kind} {base} keep {keep}"
        case StageKeys(name, most, _):
            return f"StageKeys {name} at most {most}"
        case MakeKeys(name):
            return f"MakeKeys {name}"
        case CommitKeys(repository, _, _):
            return f"CommitKeys {repository['metadata']['name']}"
        case MakePassphrase(name) | MakePair(name):
            return f"{type(action).__name__} {name}"
        case SwitchPair(present, _):
            return f"SwitchPair {present['metadata']['name']}"
        case Tell(reason, message):
            return f"Tell {reason}: {message}"
        case Probe(url, database):
            return f"Probe {url} ({database})"
