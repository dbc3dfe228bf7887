"""What the metrics of the backend room say, and that they go with the backend."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from moorage.core.meta import Key
from moorage.keystone.backend import metrics
from moorage.keystone.backend.materials import Document

from .scene import BACKENDS, KEY, NAMESPACE, scene
from .waiting import settle

NAME = "keystone_operator_identity_backend"
LABELS = {"backend": KEY.name, "namespace": NAMESPACE}


def value(name: str, **more: str) -> float | None:
    """A sample of the process's registry."""
    return REGISTRY.get_sample_value(f"{NAME}_{name}", {**LABELS, **more})


async def test_a_backend_is_counted_while_it_is_there(tmp_path: Path) -> None:
    """Ready or not, and its requests by method; nothing is left of it when it is gone."""
    async with scene(tmp_path) as here:
        await here.oidc()
        await settle(here)
        assert value("ready") == 0
        await here.attach(KEY.name)
        await settle(here)
        assert value("ready") == 1
        assert (value("requests_total", method="PUT") or 0) >= 3
        await here.client.delete(BACKENDS, KEY)
        await settle(here)
        await here.attach()
        await settle(here)
        await settle(here)
        assert await here.stored() is None
    assert value("ready") is None
    assert value("requests_total", method="PUT") is None


def test_ages_and_ends_are_told_of_what_has_them() -> None:
    """A declared document has no age; a certificate that cannot be read has no end."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    key = Key(NAMESPACE, "x")
    labels = {"backend": "x", "namespace": NAMESPACE}
    metrics.document(key, Document(b"", fetched=now - timedelta(hours=1)), now)
    metrics.certificate(key, "2036-01-01T00:00:00Z")
    assert REGISTRY.get_sample_value(f"{NAME}_metadata_age_seconds", labels) == 3600
    assert REGISTRY.get_sample_value(f"{NAME}_certificate_expiry_timestamp_seconds", labels) == pytest.approx(
        datetime(2036, 1, 1, tzinfo=UTC).timestamp()
    )
    metrics.document(key, Document(b""), now)
    metrics.certificate(key, "")
    assert REGISTRY.get_sample_value(f"{NAME}_metadata_age_seconds", labels) is None
    assert REGISTRY.get_sample_value(f"{NAME}_certificate_expiry_timestamp_seconds", labels) is None
