"""Numbers about objects: they come, count, and go with their object, whatever its other labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from moorage.runtime.series import Series


def test_a_gauge_shows_the_last_value_until_its_object_goes() -> None:
    registry = CollectorRegistry(auto_describe=True)
    ready = Series("gauge", "ready", "Whether it is.", ("namespace", "name"), registry=registry)
    ready.set(("ns", "a"), 0)
    ready.set(("ns", "a"), 1)
    ready.set(("ns", "b"), 0)
    assert registry.get_sample_value("ready", {"namespace": "ns", "name": "a"}) == 1
    ready.drop(("ns", "a"))
    ready.drop(("ns", "a"))
    assert registry.get_sample_value("ready", {"namespace": "ns", "name": "a"}) is None
    assert registry.get_sample_value("ready", {"namespace": "ns", "name": "b"}) == 0


def test_a_counter_counts_for_each_further_label_from_zero() -> None:
    registry = CollectorRegistry(auto_describe=True)
    calls = Series("counter", "calls", "What was asked.", ("name",), ("method",), registry=registry)
    calls.begin(("a",), "GET")
    for _ in range(2):
        calls.inc(("a",), "POST")
    calls.begin(("a",), "POST")
    text = generate_latest(registry).decode()
    assert "# TYPE calls_total counter" in text
    assert 'calls_total{method="GET",name="a"} 0.0' in text
    assert 'calls_total{method="POST",name="a"} 2.0' in text
    calls.drop(("a",))
    assert "calls_total{" not in generate_latest(registry).decode()
