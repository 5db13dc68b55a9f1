"""What is true in a simulated world: machines, members, units, load balancers, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from quarterdeck.model.memory import Memory
from quarterdeck.model.slots import Slot
from quarterdeck.model.world import Component, Settings
from quarterdeck.planner.quorum import Voter, home, quorum

#: Names in ``Truth.mute`` of what is no machine that hosts replicas.
DNS = "dns"
ETCD = "etcd"


class Power(StrEnum):
    """The state of a simulated machine."""

    ON = "on"
    OFF = "off"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimMember:
    """A member: ``behind`` in ticks of copying still to do, ``silent`` in ticks without a sign of life, ``unserved`` in
    ticks until it publishes itself again (a joiner that got its own publication in a snapshot).
    """

    id: int
    learner: bool
    behind: int = 0
    silent: int = 0
    unserved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimReplica:
    """What is on a machine for one replica. ``units`` are wanted to run; ``crashed`` ones are down until the
    next tick; ``warm`` says that the apiserver has finished starting.
    """

    units: frozenset[Component] = frozenset()
    crashed: frozenset[Component] = frozenset()
    data: bool = False
    warm: bool = False
    member: SimMember | None = None

    def runs(self, component: Component) -> bool:
        """Whether a unit runs, as long as the machine does."""
        return component in self.units and component not in self.crashed


NOTHING = SimReplica()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimMachine:
    """A machine of the simulated sites."""

    name: str
    site: str
    zone: str
    power: Power = Power.ON


@dataclass(frozen=True, kw_only=True)
class Truth:
    """All that is true; what follows from it is worked out once, when it is first asked for.

    ``cuts`` are pairs of sites (from, to) that packets do not pass; since all talk needs both ways, a cut one way
    stops it both ways. ``dead_edges`` are sites whose load balancer's machine is off. ``mute`` is what works but does
    not answer the manager: machines, load balancers (``edge``), the DNS server, etcd's membership. ``front`` is the
    site of a fixed address: then there is no name, and ``record`` is that site always.
    """

    slots: tuple[Slot, ...]
    memory: Memory
    machines: tuple[SimMachine, ...]
    replicas: tuple[tuple[str, SimReplica], ...] = ()
    balancers: tuple[tuple[str, frozenset[str]], ...] = ()
    dead_edges: frozenset[str] = frozenset()
    record: str | None = None
    front: str | None = None
    leader: str | None = None
    cuts: frozenset[tuple[str, str]] = frozenset()
    mute: frozenset[str] = frozenset()
    next_member: int = 1
    now: float = 0.0
    deleting: bool = False
    settings: Settings = field(default_factory=lambda: Settings(ttl=1.0, drain=1.0))

    @cached_property
    def _by_name(self) -> dict[str, SimReplica]:
        return dict(self.replicas)

    @cached_property
    def _sites(self) -> dict[str, str]:
        return {record.name: record.site for record in self.memory.replicas}

    @cached_property
    def _machines(self) -> dict[str, SimMachine]:
        by_name = {machine.name: machine for machine in self.machines}
        return {record.name: by_name[record.machine] for record in self.memory.replicas}

    def replica(self, name: str) -> SimReplica:
        """What is on the machine of a replica."""
        return self._by_name.get(name, NOTHING)

    def with_replica(self, name: str, replica: SimReplica | None) -> Truth:
        """The same truth with one replica changed, or gone."""
        changed = dict(self.replicas)
        changed.pop(name, None)
        if replica is not None:
            changed[name] = replica
        return replace(self, replicas=tuple(sorted(changed.items(), key=lambda entry: entry[0])))

    def machine_of(self, name: str) -> SimMachine:
        """The machine of a recorded replica."""
        return self._machines[name]

    def up(self, name: str) -> bool:
        """Whether the machine of a recorded replica runs."""
        return self._machines[name].power is Power.ON

    def answers(self, name: str) -> bool:
        """Whether it also answers the manager."""
        machine = self._machines[name]
        return machine.power is Power.ON and machine.name not in self.mute

    @cached_property
    def members(self) -> dict[str, SimMember]:
        """The members by replica."""
        return {name: replica.member for name, replica in self.replicas if replica.member is not None}

    @cached_property
    def _live(self) -> frozenset[str]:
        """The members whose etcd runs on its data."""
        return frozenset(
            name
            for name, replica in self.replicas
            if replica.member is not None and replica.data and replica.runs(Component.ETCD) and self.up(name)
        )

    def connected(self, one: str, other: str) -> bool:
        """Whether two sites can talk."""
        return one == other or not self.cuts or not {(one, other), (other, one)} & self.cuts

    def _followers(self, leader: str) -> frozenset[str]:
        """The live members that the would-be leader hears, itself included."""
        if not self.cuts:
            return self._live
        site = self._sites[leader]
        return frozenset(name for name in self._live if self.connected(site, self._sites[name]))

    @cached_property
    def elected(self) -> str | None:
        """Who leads: the leader of before if it can, else the first voter that a quorum can follow."""
        votes = sorted(name for name, member in self.members.items() if not member.learner)
        for name in ([self.leader] if self.leader in votes else []) + votes:
            if name in self._live and len(self._followers(name).intersection(votes)) >= quorum(len(votes)):
                return name
        return None

    @cached_property
    def following(self) -> frozenset[str]:
        """The members that follow a leader which a quorum follows."""
        return self._followers(self.elected) if self.elected is not None else frozenset()

    @cached_property
    def healthy(self) -> frozenset[str]:
        """Those of them that serve clients."""
        return frozenset(name for name in self.following if not self.members[name].unserved)

    @cached_property
    def voters(self) -> frozenset[Voter]:
        """The voters, for quorum arithmetic."""
        return frozenset(
            Voter(name, self._sites[name], name in self.healthy)
            for name, member in self.members.items()
            if not member.learner
        )

    @cached_property
    def home(self) -> str | None:
        """The site that holds a quorum by itself."""
        return home(self.voters)

    @cached_property
    def serving(self) -> frozenset[str]:
        """The replicas whose apiserver answers clients with 200 on /readyz."""
        return frozenset(
            name
            for name, replica in self.replicas
            if replica.warm
            and replica.runs(Component.APISERVER)
            and name in self.healthy
            and replica.member is not None
            and not replica.member.learner
        )

    @cached_property
    def _reached(self) -> dict[str, frozenset[str]]:
        return {
            site: frozenset(name for name in names & self.serving if self.connected(site, self._sites[name]))
            for site, names in self.balancers
            if site not in self.dead_edges
        }

    def reached_from(self, site: str) -> frozenset[str]:
        """The ready apiservers that the load balancer of a site leads to."""
        return self._reached.get(site, frozenset())


def edge(site: str) -> str:
    """The name in ``Truth.mute`` of the machine of a site's load balancer."""
    return f"edge of {site}"
