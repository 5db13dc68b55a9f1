"""Observations made by hand, for what single rules make of situations that few stories come by."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

from support.components import having

from model.worlds import ZONES, wanted
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import MachineFact, ReplicaFact, World
from quarterdeck.planner.view import View, view


@dataclass(frozen=True)
class Seen:
    """A replica as it is seen: unless told otherwise a healthy voter that has the data and runs everything.

    The number in its name tells its slot: the first at a site fills the first one there, and so on. ``member``: whether
    etcd lists it now; ``listed``, ``started``, ``restarted``: what is remembered.
    """

    name: str
    _: KW_ONLY
    member: bool = True
    learner: bool = False
    health: Health = Health.HEALTHY
    lag: int | None = 0
    published: bool = True
    machine: MachineState = MachineState.UP
    etcd: UnitState = UnitState.RUNNING
    apiserver: UnitState = UnitState.RUNNING
    ready: bool | None = True
    peer_up: bool = True
    has_data: bool | None = True
    refused: str = ""
    listed: bool = True
    started: bool = True
    restarted: bool = False
    slot: Slot | None = None

    @property
    def site(self) -> str:
        return self.name.split("-")[0]

    @property
    def record(self) -> Replica:
        """What is remembered of it."""
        index = int(self.name.split("-")[1]) - 1
        slot = self.slot or wanted(self.site, index + 1)[index]
        return Replica(
            name=self.name,
            slot=slot,
            machine=f"{self.site}-{slot.zone or ZONES[index % len(ZONES)]}{index // len(ZONES) + 1}",
            listed=self.listed,
            started=self.started,
            restarted=self.restarted,
        )

    def as_member(self, number: int) -> MemberFact:
        """What etcd says of it."""
        return MemberFact(
            id=number,
            replica=self.name,
            learner=self.learner,
            health=self.health,
            lag=self.lag,
            published=self.published,
        )

    @property
    def fact(self) -> ReplicaFact:
        """What its machine says of it."""
        running = {Component.ETCD: self.etcd, Component.APISERVER: self.apiserver}
        return ReplicaFact(
            name=self.name,
            machine=self.machine,
            units=tuple(
                (component, running.get(component, UnitState.RUNNING)) for component in having(events=("",)).of("")
            ),
            peer_up=self.peer_up,
            ready=self.ready,
            has_data=self.has_data,
            refused=self.refused,
        )


def voters_at(site: str, count: int, *, first: int = 1) -> tuple[Seen, ...]:
    """Voters as above."""
    return tuple(Seen(f"{site}-{index}") for index in range(first, first + count))


def left(one: Seen) -> Seen:
    """Its apiserver has stopped."""
    return replace(one, apiserver=UnitState.STOPPED, ready=False)


def dead(name: str) -> Seen:
    """A voter on a machine that is off."""
    return Seen(name, health=Health.DOWN, machine=MachineState.DOWN, ready=None, lag=None)


def learner(name: str) -> Seen:
    """A learner that has caught up."""
    return Seen(name, learner=True, apiserver=UnitState.ABSENT, ready=False)


def placed(name: str, *, machine: MachineState = MachineState.UP) -> Seen:
    """A replica that has a machine, and is no member yet."""
    idle = UnitState.ABSENT
    return Seen(
        name, member=False, listed=False, started=False, machine=machine, etcd=idle, apiserver=idle, has_data=False
    )


def seen(*replicas: Seen, to: str, count: int, leader: str | None = None) -> World:
    """All of them, seen while the plane is wanted at ``to`` with ``count`` replicas. Ids of members begin at 1."""
    numbered = tuple(enumerate(replicas, 1))
    records = tuple(replace(each.record, member_id=number if each.listed else 0) for number, each in numbered)
    members = tuple(each.as_member(number) for number, each in enumerate(replicas, 1) if each.member)
    return World(
        slots=wanted(to, count),
        memory=Memory(
            next_ordinal=9, replicas=records, bootstrap=("east-1",), created=True, cluster_id=1, served_site="east"
        ),
        now=0.0,
        membership=Membership(members=members, leader=leader),
        replicas=tuple(each.fact for each in replicas),
        machines=tuple(
            MachineFact(name=each.record.machine, site=each.site, zone=each.record.machine[-2], state=each.machine)
            for each in replicas
        ),
        record="east",
    )


def viewed(*replicas: Seen, to: str, count: int, leader: str | None = None) -> View:
    """The same as rules read it."""
    return view(seen(*replicas, to=to, count=count, leader=leader))
