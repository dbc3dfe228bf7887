"""Metrics with the names that controller-runtime users know.

Enters: what queues, workers, client and election report. Leaves: Prometheus text. Labels are controller and result names
only: no object name, no message, no secret. Source: controller-runtime `pkg/metrics`, client-go workqueue provider.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .queue import Queue
from .series import Labels, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PASS_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip
_QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)

RESULTS = ("success", "requeue", "requeue_after", "error")


class Metrics:
    """All metrics of one operator, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._queues: dict[str, Queue] = {}
        made = _Maker(self.registry)
        self.reconciles = made.counter(
            "controller_runtime_reconcile", "Passes per controller and result.", "controller", "result"
        )
        self.errors = made.counter("controller_runtime_reconcile_errors", "Passes that failed.", "controller")
        self.seconds = made.histogram(
            "controller_runtime_reconcile_time_seconds", "Length of a pass.", _PASS_BUCKETS, "controller"
        )
        self.active = made.series("gauge", "controller_runtime_active_workers", "Workers that work now.", "controller")
        self.workers = made.gauge("controller_runtime_max_concurrent_reconciles", "Workers at most.", "controller")
        self.depth = made.series("gauge", "workqueue_depth", "Keys that wait.", "name")
        self.adds = made.series("counter", "workqueue_adds", "Keys that were added.", "name")
        self.retries = made.counter("workqueue_retries", "Keys that come again after back-off.", "name")
        self.waited = made.histogram(
            "workqueue_queue_duration_seconds", "How long a key waits.", _QUEUE_BUCKETS, "name"
        )
        self.worked = made.histogram(
            "workqueue_work_duration_seconds", "How long a worker holds a key.", _QUEUE_BUCKETS, "name"
        )
        self.requests = made.series(
            "counter", "rest_client_requests", "Requests to the API server per code.", "code", "method", "host"
        )
        self.leading = made.gauge("leader_election_master_status", "1 while this process leads.", "name")
        self.events_dropped = made.counter("moorage_events_dropped", "Events that were not written, by cause.", "cause")
        self.reviews = made.counter(
            "controller_runtime_webhook_requests", "Admission reviews per webhook and code.", "webhook", "code"
        )
        self.registry.register(_Unfinished(self._queues))

    def text(self) -> bytes:
        """The exposition that /metrics answers: ours, and what rooms and the process keep in the common registry."""
        return generate_latest(self.registry) + generate_latest(REGISTRY)

    def controller(self, name: str, workers: int) -> ControllerMetrics:
        """The metrics of one controller and its queue; series exist from the start, at zero."""
        self.workers.labels(name).set(workers)
        for series in (self.active, self.depth, self.adds):
            series.begin((name,))
        return ControllerMetrics(self, name)

    def watch_queue(self, name: str, queue: Queue) -> None:
        """Show unfinished work of a queue."""
        self._queues[name] = queue

    def client_observer(self, host: str) -> Callable[[str, int], None]:
        """For `kube.Client.observe`."""

        @cache
        def labels(method: str, status: int) -> Labels:
            return str(status) if status else "<error>", method, host

        return lambda method, status: self.requests.inc(labels(method, status))


class ControllerMetrics:
    """What one controller reports; also a `QueueWatcher`. Its series are looked up once: a pass reports a dozen numbers."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._results = {result: metrics.reconciles.labels(name, result) for result in RESULTS}
        self._errors, self._seconds = metrics.errors.labels(name), metrics.seconds.labels(name)
        self._name, self._all, self._retries = (name,), metrics, metrics.retries.labels(name)
        self._waited, self._worked = metrics.waited.labels(name), metrics.worked.labels(name)

    def added(self, depth: int) -> None:
        self._all.adds.inc(self._name)
        self._all.depth.set(self._name, depth)

    def retried(self) -> None:
        self._retries.inc()

    def taken(self, depth: int, waited: float) -> None:
        self._all.depth.set(self._name, depth)
        self._waited.observe(waited)
        self._all.active.inc(self._name)

    def finished(self, worked: float) -> None:
        self._all.active.inc(self._name, by=-1.0)
        self._worked.observe(worked)

    def passed(self, result: str, seconds: float) -> None:
        """A pass ended; `result` is one of RESULTS."""
        self._results[result].inc()
        self._seconds.observe(seconds)
        if result == "error":
            self._errors.inc()


@dataclass(frozen=True)
class _Maker:
    registry: CollectorRegistry

    def counter(self, name: str, doc: str, *labels: str) -> Counter:
        return Counter(name, doc, labels, registry=self.registry)

    def series(self, kind: Literal["gauge", "counter"], name: str, doc: str, *labels: str) -> Series:
        """A number that every pass or request changes: a dict costs it a third of a lock and a series object."""
        return Series(kind, name, doc, labels, registry=self.registry)

    def gauge(self, name: str, doc: str, *labels: str) -> Gauge:
        return Gauge(name, doc, labels, registry=self.registry)

    def histogram(self, name: str, doc: str, buckets: Iterable[float], *labels: str) -> Histogram:
        return Histogram(name, doc, labels, registry=self.registry, buckets=tuple(buckets))


class _Unfinished(Collector):
    """Work in progress, measured when asked: a worker that hangs shows up while it hangs."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        total = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Seconds of work in progress, summed.", labels=["name"]
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Seconds of the longest work in progress.", labels=["name"]
        )
        for name, queue in self._queues.items():
            now = time.monotonic()
            ages = [now - began for began in queue.working().values()]
            total.add_metric([name], sum(ages))
            longest.add_metric([name], max(ages, default=0.0))
        yield total
        yield longest
