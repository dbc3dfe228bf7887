"""Validation of a server that is deployed: what bounds and CEL of the declaration cannot say of its pod, Service, volume and variables.

Enters: a parsed instance and its review. Leaves: findings. Pure. Source: spec/pocketid.md 2.1; decisions, Admission 4, 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from moorage.core import names
from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity
from moorage.core.unseen import has_unseen
from moorage.pocketid.judgement import Finding, twice
from moorage.schema.fielderror import FieldError, forbidden, invalid, not_supported, required
from moorage.schema.review import Review

from . import merging
from .children import selector
from .environment import OURS
from .pods import CONTAINER
from .types import PocketIDInstance, Spec
from .types_deployment import Persistence

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SETTING: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VARIABLE: Final = re.compile(r"[ -<>-~]+")


def children(instance: PocketIDInstance, review: Review) -> Iterator[Finding]:
    """What is made of the declaration can be made."""
    spec = instance.spec
    if spec.external is not None:
        return
    yield from _labels(spec)
    yield from _variables(spec)
    yield from _volume(spec.volume)
    yield from _templates(instance)
    yield from _unheard(spec)
    yield from _changed(spec, review)


def _labels(spec: Spec) -> Iterator[Finding]:
    """Labels and annotations of children, as the API server would judge them."""
    labelled = {"spec.labels": spec.labels, "spec.route.labels": spec.route.labels if spec.route else None}
    for path, found in labelled.items():
        for key, value in (found or {}).items():
            yield from (invalid(path, key, why) for why in names.qualified_name(key))
            yield from (invalid(f"{path}[{key}]", value, why) for why in names.label_value(value))
    noted = {
        "spec.annotations": spec.annotations,
        "spec.route.annotations": spec.route.annotations if spec.route else None,
    }
    for path, found in noted.items():
        for key in found or {}:
            yield from (invalid(path, key, why) for why in names.qualified_name(key.lower()))


def _variables(spec: Spec) -> Iterator[Finding]:
    """Variables that the operator works with, twice the same one, and passkey settings that are no names."""
    named = [(at, item["name"]) for at, item in enumerate(spec.env or ()) if isinstance(item.get("name"), str)]
    yield from twice("spec.env", ((f"[{at}].name", name) for at, name in named), "is set at")
    for index, name in named:
        if name in OURS:
            yield forbidden(f"spec.env[{index}].name", f"{name} is set by the operator; leave it out")
        elif name and not _VARIABLE.fullmatch(name):
            yield invalid(f"spec.env[{index}].name", name, "must be printable ASCII characters other than '='")
    for key, value in (spec.webauthn or {}).items():
        if not _SETTING.fullmatch(key):
            yield invalid(
                "spec.webauthn", key, "must be the name of a setting, such as userVerification or USER_VERIFICATION"
            )
        if has_unseen(value):
            yield invalid(f"spec.webauthn[{key}]", value, "must not hold control characters")


def _volume(wanted: Persistence) -> Iterator[Finding]:
    """Where data lies."""
    if not wanted.path.startswith("/") or ":" in wanted.path:
        yield invalid("spec.persistence.path", wanted.path, "must be an absolute path without ':'")
    below = wanted.sub_path or ""
    if below.startswith("/") or ".." in below.split("/"):
        yield invalid("spec.persistence.subPath", below, "must be a relative path without '..'")
    if not wanted.access_modes:
        yield required("spec.persistence.accessModes", "a volume needs at least one")
    for index, mode in enumerate(wanted.access_modes):
        if mode not in _MODES:
            yield not_supported(f"spec.persistence.accessModes[{index}]", mode, _MODES)
    if wanted.existing_claim is not None:
        yield from (
            invalid("spec.persistence.existingClaim", wanted.existing_claim, why)
            for why in names.dns1123_subdomain(wanted.existing_claim)
        )
        given = {
            "storageClass": wanted.storage_class is not None,
            "size": "size" in wanted.model_fields_set and wanted.size != Persistence().size,
        }
        for name, is_given in given.items():
            if is_given:
                yield f"spec.persistence.{name}: has no effect beside existingClaim"
    if not wanted.enabled:
        yield "spec.persistence.enabled: without a volume files, and the database unless databaseUrl names another, are lost when the pod ends"


def _templates(instance: PocketIDInstance) -> Iterator[Finding]:
    """Templates that can be laid over what we make, and that leave alone what it is found by."""
    spec = instance.spec
    given = (
        ("spec.podTemplate", spec.pod_template, merging.POD_TEMPLATE),
        ("spec.serviceTemplate", spec.service_template, merging.SERVICE),
        ("spec.route.template", spec.route.template if spec.route else None, merging.PLAIN),
    )
    for path, template, form in given:
        try:
            merging.merged({}, template, form)
        except merging.TemplateFault as error:
            yield invalid(path, "{...}", str(error))  # its variables may hold secrets
    for key, value in _chosen(spec.pod_template, "metadata", "labels"):
        if key in selector("") and value != selector(instance.metadata.name)[key]:
            yield forbidden(f"spec.podTemplate.metadata.labels[{key}]", "pods are found by this label; leave it out")
    for name in _set_in_pod(spec.pod_template):
        yield forbidden("spec.podTemplate.spec.containers", f"{name} is set by the operator; leave it out")
    if list(_chosen(spec.service_template, "spec", "selector")):
        yield forbidden("spec.serviceTemplate.spec.selector", "the Service finds its pod by this; leave it out")


def _set_in_pod(template: JsonObject | None) -> Iterator[str]:
    """Variables that the operator works with, where a template gives our container others."""
    for key, containers in _chosen(template, "spec"):
        for item in containers if key == "containers" and isinstance(containers, list) else ():
            if isinstance(item, dict) and item.get("name") == CONTAINER:
                given = [one.get("name") for one in item.get("env") or () if isinstance(one, dict)]
                yield from (str(name) for name in given if name in OURS)


def _chosen(template: JsonObject | None, *path: str) -> Iterator[tuple[str, Any]]:
    node: Any = template
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    yield from (node.items() if isinstance(node, dict) else ())


def _unheard(spec: Spec) -> Iterator[Finding]:
    """Settings that the server does not listen to."""
    if spec.ui is not None and not spec.ui.config_disabled:
        blocks = ("smtp", "email_notifications", "ldap", "user_management", "webauthn", "cimd_url_allowlist")
        for name in blocks:
            if getattr(spec, name) is not None:
                yield f"spec.{Spec.model_fields[name].alias}: the server reads it only while ui.configDisabled is true"
    if spec.route is not None and spec.route.enabled and not spec.route.parent_refs:
        yield "spec.route.parentRefs: without a Gateway nothing leads to the route"


def _changed(spec: Spec, review: Review) -> Iterator[Finding]:
    """What of our own volume cannot be changed once it is there, and a key that the data is not encrypted with."""
    if review.old is None:
        return
    before = Spec.model_validate(review.old["spec"])
    yield from _volume_changed(spec.volume, before.volume)
    if _differs(spec, before):
        yield (
            "spec.encryptionKey: the data stays encrypted with the key of before, and the server runs on with that one; the status says how to"
            " change it"
        )


def _differs(spec: Spec, before: Spec) -> bool:
    return before.encryption_key is not None and spec.encryption_key != before.encryption_key


def _volume_changed(wanted: Persistence, before: Persistence) -> Iterator[FieldError]:
    if not (wanted.enabled and before.enabled) or wanted.existing_claim or before.existing_claim:
        return
    fixed = (
        ("storageClass", wanted.storage_class, before.storage_class),
        ("accessModes", wanted.access_modes, before.access_modes),
    )
    for name, now, then in fixed:
        if now != then:
            shown = list(now) if isinstance(now, tuple) else now
            yield invalid(
                f"spec.persistence.{name}",
                shown,
                "cannot change once the volume is there; name a claim of your own in existingClaim",
            )
    try:
        shrinks = parse_quantity(wanted.size) < parse_quantity(before.size)
    except ValueError:
        return
    if shrinks:
        yield invalid("spec.persistence.size", wanted.size, f"a volume of {before.size} does not shrink")
