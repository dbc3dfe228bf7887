"""`moorage render` of a deployed instance: what the controller would make, from files alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.pocketid.test_admission import complete

from moorage.core.meta import JsonObject
from moorage.pocketid import offline
from moorage.pocketid.instance.admission import ADMISSION
from moorage.pocketid.instance.types import KIND

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SMALL: JsonObject = {"encryptionKey": {"generate": True}, "appUrl": "https://id.example.org"}
MAIL = {"valueFrom": {"secretKeyRef": {"name": "mail", "key": "password"}}}


def rendered(secrets: tuple[JsonObject, ...] = (), image: str = "pocket-id:v2.17.0", **spec: Any) -> offline.Rendered:
    """The children of a small instance with these fields over it."""
    meta = {"name": "main", "namespace": "identity"}
    body = {"apiVersion": KIND.resource.api_version, "kind": KIND.kind, "metadata": meta, "spec": {**SMALL, **spec}}
    return offline.children(complete(ADMISSION, body), secrets, image, NOW)


def names(found: offline.Rendered) -> list[str]:
    """`Kind/name` of each child."""
    return [f"{item['kind']}/{item['metadata']['name']}" for item in found.children]


def test_volume_service_workload_and_route_are_made_and_nothing_random() -> None:
    found = rendered(route={"enabled": True, "parentRefs": [{"name": "gateway"}]}, deploymentType="StatefulSet")
    assert names(found) == ["PersistentVolumeClaim/main-data", "Service/main", "StatefulSet/main", "HTTPRoute/main"]
    assert found.why == ""
    assert offline.PLACEHOLDER not in str(found.children)
    assert found == rendered(route={"enabled": True, "parentRefs": [{"name": "gateway"}]}, deploymentType="StatefulSet")


def test_keys_and_settings_that_files_hold_are_made() -> None:
    """A declared key is held; secrets that the spec names reach the pod by the Secret of settings, also from `stringData`."""
    mail: JsonObject = {
        "kind": "Secret",
        "metadata": {"name": "mail", "namespace": "identity"},
        "stringData": {"password": "hunter2"},
    }
    found = rendered(
        (mail,),
        encryptionKey={"value": "a-key-of-more-than-sixteen"},
        smtp={"host": "mail", "from": "id@example.org", "password": MAIL},
    )
    assert names(found)[:2] == ["Secret/main-held-encryption-key", "Secret/main-settings"]
    assert names(found)[-1] == "Deployment/main"


def test_what_is_missing_is_named_and_nothing_after_it_is_made() -> None:
    found = rendered(smtp={"host": "mail", "from": "id@example.org", "password": MAIL})
    assert names(found) == []
    assert 'Secret "mail" does not exist' in found.why
    assert "spec.image is not set" in rendered(image="").why
