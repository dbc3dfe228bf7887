"""Defaulting and validation of PocketIDInstance: what bounds and CEL of `types.py` cannot say.

Enters: an object, its stored form and its siblings. Leaves: the completed object, or a verdict. Pure.
Source: spec/pocketid.md 2.1; decisions, Admission 4, 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.core import names
from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity
from moorage.pocketid.instance.admission_deployment import children
from moorage.pocketid.instance.types import DOWNGRADE, KIND, PocketIDInstance, Spec
from moorage.pocketid.instance.types_deployment import EncryptionKey, Sensitive
from moorage.pocketid.judgement import Check, Finding, admission, asked_by
from moorage.pocketid.references import LEAVE
from moorage.schema.fielderror import FieldError, invalid, required
from moorage.schema.model import Model
from moorage.schema.review import Review

_SHARED: Final = frozenset(
    {"external", "admin_namespaces", "allowed_namespaces", "client_rotation", "app_url", "deployment_type"}
)
"""Fields that an external instance uses, or that a default fills in."""
_NEAR: Final = (".svc", ".svc.cluster.local", "localhost")
_KEPT: Final = "stands in the resource for all who may read it; a Secret (valueFrom) keeps it"


def addresses(instance: PocketIDInstance, review: Review) -> Iterator[Finding]:
    """Addresses have a host and nothing that a request must not carry."""
    spec = instance.spec
    given = {"spec.appUrl": spec.app_url, "spec.internalAppUrl": spec.internal_app_url}
    given["spec.external.url"] = spec.external.url if spec.external else None
    for path, url in given.items():
        if url is not None:
            yield from _address(path, url)
    if spec.external is not None and _is_open(spec.external.url):
        yield "spec.external.url: over http the API key crosses the network in clear; use https"
    if spec.external is not None and review.old is not None and {*meets(review.old)} - {*meets(review.object)}:
        yield "spec.external.url: on another server everything is made anew, and what is at the old one stays there with secrets that work; the address of the same server may change"
    if spec.external is None and spec.app_url is None:
        yield "spec.appUrl: without it tokens are issued in the name of an address inside the cluster, which browsers do not know"
    if spec.app_url is not None and urlsplit(spec.app_url).path.strip("/"):
        yield "spec.appUrl: Pocket-ID wants an origin without a path: the server will not start"


def _address(path: str, url: str) -> Iterator[FieldError]:
    parts = _split(url)
    if parts is None or not parts.hostname or any(char.isspace() for char in url):
        yield invalid(path, url, "must be a URL with a host")
    elif parts.username is not None or parts.password is not None:
        yield invalid(path, f"{parts.scheme}://...@{parts.hostname}", "must not hold credentials")
    elif parts.query or parts.fragment:
        yield invalid(path, url, "must have neither a query nor a fragment")


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_open(url: str) -> bool:
    parts = _split(url)
    host = (parts.hostname or "") if parts else ""
    return url.startswith("http://") and not host.endswith(_NEAR) and host not in ("127.0.0.1", "::1") and "." in host


def deployment(instance: PocketIDInstance, _review: Review) -> Iterator[Finding]:
    """What is deployed can be: a Service of that name, a volume of that size, a known time zone, variables with names."""
    spec = instance.spec
    if spec.external is not None:
        yield from _unused(spec)
        return
    for why in names.dns1035_label(instance.metadata.name):
        yield invalid("metadata.name", instance.metadata.name, f"is the name of the Service, too: {why}")
    if fault := _size_fault(spec.volume.size):
        yield invalid("spec.persistence.size", spec.volume.size, fault)
    if spec.timezone is not None and not _is_zone(spec.timezone):
        yield invalid("spec.timezone", spec.timezone, "is no time zone of the IANA database, such as Europe/Berlin")
    for index, item in enumerate(spec.env or ()):
        if not isinstance(item.get("name"), str) or not item["name"]:
            yield required(f"spec.env[{index}].name", "a variable needs a name")
    yield from (f"{path}.value: {_KEPT}" for path in _inline("spec", spec))


def _unused(spec: Spec) -> Iterator[str]:
    for name in sorted(spec.model_fields_set - _SHARED):
        value = getattr(spec, name)
        info = Spec.model_fields[name]
        if value is not None and value != info.any_default():
            yield f"spec.{info.alias}: has no effect on an external instance"


def _inline(path: str, node: Any) -> Iterator[str]:
    """Paths of values that should be secret and stand in the resource."""
    if isinstance(node, Sensitive | EncryptionKey):
        if node.value is not None:
            yield path
    elif isinstance(node, Model):
        for name, info in type(node).model_fields.items():
            yield from _inline(f"{path}.{info.alias}", getattr(node, name))


def _size_fault(size: str) -> str:
    try:
        return "" if parse_quantity(size) > 0 else "must be greater than zero"
    except ValueError as error:
        return str(error)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def siblings(instance: PocketIDInstance, review: Review) -> Iterator[Finding]:
    """Two instances of one server would each be owner of what is there."""
    external = instance.spec.external
    for other in review.siblings:
        if external is not None and external.url.rstrip("/") in meets(other):
            yield f"spec.external.url: PocketIDInstance {other['metadata']['name']} is the same server; one of the two is enough"


def meets(obj: JsonObject) -> Iterator[str]:
    """The address of the server."""
    if external := obj["spec"].get("external"):
        yield external["url"].rstrip("/")


CHECKS: Final[tuple[Check[PocketIDInstance], ...]] = (
    addresses,
    deployment,
    children,
    asked_by(LEAVE, DOWNGRADE),
    siblings,
)
ADMISSION: Final = admission(KIND, CHECKS, meets)
