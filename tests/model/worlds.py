"""Small worlds for the model tests, and the faults that can happen in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quarterdeck.model.memory import Memory
from quarterdeck.model.slots import Slot
from quarterdeck.model.world import Component
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulator import Power, SimMachine, Truth, apply, observe, tick
from quarterdeck.planner.slots import slots

SITES = ("east", "west", "north")
ZONES = ("a", "b", "c")


def wanted(site: str, replicas: int) -> tuple[Slot, ...]:
    return slots(site=site, zones=ZONES, storage_class="standard", replicas=replicas)


def machines(*sites: str, per_zone: int = 2) -> tuple[SimMachine, ...]:
    return tuple(
        SimMachine(name=f"{site}-{zone}{number}", site=site, zone=zone)
        for site in sites
        for zone in ZONES
        for number in range(1, per_zone + 1)
    )


def empty(site: str, replicas: int, *, sites: tuple[str, ...] = SITES) -> Truth:
    """A plane that was just asked for."""
    return Truth(slots=wanted(site, replicas), memory=Memory(), machines=machines(*sites))


def settled(truth: Truth, *, rounds: int = 300) -> Truth:
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


@dataclass(frozen=True)
class Fault:
    """A thing that goes wrong: its name, and the truth after it."""

    name: str
    truth: Truth


def _power(truth: Truth, machine: str, power: Power) -> Truth:
    return replace(
        truth,
        machines=tuple(replace(each, power=power) if each.name == machine else each for each in truth.machines),
    )


def _off(truth: Truth, machine: str) -> Truth:
    """Power lost: nothing of the machine is warm any more."""
    for record in truth.memory.replicas:
        if record.machine == machine:
            truth = truth.with_replica(record.name, replace(truth.replica(record.name), warm=False))
    return _power(truth, machine, Power.OFF)


def faults(truth: Truth) -> Iterator[Fault]:
    """Every single fault: machines off or frozen, units crashed, sites cut, data lost, whole sites dead."""
    used = [(record.name, record.machine, record.site) for record in truth.memory.replicas]
    for name, machine, _ in used:
        if truth.machine_of(name).power is Power.ON:
            yield Fault(f"{machine} dies", _off(truth, machine))
            yield Fault(f"{machine} freezes", _power(truth, machine, Power.FROZEN))
            replica = truth.replica(name)
            for component in (Component.ETCD, Component.APISERVER):
                if component in replica.units - replica.crashed:
                    crashed = replace(
                        replica,
                        crashed=replica.crashed | {component},
                        warm=replica.warm and component is not Component.APISERVER,
                    )
                    yield Fault(f"{component} of {name} crashes", truth.with_replica(name, crashed))
    sites = sorted({site for _, _, site in used})
    for index, one in enumerate(sites):
        for other in sites[index + 1 :]:
            both = frozenset({(one, other), (other, one)})
            if not truth.cuts:
                yield Fault(f"{one} and {other} are cut", replace(truth, cuts=both))
                yield Fault(f"{one} no longer reaches {other}", replace(truth, cuts=frozenset({(one, other)})))
    for site in sites:
        dead = replace(truth, dead_edges=truth.dead_edges | {site})
        for machine in truth.machines:
            if machine.site == site:
                dead = _off(dead, machine.name)
        if dead != truth:
            yield Fault(f"site {site} dies", dead)
        if site not in truth.dead_edges:
            yield Fault(f"edge of {site} dies", replace(truth, dead_edges=truth.dead_edges | {site}))


def data_loss(truth: Truth) -> Iterator[Fault]:
    """One member's data folder is deleted under it (while all others are well: more would be the end of it)."""
    members = [(name, replica) for name, replica in truth.replicas if replica.member and replica.data]
    if len(members) < 3 or any(machine.power is not Power.ON for machine in truth.machines):
        return
    for name, replica in members:
        yield Fault(f"data of {name} is deleted", truth.with_replica(name, replace(replica, data=False)))


def repaired(truth: Truth) -> Truth:
    """Every machine and link is back; data that was deleted is not."""
    for machine in truth.machines:
        truth = _power(truth, machine.name, Power.ON)
    return replace(truth, cuts=frozenset(), dead_edges=frozenset())


def normal(truth: Truth) -> Truth:
    """The same truth told without absolute times and ids, so that equal situations are equal values."""

    def age(since: float) -> float:
        return max(since - truth.now, -3.0)

    ids = sorted(replica.member.id for _, replica in truth.replicas if replica.member)
    rank = {number: index + 1 for index, number in enumerate(ids)}
    memory = replace(
        truth.memory,
        held=tuple(sorted((site, age(since)) for site, since in truth.memory.held)),
        draining=tuple(sorted((name, age(since)) for name, since in truth.memory.draining)),
    )
    replicas = tuple(
        (
            name,
            replace(replica, member=replace(replica.member, id=rank[replica.member.id])) if replica.member else replica,
        )
        for name, replica in truth.replicas
    )
    return replace(truth, memory=memory, replicas=replicas, next_member=len(ids) + 1, now=0.0)
