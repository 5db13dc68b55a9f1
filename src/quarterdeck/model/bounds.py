"""The bounds that the planner keeps: times, counts, and when healing may act."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HealingBounds:
    """The bounds of healing: when a replica that is dead is exchanged, and a program that hangs is started anew,
    without a person. Times in seconds.

    ``budget``: at most so many within ``window``, 0: none ever. ``after``: for how long one is dead before it is
    condemned (that a member is down is known after 8 s). ``later``: the same where it costs more than that to be wrong:
    when half of a site looks dead at once, or when the next one would have to go to another zone than is wanted.
    ``other_zones``: whether it may. ``hung``: for how long a program that ran well does so no more before it is started
    anew, and for how long one cannot be started, or ends again and again, before its replica is condemned. ``lagging``:
    the same for a member of etcd that is far behind and comes no nearer; one that joins has at least as long as any
    program has to ``start``.
    """

    budget: int = 3
    window: float = 3600.0
    after: float = 5.0
    later: float = 300.0
    other_zones: bool = True
    hung: float = 30.0
    lagging: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The bounds that the planner keeps. Times in seconds, ``lag_bound`` in raft entries.

    ``ttl`` is the DNS record's time to live; ``drain`` how long a backend that gets no new connections keeps
    its old ones before its apiserver is told to stop, and how long an old address is kept past ``ttl``.
    ``goes_back``: whether a revision whose programs do not run is given up. ``together``: whether the controllers of
    all replicas may stop at once. ``start``: for how long a program of one
    that is rolled out may run without being ready, though all that it depends on is well. kubeadm allows 240 s (its
    startup probe, 24 times 10 s), within which 8 GiB of data are read, or copied to a member; on a machine under load
    all takes longer, and nobody suffers meanwhile: so two and a half times as long. ``history``: of how many seconds
    before now history is kept when room is made in etcd: whoever watches has long got what was before. ``patience``:
    for how many seconds a quorum must have been lost before the plane is recovered without being asked for.
    Of a first revision, which has none to go back to: ``first_start`` is for how long a program of it ends again and
    again before it is given up, since what it needs may just be coming up; ``first_ready`` for how long one may run
    without being ready while nothing new is seen of it. As long as kubeadm waits for a control plane (its
    controlPlaneComponentHealthCheck, 4 minutes): it has no data to read yet.
    """

    lag_bound: int = 1_000
    ttl: float = 5.0
    drain: float = 1.0
    goes_back: bool = True
    together: bool = False
    start: float = 600.0
    first_start: float = 15.0
    first_ready: float = 240.0
    history: float = 5.0
    patience: float = 300.0
    healing: HealingBounds = HealingBounds()
