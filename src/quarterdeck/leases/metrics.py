"""Metrics of managers' locks, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from quarterdeck.leases.manager import Manager


class LockMetrics(Collector):
    """A collector for a ``prometheus_client`` registry. Values are computed at each scrape."""

    def __init__(self, *managers: Manager) -> None:
        self._managers: Sequence[Manager] = managers

    @override
    def collect(self) -> Iterator[Family]:
        """See ``Collector``."""
        held = GaugeMetricFamily(
            "quarterdeck_lock_held", "Whether this process holds a lock and its controllers may act.", labels=("lock",)
        )
        master = GaugeMetricFamily(
            "leader_election_master_status", "The same, under client-go's name.", labels=("name",)
        )
        left = GaugeMetricFamily(
            "quarterdeck_lock_left_seconds",
            "Seconds for which no other process may act under a lock that this process holds, if it is not renewed.",
            labels=("lock",),
        )
        token = GaugeMetricFamily(
            "quarterdeck_lock_token",
            "The fencing token of the holder of a lock, as last seen: it grows with each holder.",
            labels=("lock",),
        )
        blocked = GaugeMetricFamily(
            "quarterdeck_lock_in_the_way",
            "Whether a lock has a holder of a lower precedence, which has not released it.",
            labels=("lock",),
        )
        writes = CounterMetricFamily(
            "quarterdeck_lock_writes",
            "Writes of a lock by kind (create, take, renew, ask, release) and outcome (done, refused, failed).",
            labels=("lock", "kind", "outcome"),
        )
        for manager in self._managers:
            for name, keeper in manager.locks.items():
                holds = manager.holds(name)
                held.add_metric((name,), holds)
                master.add_metric((name,), holds)
                left.add_metric((name,), max(0.0, keeper.left))
                if keeper.lock.record is not None:
                    token.add_metric((name,), keeper.lock.record.transitions)
                blocked.add_metric((name,), keeper.is_blocked)
                for (kind, outcome), count in sorted(keeper.writes.items()):
                    writes.add_metric((name, kind, outcome), count)
        yield from (held, master, left, token, blocked, writes)
