"""The etcd clusters of a plane: the main one, and on some planes one that has the events alone.

Each is known by itself: who founded it, who its members are, what data is its own. All rules about members are asked
for one cluster at a time, on a world in which that one stands where the main one does (``of``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.model.components import Component


class Cluster(StrEnum):
    """An etcd cluster of a plane."""

    MAIN = "main"
    EVENTS = "events"  # kube-apiserver's /events: kept for an hour, and never worth an outage


#: What people call a cluster.
CALLED: Mapping[Cluster, str] = {Cluster.MAIN: "etcd", Cluster.EVENTS: "the events' etcd"}
#: The field that says how large its database may become.
QUOTA: Mapping[Cluster, str] = {
    Cluster.MAIN: "spec.etcd.quotaBytes",
    Cluster.EVENTS: "spec.etcd.events.quotaBytes",
}
#: The program that is a member.
MEMBER: Mapping[Cluster, Component] = {Cluster.MAIN: Component.ETCD, Cluster.EVENTS: Component.EVENTS_ETCD}
#: The cluster that a program is a member of; others are of none.
CLUSTER: Mapping[Component, Cluster] = {component: cluster for cluster, component in MEMBER.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """A cluster whose database has no room left (its alarm NOSPACE): ``since`` when that was seen, and the ``revision``
    that all its members had then. ``compacted``: the history before that was forgotten, ``since`` then;
    ``defragmented``: the replicas whose members gave free room back after it.
    """

    since: float
    revision: int
    compacted: bool = False
    defragmented: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMemory:
    """What is remembered of a cluster; ``Memory`` says the same of the main one.

    ``epoch`` counts the clusters that there were of this name (0: none yet): a new one has nothing of the one before,
    and volumes of its own. There is one as long as somebody founds it, or did (``bootstrap``).
    """

    epoch: int = 0
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: int = 0
    revision: int = 0
    full: Full | None = None

    @property
    def exists(self) -> bool:
        """Whether there is one now."""
        return bool(self.bootstrap)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMemory:
    """What is remembered of a replica's member of a cluster of that ``epoch``; ``Replica`` says the same of the main
    one.
    """

    epoch: int
    storage_class: str = ""
    listed: bool = False
    member_id: int = 0
    restarted: bool = False
    started: bool = False
    differs: bool = False
