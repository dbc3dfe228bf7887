"""What a deployed server is set up from: the variables that the declaration calls for, and the Secrets that they come from.

Enters: a declared instance. Leaves: variables, and references to Secrets. The marks `Env` of the
declaration say which field becomes which variable; only what needs more than one variable is written here. Pure.
Source: spec/pocketid.md 2.1, 5.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from moorage.core.expansion import literal
from moorage.core.meta import JsonObject
from moorage.schema.model import Model

from .children import ENCRYPTION_KEY, SETTINGS, name_of
from .types import KEY_SUFFIX, KEY_TOKEN, PORT, PocketIDInstance, Spec
from .types_deployment import Env, Sensitive, Ui

TLS_FOLDER: Final = "/etc/pocket-id/tls"
CERTIFICATE: Final = "tls.crt"
PRIVATE_KEY: Final = "tls.key"
DATA: Final = "/app/data"
"""Where the server looks for its data unless it is told otherwise."""
OURS: Final = frozenset({"ENCRYPTION_KEY", "ENCRYPTION_KEY_FILE", "STATIC_API_KEY", "STATIC_API_KEY_FILE", "PORT"})
"""Variables that the operator works with; nobody else sets them."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Value: TypeAlias = "str | Sensitive"


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of the server, and the field that it comes from."""

    name: str
    path: str
    value: Value


@dataclass(frozen=True, slots=True)
class Reference:
    """One key of a Secret in the namespace of the instance that the server needs; `path` is the field that names it."""

    path: str
    secret: str
    key: str
    optional: bool = False


def variables(spec: Spec) -> list[Variable]:
    """All that the declaration says, in its order."""
    return [*_walk("spec", spec), *_settings(spec), *_observed(spec), *_passkeys(spec), *_places(spec)]


def _walk(path: str, node: Model) -> Iterator[Variable]:
    """A variable for each marked field that has a value."""
    for name, info in type(node).model_fields.items():
        value, below = getattr(node, name), f"{path}.{info.alias}"
        mark = next((item for item in info.metadata if isinstance(item, Env)), None)
        if value is None:
            continue
        if mark is not None:
            yield Variable(mark.name, below, value if isinstance(value, Sensitive) else text_of(value))
        elif isinstance(value, Model):
            yield from _walk(below, value)


def text_of(value: Any) -> str:
    """A value as the server reads it: `true`, numbers in digits, lists as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(list(value)) if isinstance(value, tuple) else str(value)


def _settings(spec: Spec) -> Iterator[Variable]:
    """What is declared here counts, unless `ui` leaves the settings to the server's own page."""
    if spec.ui is None:
        yield Variable("UI_CONFIG_DISABLED", "spec.ui.configDisabled", text_of(Ui().config_disabled))
    if spec.s3 is not None and spec.file_backend is None:
        yield Variable("FILE_BACKEND", "spec.fileBackend", "s3")


def _observed(spec: Spec) -> Iterator[Variable]:
    """Metrics at an address of the pod, traces to a collector."""
    if spec.metrics is not None and spec.metrics.enabled:
        yield Variable("METRICS_ENABLED", "spec.metrics.enabled", "true")
        yield Variable("OTEL_METRICS_EXPORTER", "spec.metrics.enabled", "prometheus")
        yield Variable("OTEL_EXPORTER_PROMETHEUS_PORT", "spec.metrics.port", str(spec.metrics.port))
    if spec.tracing is not None:
        yield Variable("TRACING_ENABLED", "spec.tracing", "true")


def _passkeys(spec: Spec) -> Iterator[Variable]:
    """`userVerification` becomes WEBAUTHN_USER_VERIFICATION."""
    for key, value in (spec.webauthn or {}).items():
        yield Variable(f"WEBAUTHN_{_HUMP.sub('_', key).upper()}", f"spec.webauthn[{key}]", value)


def _places(spec: Spec) -> Iterator[Variable]:
    """Files, where the volume or a Secret is mounted."""
    path = spec.volume.path.rstrip("/")
    if path != DATA:
        yield Variable("UPLOAD_PATH", "spec.persistence.path", f"{path}/uploads")
        if spec.database_url is None:
            yield Variable("DB_CONNECTION_STRING", "spec.persistence.path", f"{path}/pocket-id.db")
        if spec.geoip is None or spec.geoip.db_path is None:
            yield Variable("GEOLITE_DB_PATH", "spec.persistence.path", f"{path}/GeoLite2-City.mmdb")
    if spec.tls is not None:
        yield Variable("TLS_CERT", "spec.tls", f"{TLS_FOLDER}/{CERTIFICATE}")
        yield Variable("TLS_KEY", "spec.tls", f"{TLS_FOLDER}/{PRIVATE_KEY}")


def references(spec: Spec) -> list[Reference]:
    """Keys of Secrets that a person brings and the server needs, in the order of the declaration."""
    found = []
    for item in variables(spec):
        source = item.value.value_from if isinstance(item.value, Sensitive) else None
        if source is not None:
            ref = source.secret_key_ref
            found.append(Reference(f"{item.path}.valueFrom", ref.name, ref.key, bool(ref.optional)))
    if spec.tls is not None:
        found += [Reference("spec.tls.secretRef", spec.tls.secret_ref.name, key) for key in (CERTIFICATE, PRIVATE_KEY)]
    return found


def beside(spec: Spec) -> list[tuple[str, str]]:
    """Secrets and their keys that `spec.env` names: the pod takes them by itself, and restarts when they change."""
    refs = [(item.get("valueFrom") or {}).get("secretKeyRef") or {} for item in spec.env or ()]
    return [(str(ref["name"]), str(ref["key"])) for ref in refs if ref.get("name") and ref.get("key")]


def secrets(spec: Spec, read: Callable[[str, str], str]) -> dict[str, str]:
    """Values of the secret variables: the resource's own, and those that `read(secret, key)` finds; "" is none."""
    found = {}
    for item in variables(spec):
        if isinstance(item.value, Sensitive):
            source = item.value.value_from
            found[item.name] = (
                read(source.secret_key_ref.name, source.secret_key_ref.key) if source else item.value.value or ""
            )
    return {name: value for name, value in found.items() if value}


def env(instance: PocketIDInstance, secret: Collection[str]) -> list[JsonObject]:
    """The variables of the container. What `spec.env` names wins over ours; the pod binds its own address only.

    Args:
        secret: names of the secret variables that have a value.
    """
    name, spec = instance.metadata.name, instance.spec
    found: list[JsonObject] = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "HOST", "value": "$(POD_IP)"},
        {"name": "PORT", "value": str(PORT)},
        {"name": "ACTORS_HOST", "value": "$(POD_IP)"},
        _of_secret("ENCRYPTION_KEY", name_of(instance, ENCRYPTION_KEY), KEY_TOKEN),
        _of_secret("STATIC_API_KEY", f"{name}{KEY_SUFFIX}", KEY_TOKEN),
    ]
    if spec.metrics is not None and spec.metrics.enabled:
        found.append({"name": "OTEL_EXPORTER_PROMETHEUS_HOST", "value": "$(POD_IP)"})
    for item in variables(spec):
        if isinstance(item.value, str):
            found.append({"name": item.name, "value": literal(item.value)})
        elif item.name in secret:
            found.append(_of_secret(item.name, name_of(instance, SETTINGS), item.name))
    return list({item["name"]: item for item in (*found, *(spec.env or ()))}.values())


def _of_secret(name: str, secret: str, key: str) -> JsonObject:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def host_of(url: str | None) -> str:
    """The host name of an address; "" without one."""
    return (urlsplit(url).hostname or "") if url else ""
