"""The policy of a deployed server, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

A rule that is not met stops those below it, and nothing else: what runs is left running, with the keys, the volume and the image that it has.
Enters: a snapshot. Leaves: a plan or an outcome. Pure. Source: spec/pocketid.md 2.1; seed 004; ADR 0017.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from moorage.core.meta import JsonObject, is_terminating
from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.core.quantity import parse_quantity
from moorage.core.secret import SecretText
from moorage.pocketid.reach import data_text
from moorage.pocketid.rest_version import OLDEST, TOO_NEW, Version
from moorage.runtime.projection import rolled_out

from . import pods, render
from .children import DATA, ENCRYPTION_KEY, SETTINGS, follows_another, is_kept_by, name_of
from .environment import CERTIFICATE, PRIVATE_KEY, Reference, beside, references, secrets
from .merging import TemplateFault
from .plan import Ensure, MakeApiKey, MakeEncryptionKey, Plan, Remove, Step
from .seen import Deployed, Seen
from .types import DOWNGRADE, KEY_SUFFIX, KEY_TOKEN

LEAST: Final = 16
"""Characters that the server wants of either key."""
LOOK_AGAIN: Final = 60.0
"""Seconds until another look at what a person has to bring; a watch is quicker where there is one."""
SOON: Final = 10.0
"""Seconds until another look at what Kubernetes is about to finish."""
Answer: TypeAlias = Plan | Outcome | None
Rule: TypeAlias = Callable[[Seen, Deployed], Answer]


def nothing_new_is_made(seen: Seen, here: Deployed) -> Answer:
    """Of an instance that goes, garbage collection takes the children."""
    return Done() if seen.instance.metadata.deletion_timestamp or here.namespace_ends else None


def nothing_was_refused(_seen: Seen, here: Deployed) -> Answer:
    """A refused write ends the pass; it is tried again with back-off."""
    return Failed(here.refusal.reason, here.refusal.message) if here.refusal is not None else None


# --- keys


def encryption_key_is_held(seen: Seen, here: Deployed) -> Answer:
    """The key stands in a Secret of ours, made once. What is held counts; that the declaration says another is told at the end."""
    name = name_of(seen.instance, ENCRYPTION_KEY)
    live = here.child("Secret", name)
    if live is None:
        return _first_key(seen, here)
    if fault := _not_ours(seen, live):
        return fault
    if len(held := text_of(live, KEY_TOKEN)) < LEAST:
        return Stalled(
            "EncryptionKeyInvalid",
            f'Secret "{name}", key "{KEY_TOKEN}": the encryption key must have at least {LEAST} characters; restore the Secret from a backup',
        )
    return _once(here, "EncryptionKey", lambda: render.encryption_key(seen.instance, SecretText(held)))


def _first_key(seen: Seen, here: Deployed) -> Answer:
    """From the declaration. A generated key that is gone while there is data is never replaced: the data could not be read again."""
    declared = declared_key(seen, here)
    if isinstance(declared, str):
        return Waiting("SecretNotFound", declared, after=LOOK_AGAIN)
    if declared is None:
        volume = here.child("PersistentVolumeClaim", name_of(seen.instance, DATA))
        before = seen.instance.status.encryption_key_secret_name is not None
        if before or (volume is not None and is_kept_by(volume, seen.instance)):
            return Stalled("EncryptionKeyLost", _lost(seen))
    elif len(declared.reveal()) < LEAST:
        return Stalled(
            "EncryptionKeyInvalid",
            f"spec.encryptionKey: the key must have at least {LEAST} characters; give a longer one",
        )
    return MakeEncryptionKey(declared)


def _lost(seen: Seen) -> str:
    name, claim = name_of(seen.instance, ENCRYPTION_KEY), name_of(seen.instance, DATA)
    return (
        f'Secret "{name}" with the generated encryption key is gone, and what the server stored can be read with that key only: restore the'
        f' Secret from a backup; to begin without the data, delete this PocketIDInstance and PersistentVolumeClaim "{claim}", then create it anew'
    )


def declared_key(seen: Seen, here: Deployed) -> SecretText | str | None:
    """The key that the declaration gives, None for one to be made; a str says what of it is missing."""
    wanted = seen.instance.spec.encryption_key
    assert wanted is not None
    if wanted.value is not None:
        return SecretText(wanted.value)
    if wanted.value_from is None:
        return None
    ref = wanted.value_from.secret_key_ref
    text = text_of(here.sources.get(ref.name), ref.key)
    if text:
        return SecretText(text)
    return _missing(here, Reference("spec.encryptionKey.valueFrom", ref.name, ref.key))


def _missing(here: Deployed, item: Reference) -> str:
    if item.secret not in here.sources:
        return f'{item.path}: Secret "{item.secret}" does not exist; create it with key "{item.key}"'
    return f'{item.path}: Secret "{item.secret}" has no text under key "{item.key}"; add it'


def api_key_is_held(seen: Seen, here: Deployed) -> Answer:
    """Made by us; one that nobody could use is replaced, and the pod starts anew with it."""
    live = here.child("Secret", name_of(seen.instance, KEY_SUFFIX))
    if live is None:
        return MakeApiKey()
    if not seen.owns(live):
        return _foreign("Secret", live)
    token = text_of(live, KEY_TOKEN)
    if len(token) < LEAST or not token.isascii() or not token.isprintable():
        return MakeApiKey(live)
    return _once(here, "APIKey", lambda: render.api_key(seen.instance, SecretText(token)))


# --- what a person brings


def secrets_are_there(seen: Seen, here: Deployed) -> Answer:
    """All that are missing in one message."""
    found = [
        _missing(here, item)
        for item in references(seen.instance.spec)
        if not item.optional and not text_of(here.sources.get(item.secret), item.key)
    ]
    return Waiting("SecretNotFound", "; ".join(found), after=LOOK_AGAIN) if found else None


def settings_are_kept(seen: Seen, here: Deployed) -> Answer:
    """Secret variables reach the pod by a Secret of ours: a change of one restarts the pod once, with all of them; without any it goes."""
    wanted = render.settings(seen.instance, _secrets(seen, here))
    live = here.child("Secret", name_of(seen.instance, SETTINGS))
    if wanted is not None:
        return _once(here, "Settings", lambda: wanted)
    return Remove("Settings", live) if live is not None and seen.owns(live) and not is_terminating(live) else None


def _secrets(seen: Seen, here: Deployed) -> dict[str, str]:
    return secrets(seen.instance.spec, lambda secret, key: text_of(here.sources.get(secret), key))


# --- storage


def volume_is_there(seen: Seen, here: Deployed) -> Answer:
    """Ours is made and grows; one that a person brings is only looked for. None is ever deleted here."""
    wanted, claim = render.volume_claim(seen.instance), seen.instance.spec.volume.existing_claim
    if wanted is None:
        if not seen.instance.spec.volume.enabled or claim is None:
            return None
        if here.child("PersistentVolumeClaim", claim) is not None:
            return None
        said = f'spec.persistence.existingClaim: PersistentVolumeClaim "{claim}" does not exist; create it'
        return Waiting("VolumeClaimNotFound", said, after=LOOK_AGAIN)
    live = here.child("PersistentVolumeClaim", wanted["metadata"]["name"])
    if live is not None:
        if fault := _not_ours(seen, live):
            return fault
        if fixed := next(_fixed(wanted, live), ""):
            return Stalled("VolumeFixed", fixed)
    return _once(here, "Volume", lambda: wanted)


def _fixed(wanted: JsonObject, live: JsonObject) -> Iterator[str]:
    """What of a volume cannot be changed, with what it is."""
    name, want, have = live["metadata"]["name"], wanted["spec"], live["spec"]
    way = f'PersistentVolumeClaim "{name}" cannot be changed so; set it back, or copy the data to a claim of your own and name that in existingClaim'
    if "storageClassName" in want and have.get("storageClassName") != want["storageClassName"]:
        yield f"spec.persistence.storageClass: the volume is of class {have.get('storageClassName')!r}; {way}"
    if sorted(have.get("accessModes") or ()) != sorted(want["accessModes"]):
        yield f"spec.persistence.accessModes: the volume has {', '.join(have.get('accessModes') or ())}; {way}"
    size = want["resources"]["requests"]["storage"]
    present = ((have.get("resources") or {}).get("requests") or {}).get("storage", "0")
    if parse_quantity(size) < parse_quantity(present):
        yield f"spec.persistence.size: a volume of {present} does not shrink to {size}; {way}"


# --- Service and workload


def service_is_there(seen: Seen, here: Deployed) -> Answer:
    """The name by which everybody finds the server."""
    return _once(here, "Service", lambda: render.service(seen.instance))


def image_fits(seen: Seen, here: Deployed) -> Answer:
    """An image whose tag says a version that we cannot speak to, or that is older than the data, is not rolled out."""
    if not here.image:
        said = "spec.image is not set, and the operator has no image of its own: set spec.image, or POCKET_ID_IMAGE for the operator"
        return Stalled("ImageNotSet", said)
    wanted = Version.of(_tag(here.image))
    if not wanted.is_supported:
        oldest, too_new = (".".join(map(str, number)) for number in (OLDEST, TOO_NEW))
        said = f"spec.image: Pocket-ID {wanted.text} is not supported: versions from {oldest} and before {too_new} are; set another tag"
        return Stalled("UnsupportedVersion", said)
    return _not_older(seen, wanted)


def _tag(image: str) -> str:
    """The tag of an image; "" for one that is named by digest alone, or not at all."""
    head, _, tag = image.partition("@")[0].rpartition(":")
    return tag if head and "/" not in tag else ""


def _not_older(seen: Seen, wanted: Version) -> Answer:
    """A patch version back is no downgrade: the data has one form for all of them. A tag such as `v2` names no minor version."""
    text = seen.instance.status.version
    running = Version.of(text) if text else None
    if running is None or running.number is None or wanted.number is None or wanted.number[:2] >= running.number[:2]:
        return None
    if seen.instance.metadata.annotations.get(DOWNGRADE) == "true":
        return None
    said = (
        f"spec.image: Pocket-ID {wanted.text} is older than {running.text}, which has brought its data to a newer form: set the tag back; to go"
        f' back with a backup of the older data in place, set annotation {DOWNGRADE}: "true"'
    )
    return Stalled("DowngradeRefused", said)


def workload_is_there(seen: Seen, here: Deployed) -> Answer:
    """One pod of the wanted form; whatever else was changed on it is put right."""
    return _once(here, "Workload", lambda: render.workload(seen.instance, here.image, _keys(seen, here)))


def _keys(seen: Seen, here: Deployed) -> pods.Keys:
    instance, tls = seen.instance, seen.instance.spec.tls
    encryption = text_of(here.child("Secret", name_of(instance, ENCRYPTION_KEY)), KEY_TOKEN)
    api = text_of(here.child("Secret", name_of(instance, KEY_SUFFIX)), KEY_TOKEN)
    names = (CERTIFICATE, PRIVATE_KEY) if tls is not None else ()
    held = here.sources.get(tls.secret_ref.name) if tls is not None else None
    pair = tuple(text_of(held, name) for name in names)
    named = tuple(text_of(here.sources.get(secret), key) for secret, key in beside(instance.spec))
    return pods.Keys(SecretText(encryption), SecretText(api), _secrets(seen, here), pair, named)


def workload_runs(seen: Seen, here: Deployed) -> Answer:
    """The new pod is ready and the old one gone."""
    kind = seen.instance.spec.deployment_type
    live = here.child(kind, seen.instance.metadata.name)
    if rolled_out(live):
        return None
    text = f"{kind} {seen.instance.metadata.name} has not rolled out yet"
    for item in ((live or {}).get("status") or {}).get("conditions") or ():
        stuck = item["type"] == "Progressing" and item["status"] == "False"
        if stuck or (item["type"] == "ReplicaFailure" and item["status"] == "True"):
            text += f"; {item.get('message') or item.get('reason')}"
    return Waiting("Progressing", f"{text}; {here.trouble}" if here.trouble else text, after=SOON)


def server_was_asked(seen: Seen, _here: Deployed) -> Answer:
    """A pod that became ready while this pass was under way is asked by the next one."""
    if seen.look is not None or seen.fault:
        return None
    return Waiting("Progressing", "the pod runs; the server is about to be asked", after=1.0)


# --- beside the server


def route_is_there(seen: Seen, here: Deployed) -> Answer:
    """The HTTPRoute, and the removal of one that has another name or is not wanted any more."""
    wanted, before = render.route_name(seen.instance), seen.instance.status.route_name
    former = here.child("HTTPRoute", before) if before and before != wanted else None
    if former is not None and seen.owns(former) and not is_terminating(former):
        return Remove("Route", former)
    return _once(here, "Route", lambda: render.route(seen.instance, wanted)) if wanted else None


def encryption_key_is_the_declared_one(seen: Seen, here: Deployed) -> Answer:
    """Another key in the declaration changes nothing: the server could not read its data with it. A person must settle it."""
    name = name_of(seen.instance, ENCRYPTION_KEY)
    held, declared = text_of(here.child("Secret", name), KEY_TOKEN), declared_key(seen, here)
    if not isinstance(declared, SecretText) or declared == SecretText(held):
        return None
    said = (
        f'spec.encryptionKey is not the key that the data is encrypted with, which Secret "{name}" holds; the server runs on with that one: set the'
        f" former key again; if the data was encrypted anew with Pocket-ID's own tool, delete that Secret"
    )
    return Stalled("EncryptionKeyChanged", said)


# --- what rules share


def text_of(secret: JsonObject | None, key: str) -> str:
    """A value of a Secret; "" when there is none, or no text."""
    return data_text(secret, key) if secret is not None else ""


def _once(here: Deployed, step: Step, make: Callable[[], JsonObject]) -> Answer:
    """Apply what is wanted, once a pass; a template that does not fit is told."""
    if step in here.done:
        return None
    try:
        return Ensure(step, make())
    except TemplateFault as error:
        said = f"a template of the spec does not fit: {error}; mend podTemplate, serviceTemplate or route.template"
        return Stalled("TemplateInvalid", said)


def _not_ours(seen: Seen, live: JsonObject) -> Outcome | None:
    """Of what outlives instances: whether it is another's, or still goes with a former instance of this name."""
    kind, name = live["kind"], live["metadata"]["name"]
    if not is_kept_by(live, seen.instance):
        return _foreign(kind, live)
    if follows_another(live, seen.instance):
        said = f'{kind} "{name}" goes with a PocketIDInstance of this name that was deleted; waiting until it is gone'
        return Waiting("Progressing", said, after=SOON)
    return None


def _foreign(kind: str, live: JsonObject) -> Outcome:
    name = live["metadata"]["name"]
    return Stalled(
        "ForeignObject", f'{kind} "{name}" exists and is not ours; delete or rename it, or name the instance otherwise'
    )


SERVER: Final[tuple[Rule, ...]] = (
    nothing_new_is_made, nothing_was_refused, encryption_key_is_held, api_key_is_held, secrets_are_there, settings_are_kept,
    volume_is_there, service_is_there, image_fits, workload_is_there, workload_runs, server_was_asked,
)  # fmt: skip
BESIDE: Final[tuple[Rule, ...]] = (route_is_there, encryption_key_is_the_declared_one)
