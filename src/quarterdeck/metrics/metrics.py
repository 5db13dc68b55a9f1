"""The metrics of all planes that a process manages; its creator owns them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client import Metric as Family
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from quarterdeck import clocks
from quarterdeck.engine.notices.watchers import Unwatched, Watcher
from quarterdeck.errors import QuarterdeckError
from quarterdeck.metrics import catalogue
from quarterdeck.metrics.catalogue import METRICS, Metric
from quarterdeck.metrics.samples import Sample, samples
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import World

#: Seconds: most steps take less than one, the copy to a joining member takes minutes.
_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

Rows = dict[Metric, list[tuple[tuple[str, ...], float]]]


@dataclass(kw_only=True)
class _Plane:
    """The facts of one plane. ``at``: the time of its observation; ``measured``: values that are measured
    less often.
    """

    world: World
    plan: Plan
    at: float
    took: float | None
    measured: tuple[Sample, ...] = ()


class Metrics(Collector):
    """All metrics. Those of an observation are computed when they are scraped; a deleted plane leaves nothing
    behind.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = clocks.steady,
        boot: Callable[[], str] = clocks.boot,
    ) -> None:
        """``clock`` is the wall clock, ``steady`` that of this host's ``boot``, in seconds."""
        self._clock = clock
        self._steady = steady
        self._boot = boot()
        self._planes: dict[str, _Plane] = {}
        self._steps, self._troubles = (
            Counter(each.name, each.says, each.labels, registry=None) for each in (catalogue.STEPS, catalogue.TROUBLES)
        )
        seconds = catalogue.SECONDS
        self._durations = Histogram(seconds.name, seconds.says, seconds.labels, buckets=_BUCKETS, registry=None)
        self._operations: Mapping[tuple[str, str], int] = {}
        self._answered: Mapping[str, bool] = {}
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def of(self, plane: str) -> PlaneMetrics:
        """The ``Watcher`` that counts for one plane."""
        return PlaneMetrics(plane=plane, metrics=self)

    def observed(self, plane: str, world: World, plan: Plan) -> None:
        """A plane was observed."""
        if world.deleting and plan.done:
            self.forget(plane)
            return
        known = self._planes.get(plane)
        measured = known.measured if known is not None else ()
        self._planes[plane] = _Plane(
            world=world, plan=plan, at=self._clock(), took=self._took(world), measured=measured
        )

    def measured(self, plane: str, found: Sequence[Sample]) -> None:
        """Values that are measured less often have arrived."""
        if plane in self._planes:
            self._planes[plane].measured = tuple(found)

    def asked(self, operations: Mapping[tuple[str, str], int]) -> None:
        """The numbers of operations, by plane and phase."""
        self._operations = dict(operations)

    def answered(self, networks: Mapping[str, bool]) -> None:
        """Whether the processes that manage planes on other networks reported theirs, by network."""
        self._answered = dict(networks)

    def stepped(self, plane: str, step: Step, seconds: float, *, done: bool) -> None:
        """A step ended."""
        kind = step.kind
        self._steps.labels(plane, kind, "done" if done else "failed").inc()
        if done:
            self._durations.labels(kind).observe(seconds)

    def troubled(self, plane: str) -> None:
        """Another failure."""
        self._troubles.labels(plane).inc()

    def forget(self, plane: str) -> None:
        """A plane is deleted, or another process manages it."""
        self._planes.pop(plane, None)
        for counter in (self._steps, self._troubles):
            counter.remove_by_labels({"plane": plane})

    @override
    def collect(self) -> Iterator[Family]:
        """See ``Collector``."""
        rows: Rows = {metric: [] for metric in METRICS}
        for name, plane in sorted(self._planes.items()):
            rows[catalogue.LOOKED].append(((name,), plane.at))
            if plane.took is not None:
                rows[catalogue.LOOK].append(((name,), plane.took))
            for metric, labels, value in (*samples(plane.world, plane.plan), *plane.measured):
                rows[metric].append(((name, *labels), value))
        rows[catalogue.OPERATIONS] += [each for each in sorted(self._operations.items()) if each[0][0] in self._planes]
        rows[catalogue.ANSWERED] += [((network,), answered) for network, answered in sorted(self._answered.items())]
        counted: Mapping[Metric, Counter | Histogram] = {
            catalogue.STEPS: self._steps,
            catalogue.TROUBLES: self._troubles,
            catalogue.SECONDS: self._durations,
        }
        for metric in METRICS:
            yield _counted(counted[metric]) if metric in counted else _family(metric, rows[metric])

    def _took(self, world: World) -> float | None:
        """How long the observation took that began at the world's ``now``, if that is a time of this host's clock."""
        timeline = world.memory.timeline
        if timeline is None or timeline.boot != self._boot:
            return None
        return max(0.0, self._steady() + timeline.ahead - world.now)


def _family(metric: Metric, rows: Sequence[tuple[tuple[str, ...], float]]) -> Family:
    family = GaugeMetricFamily(metric.name, metric.says, labels=metric.labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _counted(counter: Counter | Histogram) -> Family:
    """The samples of a counter, without the creation time of its series: the reference does not list that."""
    (family,) = counter.collect()
    family.samples = [each for each in family.samples if not each.name.endswith("_created")]
    return family


@dataclass(frozen=True, kw_only=True)
class PlaneMetrics(Unwatched, Watcher):
    """A ``Watcher`` of one plane's driver that counts."""

    plane: str
    metrics: Metrics

    @override
    async def observed(self, world: World, plan: Plan) -> None:
        self.metrics.observed(self.plane, world, plan)

    @override
    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        self.metrics.stepped(self.plane, step, seconds, done=error is None)

    @override
    async def troubled(self, error: QuarterdeckError) -> None:
        self.metrics.troubled(self.plane)
