"""Measurements that are too expensive for each observation, or change less often: etcd's disk metrics, certificates,
backups.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from quarterdeck import clocks
from quarterdeck.actions.addresses import metrics_url
from quarterdeck.actions.plane import Plane
from quarterdeck.api.plane.backup import BackupStatus
from quarterdeck.engine.observation.queries import or_none
from quarterdeck.etcd.facts import MemberTimes
from quarterdeck.metrics import catalogue
from quarterdeck.metrics.metrics import Metrics
from quarterdeck.metrics.samples import Sample
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.world import World
from quarterdeck.pki.validity import certificates, expiry

#: Seconds between two measurements.
EVERY = 60.0
_SHARE = 0.99


@dataclass(kw_only=True)
class Measures:
    """A background task of one plane that measures them, and passes them to ``metrics``. ``steady``: a monotonic clock.

    It remembers the previous disk times: only the time since then counts.
    """

    metrics: Metrics
    steady: Callable[[], float] = clocks.steady
    _read: float = -math.inf
    _disks: dict[tuple[Cluster, str], MemberTimes] = field(default_factory=dict)

    async def turn(self, plane: Plane, world: World) -> None:
        """Measure, if it is due. Nothing is changed, and members that may be down are skipped."""
        if self.steady() - self._read < EVERY:
            return
        asked = [
            self._member(plane, cluster, record)
            for cluster in Cluster
            for record in plane.memory.replicas
            if _answers(world, cluster, record)
        ]
        if asked:  # else as soon as a member can be reached
            self._read = self.steady()
        found = [sample for found in await asyncio.gather(*asked) for sample in found]
        certificates_end = await asyncio.to_thread(_certificates, plane)
        self.metrics.measured(plane.name, (*found, *certificates_end, *_backup(plane.resource.status.backup)))

    async def _member(self, plane: Plane, cluster: Cluster, record: Replica) -> tuple[Sample, ...]:
        times = await or_none(plane.etcd.times(metrics_url(record, cluster)))
        return tuple(self._disk(cluster, record.name, times)) if times is not None else ()

    def _disk(self, cluster: Cluster, name: str, now: MemberTimes) -> Iterator[Sample]:
        """The disk times since the last measurement; in the first one since the member's start."""
        before = self._disks.get((cluster, name))
        self._disks[cluster, name] = now
        fsync = now.fsync.since(before.fsync) if before is not None else now.fsync
        commit = now.commit.since(before.commit) if before is not None else now.commit
        for metric, took in ((catalogue.FSYNC, fsync), (catalogue.COMMIT, commit)):
            if (seconds := took.quantile(_SHARE)) is not None:
                yield Sample(metric, (str(cluster), name), seconds)


def _answers(world: World, cluster: Cluster, record: Replica) -> bool:
    member = world.member(record.name, cluster)
    return member is not None and member.health is Health.HEALTHY


def _certificates(plane: Plane) -> tuple[Sample, ...]:
    ends = [expiry(pem) for _, pem in certificates(plane.secrets)]
    return (Sample(catalogue.CERTIFICATE, (), min(ends).timestamp()),) if ends else ()


def _backup(stored: BackupStatus | None) -> tuple[Sample, ...]:
    if stored is None:
        return ()
    found = [
        Sample(catalogue.RESTORABLE, (), stored.restorable_at.timestamp()),
        Sample(catalogue.BACKUP_SIZE, (), stored.size_bytes),
        Sample(catalogue.BACKUP_FULLS, (), stored.fulls),
    ]
    if stored.verified_at is not None:
        found.append(Sample(catalogue.VERIFIED, (), stored.verified_at.timestamp()))
    return tuple(found)
