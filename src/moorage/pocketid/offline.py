"""What the controllers would deploy from files, without a server: for `moorage render`.

Enters: an admitted PocketIDInstance to deploy, the Secrets beside it, the operator's image. Leaves: volume, Service, workload and route, and the Secrets
that hold nothing random; or why nothing is made. The rules are those of the controller: its plans are taken as done, and the pod as running.
Digests of keys, which are random, are left out. Pure. Contract: spec/cli.md, `moorage render`.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from moorage.core.meta import JsonObject, Key, key_of
from moorage.core.outcome import Outcome
from moorage.core.secret import SecretText

from .instance import render
from .instance.decide_deployed import BESIDE, SERVER
from .instance.observe_deployed import brought
from .instance.plan import Ensure, HoldKey, MakeApiKey, MakeEncryptionKey, Plan, Remove, Step
from .instance.seen import Deployed, Seen
from .instance.types import KEY_HASH, KIND, SETTINGS_HASH, PocketIDInstance
from .reach import data_text

PLACEHOLDER: Final = "made-by-the-operator"
"""Stands for a key that the operator would make; no child that holds it leaves."""
_UID: Final = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Rendered:
    """Children as manifests; `why` nothing more is made, "" when all is."""

    children: tuple[JsonObject, ...] = field(repr=False)
    why: str = ""


def deployed(obj: JsonObject) -> bool:
    """Whether an admitted object is an instance that is deployed."""
    return bool(obj["kind"] == KIND.kind) and obj["spec"].get("external") is None


def children(obj: JsonObject, secrets: Iterable[JsonObject], image: str, now: datetime) -> Rendered:
    """The children of one instance.

    Args:
        secrets: of any namespace; those that the instance names are read.
        image: of the operator, for an instance that names none.
    """
    instance = KIND.parse({**obj, "metadata": {**obj["metadata"], "uid": _UID}})
    named = {Key(instance.metadata.namespace, name) for name in brought(instance)}
    sources = {item["metadata"]["name"]: _as_stored(item) for item in secrets if key_of(item) in named}
    here = Deployed(instance.spec.image or image, {}, sources)
    made: list[JsonObject] = []
    for rule in (*SERVER, *BESIDE):
        seen = Seen(instance, render.address(instance), "", None, 0.0, now, here)
        while (answer := rule(seen, here)) is not None:
            if isinstance(answer, Outcome):
                if _is_progress(answer):
                    break
                return Rendered(tuple(map(_shown, made)), _why(answer))
            here = _done(instance, here, answer, made)
    return Rendered(tuple(map(_shown, made)))


def _as_stored(secret: JsonObject) -> JsonObject:
    """A Secret as a server stores it: `stringData` moved into `data`."""
    plain = {name: base64.b64encode(text.encode()).decode() for name, text in (secret.get("stringData") or {}).items()}
    return {**secret, "data": {**(secret.get("data") or {}), **plain}}


def _is_progress(outcome: Outcome) -> bool:
    """Whether it is only the pod that is waited for."""
    return getattr(outcome, "reason", "") == "Progressing"


def _why(outcome: Outcome) -> str:
    return str(getattr(outcome, "message", ""))


def _done(instance: PocketIDInstance, here: Deployed, plan: Plan, made: list[JsonObject]) -> Deployed:
    """The world after a plan; what leaves is put into `made`."""
    match plan:
        case Ensure(step, manifest):
            if PLACEHOLDER not in _texts(manifest):
                made.append(manifest)
            return here.after(step, manifest["kind"], manifest["metadata"]["name"], manifest)
        case MakeEncryptionKey(key):
            return _held(here, "EncryptionKey", render.encryption_key(instance, key or SecretText(PLACEHOLDER)))
        case MakeApiKey():
            return _held(here, "APIKey", render.api_key(instance, SecretText(PLACEHOLDER)))
        case Remove() | HoldKey():
            raise AssertionError("nothing lives here that could be removed or held")


def _held(here: Deployed, step: Step, secret: JsonObject) -> Deployed:
    """With a Secret whose step is not over."""
    found = here.after(step, "Secret", secret["metadata"]["name"], secret)
    return Deployed(here.image, found.live, here.sources, "", here.done)


def _texts(manifest: JsonObject) -> set[str]:
    if manifest["kind"] != "Secret":
        return set()
    return {data_text(manifest, name) for name in manifest["data"]}


def _shown(manifest: JsonObject) -> JsonObject:
    """Without digests that are keyed with random keys."""
    shown = copy.deepcopy(manifest)
    pod = ((shown.get("spec") or {}).get("template") or {}).get("metadata") or {}
    for name in (KEY_HASH, SETTINGS_HASH):
        (pod.get("annotations") or {}).pop(name, None)
    return shown
