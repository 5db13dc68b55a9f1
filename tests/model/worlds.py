"""Small worlds for the model tests."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TypedDict, Unpack

from support.components import having

from model.events_cluster import with_member
from model.faulty_truth import FaultyTruth
from quarterdeck.model.clusters import Cluster, Full
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.simulated.parts import SimMachine, SimReplica
from quarterdeck.planner.slots import slots

#: The id that is noted of a member which is gone.
GONE = -1
SITES = ("east", "west", "north")
ZONES = ("a", "b", "c")


def wanted(site: str, replicas: int) -> tuple[Slot, ...]:
    return slots(site=site, zones=ZONES, replicas=replicas)


def standing(site: str) -> Slot | None:
    """The slot of a standby at a site; None: there is none."""
    return Slot(site=site, zone="") if site else None


def beside(truth: FaultyTruth, site: str) -> FaultyTruth:
    """The same truth, with a standby at a site: in place already before what is asked for now, but for a new plane."""
    there = truth.memory.replicas
    if not there:
        return replace(truth, standby=standing(site))
    before = replace(
        truth,
        slots=wanted(there[0].site, len(there)),
        revision=there[0].revision,
        deleting=False,
        condemned=(),
        standby=standing(site),
    )
    to = there[0].site if truth.slots[0].site == site else site  # a standby is never where the plane is
    return replace(
        settled(before),
        standby=standing(to),
        slots=truth.slots,
        revision=truth.revision,
        deleting=truth.deleting,
        condemned=truth.condemned,
    )


def machines(*sites: str, per_zone: int = 2) -> tuple[SimMachine, ...]:
    return tuple(
        SimMachine(name=f"{site}-{zone}{number}", site=site, zone=zone)
        for site in sites
        for zone in ZONES
        for number in range(1, per_zone + 1)
    )


class Endpoint(TypedDict, total=False):
    """``front``: the plane is behind a fixed address there; ``twins``: the sites with two edges, ``floating``: whose
    addresses float, ``shared``: those of them that share one; ``direct``: its name is to lead to apiservers themselves.
    """

    front: str | None
    twins: frozenset[str]
    floating: frozenset[str]
    shared: frozenset[str]
    direct: bool


def empty(site: str, replicas: int, *, sites: tuple[str, ...] = SITES, **endpoint: Unpack[Endpoint]) -> FaultyTruth:
    """A plane that was just asked for."""
    there = machines(*sites)
    return FaultyTruth(
        slots=wanted(site, replicas),
        memory=Memory(proven=False),
        machines=there,
        record=endpoint.get("front"),
        **endpoint,
    )


def settled(truth: FaultyTruth, *, rounds: int = 300) -> FaultyTruth:
    """The truth after fault-free rounds until done."""
    for _ in range(rounds):
        now = plan(observe(truth))
        if now.done:
            return truth
        for step in now.now:
            truth = apply(truth, step)
        if not now.now:
            truth = tick(truth)
    raise AssertionError(f"not done after {rounds} rounds: {plan(observe(truth))}")


def promoted(replicas: int, to: int | None) -> FaultyTruth:
    """A plane settled at east behind an address that leads to its only replica, or to the load balancer there, of which
    ``to`` replicas are asked for (None: it is just asked for; 0: it is to go).
    """
    asked = replace(empty("east", replicas, front="east"), record=None, promoted=True)
    asked = replace(asked, settings=replace(asked.settings, ttl=0.0))
    if to is None:
        return asked
    there = settled(asked)
    return replace(there, slots=wanted("east", to)) if to else replace(there, deleting=True)


def moving(replicas: int, to: int, *, sites: tuple[str, ...] = SITES, **endpoint: Unpack[Endpoint]) -> FaultyTruth:
    """A plane settled at east whose user has just asked for it at west."""
    there = empty("east", replicas, sites=sites, **endpoint)
    return replace(settled(there), slots=wanted("west", to))


def still(
    replicas: int, there: tuple[str, ...] = (), *, direct: bool = False, apart: frozenset[str] = frozenset()
) -> FaultyTruth:
    """A plane settled at east, of which nothing is asked; ``there``: the machines of east, zone and number; ``apart``:
    the revisions that keep events apart.
    """
    truth = replace(empty("east", replicas, direct=direct), programs=having(events=apart))
    if there:
        others = tuple(each for each in truth.machines if each.site != "east")
        here = tuple(SimMachine(name=f"east-{each}", site="east", zone=each[0]) for each in there)
        truth = replace(truth, machines=(*here, *others))
    return settled(truth)


#: What replicas ran before, and what is asked for now; and what they must be of between, where those must not meet.
FORMER, NEW = "one", "two"
BETWEEN = "between"
#: Minor versions of etcd: the last one does not read what the first has written.
OLD_ETCD, NEW_ETCD, NEWEST_ETCD = (3, 5), (3, 6), (3, 7)


def changing(
    replicas: int,
    to: int,
    change: ReplicaChange,
    *,
    broken: Component | None = None,
    hangs: Component | None = None,
    per_zone: int = 2,
    front: str | None = None,
    condemned: tuple[str, ...] = (),
    apart: frozenset[str] = frozenset(),
    cloud: frozenset[str] = frozenset(),
    handed: bool = False,
    together: bool = False,
    upgraded: bool = False,
    direct: bool = False,
    roomy: bool = False,
    newer_etcd: EtcdMinor | None = None,
    keeps_one: bool = False,
) -> FaultyTruth:
    """A plane settled at east whose user has just asked for another revision there; ``broken``: a program that ends
    again and again as that has it, ``hangs``: one that runs and is never ready; ``apart``: the revisions that keep
    events apart, ``cloud`` those that have a cloud controller manager; ``handed``: controllers of the former must not
    run beside those of the new one, ``together``: all of them may stop at once; ``upgraded``: the new one, and what is
    between, have programs of a newer minor version, and none of the new one may run beside the former one; ``roomy``:
    etcd has a larger quota as the new one has it; ``newer_etcd``: the minor version of etcd that the new one
    has, the former one has the one before; ``keeps_one``: one replica does not get it.
    """
    stops = (FORMER, BETWEEN, NEW) if handed or upgraded else (FORMER, NEW)
    sites = ("east",) if per_zone == 1 else SITES
    start = FaultyTruth(
        slots=wanted("east", replicas),
        memory=Memory(proven=False),
        machines=machines(*sites, per_zone=per_zone),
        record=front,
        front=front,
        direct=direct,
        revision=FORMER,
        via=(BETWEEN,) if BETWEEN in stops else (),
        apart=frozenset({frozenset({FORMER, NEW})}) if BETWEEN in stops else frozenset(),
        changes=tuple(
            (before, after, replace(change, downgrade=upgraded and after == FORMER))
            for before, after in permutations(stops, 2)
        ),
        programs=having(events=apart, cloud=cloud),
        roomy=frozenset({NEW}) if roomy else frozenset(),
        etcd_minors=((FORMER, (newer_etcd[0], newer_etcd[1] - 1)), (NEW, newer_etcd)) if newer_etcd else (),
        keeps_one=keeps_one,
        broken=frozenset({(NEW, broken)}) if broken is not None else frozenset(),
        hanging=frozenset({(NEW, hangs)}) if hangs is not None else frozenset(),
    )
    start = replace(start, settings=replace(start.settings, together=together))
    asked = replace(settled(start), slots=wanted("east", to), condemned=condemned)
    return asked if condemned else replace(asked, revision=NEW)


def creating(replicas: int, component: Component, *, hangs: bool = False) -> FaultyTruth:
    """A plane that was just asked for, of whose first revision a program exits repeatedly, or (``hangs``) runs and
    is never ready.
    """
    bad, none = frozenset({(FORMER, component)}), frozenset[tuple[str, Component]]()
    change = ReplicaChange(restart=frozenset({component}))
    return replace(
        empty("east", replicas),
        revision=FORMER,
        changes=tuple((*each, change) for each in permutations((FORMER, NEW), 2)),
        broken=none if hangs else bad,
        hanging=bad if hangs else none,
    )


def ages(since: tuple[tuple[str, float], ...], now: float, oldest: float) -> tuple[tuple[str, float], ...]:
    """Moments as ages, so that equal situations at different times are equal values. ``oldest``: the seconds past
    which nothing tells one age from another.
    """
    return tuple(sorted((name, max(moment - now, -oldest)) for name, moment in since)) if since else ()


def normal(truth: FaultyTruth) -> FaultyTruth:
    """The same truth told without absolute times and ids, so that equal situations are equal values."""
    memory, settings = truth.memory, truth.settings
    held = ages(memory.held, truth.now, settings.ttl + settings.drain)
    draining = ages(memory.draining, truth.now, _longest_drain(truth))
    unready = ages(memory.unready, truth.now, max(settings.start, settings.first_start, settings.first_ready))
    if (held, draining, unready) != (memory.held, memory.draining, memory.unready):
        memory = replace(memory, held=held, draining=draining, unready=unready)
    memory = _with_ages_of_room(memory, truth.now, settings.history)
    if memory.quorum_lost is not None:
        memory = replace(memory, quorum_lost=max(memory.quorum_lost - truth.now, -settings.patience))
    if memory.seed is not None and memory.seed.served is not None:
        served = max(memory.seed.served - truth.now, -settings.kubelets)
        memory = replace(memory, seed=replace(memory.seed, served=served))
    if memory.down or memory.healed or memory.condemned or memory.unhealthy:
        memory = _normal_healing(memory, truth)
    rank = ranks(truth.replicas)
    replicas, memory = _ranked(truth.replicas, rank), _with_noted_ranks(memory, rank)
    following = len(rank) + 1
    unnamed = ages(truth.unnamed, truth.now, settings.ttl + settings.drain)
    if (memory, replicas, following, 0.0) == (truth.memory, truth.replicas, truth.next_member, truth.now):
        return truth if unnamed == truth.unnamed else replace(truth, unnamed=unnamed)
    return replace(truth, memory=memory, replicas=replicas, next_member=following, unnamed=unnamed, now=0.0)


def _longest_drain(truth: FaultyTruth) -> float:
    """Whose own address clients may hold drains for longer."""
    led = APISERVERS in (truth.record, truth.memory.served_site, *dict(truth.memory.held))
    return truth.settings.drain + (truth.settings.ttl if truth.direct or led else 0.0)


def _with_ages_of_room(memory: Memory, now: float, oldest: float) -> Memory:
    """Since when there is no room, as an age."""
    full, events = (_aged(each, now, oldest) for each in (memory.full, memory.events.full))
    if (full, events) == (memory.full, memory.events.full):
        return memory
    return replace(memory, full=full, events=replace(memory.events, full=events))


def _aged(full: Full | None, now: float, oldest: float) -> Full | None:
    if full is None:
        return None
    return replace(full, since=max(full.since - now, -oldest))


def _normal_healing(memory: Memory, truth: FaultyTruth) -> Memory:
    """What was condemned too long ago to count is forgotten; since when one is condemned decides nothing."""
    healing = truth.settings.healing
    longest = max(healing.after, healing.later)
    if truth.standby is not None:  # it is restarted before it is replaced
        longest = max(longest, 2 * max(healing.hung, healing.lagging, truth.settings.start))
    lately, revived = (ages(each, truth.now, healing.window) for each in (memory.healed, memory.revived))
    return replace(
        memory,
        down=ages(memory.down, truth.now, longest),
        condemned=tuple(sorted((replace(each, since=0.0) for each in memory.condemned), key=lambda one: one.replica)),
        healed=tuple(entry for entry in lately if entry[1] > -healing.window),
        unhealthy=ages(
            memory.unhealthy, truth.now, max(healing.hung, healing.lagging, healing.later, truth.settings.start)
        ),
        revived=tuple(entry for entry in revived if entry[1] > -healing.window),
    )


def ranks(replicas: tuple[tuple[str, SimReplica], ...]) -> dict[int, int]:
    """The rank of each member's id among all of them."""
    ids = sorted(
        member.id for _, replica in replicas for member in (replica.member, replica.events) if member is not None
    )
    return {number: index + 1 for index, number in enumerate(ids)}


