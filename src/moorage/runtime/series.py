"""Numbers about objects that come and go: a dict for each metric, written out when somebody asks.

Enters: values by object. Leaves: samples, in a registry of prometheus_client. Its own series are made for the few that stay: one costs ten
microseconds to make and three to find, and to drop those of an object means to look through all. A pass sets several for each object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

Labels = tuple[str, ...]


class Series(Collector):
    """One metric.

    Args:
        name: without `_total`.
        of: labels that name the object; the first argument of each method holds their values.
        more: labels beside them; the last arguments hold theirs.
    """

    def __init__(
        self,
        kind: Literal["gauge", "counter"],
        name: str,
        doc: str,
        of: Labels,
        more: Labels = (),
        *,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._kind, self._name, self._doc, self.labels = kind, name, doc, (*of, *more)
        self._values: dict[Labels, dict[Labels, float]] = {}
        registry.register(self)

    def set(self, of: Labels, value: float, *more: str) -> None:
        """The value is this now."""
        self._values.setdefault(of, {})[more] = value

    def inc(self, of: Labels, *more: str, by: float = 1.0) -> None:
        """It happened once more; a gauge may also go down."""
        found = self._values.setdefault(of, {})
        found[more] = found.get(more, 0.0) + by

    def begin(self, of: Labels, *more: str) -> None:
        """It is there, at zero until something happens."""
        self._values.setdefault(of, {}).setdefault(more, 0.0)

    def drop(self, of: Labels) -> None:
        """The object is gone, or has no such value."""
        self._values.pop(of, None)

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Name, kind and meaning."""
        family = CounterMetricFamily if self._kind == "counter" else GaugeMetricFamily
        yield family(self._name, self._doc, labels=self.labels)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """All samples."""
        for family in self.describe():
            for of, found in self._values.items():
                for more, value in found.items():
                    family.add_metric((*of, *more), value)
            yield family
