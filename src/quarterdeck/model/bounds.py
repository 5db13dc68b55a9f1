"""The bounds of the planner: times, counts, and limits of healing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HealingBounds:
    """The bounds of healing: when a dead replica is replaced, and a hanging program restarted, without a person. Times
    in seconds.
    """

    #: At most so many healings within ``window``; 0: no healing.
    budget: int = 3
    window: float = 3600.0
    #: How long a replica is dead before it is condemned. (A member is known to be down after 8 s.)
    after: float = 5.0
    #: The same where a mistake costs more: when half of a site looks dead at once, or when the replacement would have
    #: to go to another zone.
    later: float = 300.0
    #: Whether a replacement may go to another zone.
    other_zones: bool = True
    #: How long a program that was healthy is unhealthy before it is restarted, and how long one cannot be started, or
    #: exits repeatedly, before its replica is condemned.
    hung: float = 30.0
    #: The same for a member of etcd that is far behind and does not catch up; one that joins has at least as long as
    #: any program has to ``start``.
    lagging: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The bounds of the planner. Times in seconds."""

    #: Raft entries that a member may be behind and still count as having the data.
    lag_bound: int = 1_000
    #: The DNS record's time to live.
    ttl: float = 5.0
    #: How long a backend without new connections keeps its old ones before its apiserver stops, and how long an old
    #: address is kept past ``ttl``.
    drain: float = 1.0
    #: Whether a revision whose programs do not run is rejected.
    goes_back: bool = True
    #: Whether the controllers of all replicas may stop at once.
    together: bool = False
    #: Whether replicas whose certificates have expired are restarted for new ones although no quorum answers.
    offline: bool = False
    #: How long a program of a revision in rollout may run without being ready, while its dependencies are healthy.
    #: kubeadm allows 240 s (its startup probe, 24 times 10 s), within which 8 GiB of data are read, or copied to a
    #: member; a loaded machine takes longer, and no client is affected: so two and a half times as long.
    start: float = 600.0
    #: How long a program of a first revision exits repeatedly before the revision is rejected: its dependencies may
    #: still be starting.
    first_start: float = 15.0
    #: How long a program of a first revision may run without being ready and without new output. As long as kubeadm
    #: waits for a control plane (its controlPlaneComponentHealthCheck, 4 minutes): it has no data to read yet.
    first_ready: float = 240.0
    #: How many seconds of history a compaction keeps: watches have long received what is older.
    history: float = 5.0
    #: How long a quorum must be lost before the plane is recovered by itself.
    patience: float = 300.0
    #: How long the controllers of a new epoch wait for a kubelet, from when the first apiserver serves. Kubelets renew
    #: their Leases each 10 s, and retry within 7 s (k8s.io/component-helpers: apimachinery/lease/controller.go).
    kubelets: float = 60.0
    healing: HealingBounds = HealingBounds()