def _with_noted_ranks(memory: Memory, rank: dict[int, int]) -> Memory:
    """The ids that were noted of members, as their ranks; those of members that are gone are all alike."""
    replicas = tuple(_with_noted_rank(each, rank) for each in memory.replicas)
    return memory if replicas == memory.replicas else replace(memory, replicas=replicas)


def _with_noted_rank(record: Replica, rank: dict[int, int]) -> Replica:
    number, events = record.member_id, record.events
    ranked = rank.get(number, GONE) if number else 0
    if events is not None and events.member_id and rank.get(events.member_id, GONE) != events.member_id:
        return replace(record, member_id=ranked, events=replace(events, member_id=rank.get(events.member_id, GONE)))
    return record if ranked == number else replace(record, member_id=ranked)


def _ranked(replicas: tuple[tuple[str, SimReplica], ...], rank: dict[int, int]) -> tuple[tuple[str, SimReplica], ...]:
    """Member ids as their ranks: only their order matters."""
    if all(number == now for number, now in rank.items()):
        return replicas
    return tuple((name, _with_ranks(replica, rank)) for name, replica in replicas)


def _with_ranks(replica: SimReplica, rank: dict[int, int]) -> SimReplica:
    for cluster, member in ((Cluster.MAIN, replica.member), (Cluster.EVENTS, replica.events)):
        if member is not None:
            replica = with_member(replica, cluster, replace(member, id=rank[member.id]))
    return replica


def moving_apart(replicas: int, to: int) -> FaultyTruth:
    """A plane settled at east that keeps events apart, whose user has just asked for it at west."""
    start = changing(replicas, replicas, ReplicaChange(), apart=frozenset({FORMER}))
    return replace(start, slots=wanted("west", to), revision=FORMER)
