"""The etcd clusters of a plane: the main one, and on some planes one for the events alone.

Each has its own founders, members and data. All rules about members are evaluated for one cluster at a time, on a world
in which that cluster is in place of the main one (``of``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.model.components import Component
from quarterdeck.model.epochs import Seed


class Cluster(StrEnum):
    """An etcd cluster of a plane."""

    MAIN = "main"
    EVENTS = "events"  # kube-apiserver's /events: kept for an hour, and never worth an outage


#: The name of a cluster for people.
CALLED: Mapping[Cluster, str] = {Cluster.MAIN: "etcd", Cluster.EVENTS: "the events' etcd"}
#: The field of the spec that limits its database.
QUOTA: Mapping[Cluster, str] = {
    Cluster.MAIN: "spec.etcd.quotaBytes",
    Cluster.EVENTS: "spec.etcd.events.quotaBytes",
}
#: The program that is a member of the cluster.
MEMBER: Mapping[Cluster, Component] = {Cluster.MAIN: Component.ETCD, Cluster.EVENTS: Component.EVENTS_ETCD}
#: The cluster of which a program is a member; other programs have none.
CLUSTER: Mapping[Component, Cluster] = {component: cluster for cluster, component in MEMBER.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """A cluster whose database has no room left (its alarm NOSPACE)."""

    #: When that was observed, or when history was compacted.
    since: float
    #: The etcd revision that all its members had then.
    revision: int
    #: The history before that revision was compacted.
    compacted: bool = False
    #: The replicas whose members were defragmented after that.
    defragmented: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMemory:
    """The memory of a cluster; ``Memory`` has the same fields for the main one.

    ``epoch`` counts the clusters of this name (0: none yet): a new one shares nothing with the previous one, and has
    its own volumes. A cluster exists while ``bootstrap`` names its founders.
    """

    epoch: int = 0
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: int = 0
    revision: int = 0
    full: Full | None = None
    seed: Seed | None = None

    @property
    def exists(self) -> bool:
        """Whether the cluster exists now."""
        return bool(self.bootstrap)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMemory:
    """The memory of a replica's member of a cluster of that ``epoch``; ``Replica`` has the same fields for the main
    cluster.
    """

    epoch: int
    storage_class: str = ""
    listed: bool = False
    member_id: int = 0
    restarted: bool = False
    started: bool = False
    differs: bool = False
