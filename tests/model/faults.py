"""The faults that can happen in a world, and their repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quarterdeck.model.world import Component
from quarterdeck.planner.quorum import has_quorum
from quarterdeck.planner.truth import DNS, ETCD, Power, SimReplica, Truth, edge

#: Ticks until a joiner publishes itself a second time.
UNSERVED = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """A thing that goes wrong (or right again): its name, and the truth after it."""

    name: str
    truth: Truth


def faults(truth: Truth) -> Iterator[Fault]:
    """Every single fault of the world: each leaves it in a state from which it can be repaired."""
    yield from _machines(truth)
    yield from _units(truth)
    yield from links(truth)
    yield from _sites(truth)
    yield from _silence(truth)
    yield from _snapshots(truth)


def data_loss(truth: Truth) -> Iterator[Fault]:
    """One member's data folder is deleted under it, or all that its machine had, while all others are well."""
    if whole(truth) and all(name in truth.healthy for name in truth.members):
        for name in truth.members:
            lost = replace(truth.replica(name), data=False)
            yield Fault(f"data of {name} is deleted", truth.with_replica(name, lost))
            blank = SimReplica(member=lost.member)
            yield Fault(f"machine of {name} comes back blank", truth.with_replica(name, blank))


def survivable(truth: Truth) -> bool:
    """Whether a quorum has its data. If not, the plane itself is lost, and what to do then is the user's decision."""
    return not truth.voters or has_quorum(
        replace(voter, healthy=truth.replica(voter.replica).data) for voter in truth.voters
    )


def whole(truth: Truth) -> bool:
    """Whether every machine and link works and answers."""
    return not (truth.cuts or truth.dead_edges or truth.mute) and all(
        machine.power is Power.ON for machine in truth.machines
    )


def spared(truth: Truth, site: str) -> bool:
    """Whether nothing that is still out of order is at ``site``, and a quorum answers."""
    hurt = {machine.site for machine in truth.machines if machine.power is not Power.ON} | truth.dead_edges
    return truth.elected is not None and not (truth.cuts or truth.mute) and not {site, truth.front} & hurt


def repaired(truth: Truth) -> Truth:
    """Every machine and link is back; data that was deleted is not."""
    machines = truth.machines
    if any(machine.power is not Power.ON for machine in machines):
        machines = tuple(replace(each, power=Power.ON) if each.power is not Power.ON else each for each in machines)
    return replace(truth, machines=machines, cuts=frozenset(), dead_edges=frozenset(), mute=frozenset())


def mends(truth: Truth) -> Iterator[Fault]:
    """Everything that can come back by itself, one by one."""
    for machine in truth.machines:
        if machine.power is not Power.ON:
            yield Fault(f"{machine.name} is back", _power(truth, {machine.name}, Power.ON))
    if truth.cuts:
        yield Fault("sites see each other again", replace(truth, cuts=frozenset()))
    for site in sorted(truth.dead_edges):
        yield Fault(f"{edge(site)} is back", replace(truth, dead_edges=truth.dead_edges - {site}))
    for name in sorted(truth.mute):
        yield Fault(f"{name} answers again", replace(truth, mute=truth.mute - {name}))


def new_driver(truth: Truth) -> Truth:
    """Another driver takes over: it does not know for how long members have been silent."""
    replicas = tuple((name, _heard(replica)) for name, replica in truth.replicas)
    return replace(truth, replicas=replicas) if replicas != truth.replicas else truth


def _heard(replica: SimReplica) -> SimReplica:
    if replica.member is None or not replica.member.silent:
        return replica
    return replace(replica, member=replace(replica.member, silent=0))


def _power(truth: Truth, names: set[str], power: Power) -> Truth:
    machines = tuple(
        replace(each, power=power) if each.name in names and each.power is not power else each
        for each in truth.machines
    )
    return replace(truth, machines=machines)


def _off(truth: Truth, names: set[str]) -> Truth:
    """Power lost: nothing of the machines is warm any more."""
    for record in truth.memory.replicas:
        if record.machine in names and truth.replica(record.name).warm:
            truth = truth.with_replica(record.name, replace(truth.replica(record.name), warm=False))
    return _power(truth, names, Power.OFF)


def _machines(truth: Truth) -> Iterator[Fault]:
    for record in truth.memory.replicas:
        if truth.up(record.name):
            yield Fault(f"{record.machine} dies", _off(truth, {record.machine}))
            yield Fault(f"{record.machine} freezes", _power(truth, {record.machine}, Power.FROZEN))


def _units(truth: Truth) -> Iterator[Fault]:
    for record in truth.memory.replicas:
        replica = truth.replica(record.name)
        for component in Component:
            if replica.runs(component) and truth.up(record.name):
                warm = replica.warm and component is not Component.APISERVER
                crashed = replace(replica, crashed=replica.crashed | {component}, warm=warm)
                yield Fault(f"{component} of {record.name} crashes", truth.with_replica(record.name, crashed))
        if replica.runs(Component.ETCD) and truth.up(record.name):
            stopped = replace(replica, units=replica.units - {Component.ETCD})
            yield Fault(f"somebody stops etcd of {record.name}", truth.with_replica(record.name, stopped))


def _places(truth: Truth) -> list[str]:
    return sorted({record.site for record in truth.memory.replicas} | {site for site, _ in truth.balancers})


def links(truth: Truth) -> Iterator[Fault]:
    """Two sites no longer see each other."""
    sites = _places(truth)
    if truth.cuts:
        return
    for index, one in enumerate(sites):
        for other in sites[index + 1 :]:
            both = frozenset({(one, other), (other, one)})
            yield Fault(f"{one} and {other} are cut", replace(truth, cuts=both))
            # A cut one way ends up as the same truth (worlds.normal): nothing gets an answer any more.
            yield Fault(f"{one} no longer reaches {other}", replace(truth, cuts=frozenset({(one, other)})))


def _sites(truth: Truth) -> Iterator[Fault]:
    for site in _places(truth):
        dark = replace(truth, dead_edges=truth.dead_edges | {site})
        if site not in truth.dead_edges:
            yield Fault(f"{edge(site)} dies", dark)
        there = {machine.name for machine in truth.machines if machine.site == site}
        if any(machine.name in there and machine.power is not Power.OFF for machine in truth.machines):
            yield Fault(f"site {site} dies", _off(dark, there))


def _silence(truth: Truth) -> Iterator[Fault]:
    """What goes on working, but does not answer the manager."""
    used = [record.machine for record in truth.memory.replicas if truth.answers(record.name)]
    edges = [edge(site) for site, _ in truth.balancers if site not in truth.dead_edges]
    for name in (*used, *edges, DNS, ETCD):
        if name not in truth.mute:
            yield Fault(f"{name} does not answer", replace(truth, mute=truth.mute | {name}))


def _snapshots(truth: Truth) -> Iterator[Fault]:
    """A joiner gets its own publication in the snapshot that it joins by, and does not serve until the next one."""
    for name, member in truth.members.items():
        if member.learner and not member.unserved and not truth.memory.replica(name).started:
            unserved = replace(truth.replica(name), member=replace(member, unserved=UNSERVED))
            yield Fault(f"the publication of {name} is in its snapshot", truth.with_replica(name, unserved))
