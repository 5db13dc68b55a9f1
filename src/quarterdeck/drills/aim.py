"""The targets of a drill: from the requested failure to faults on machines, and to what fails with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed
from quarterdeck.model.components import Component
from quarterdeck.model.faults import Fail, FaultKind
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import Machine, MachineRole
from quarterdeck.model.world import World
from quarterdeck.planner.quorum import quorum
from quarterdeck.planner.survival import Loss

#: The fewest members that can outvote the data of one.
_OUTVOTES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The requested failure. Omitted values ("") vary from drill to drill: ``turn`` counts them."""

    fail: Fail
    replica: str = ""
    component: Component = Component.APISERVER
    zone: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A fault on one machine: on its program of ``component`` for that ``replica``, or on the member's data. A fault of
    the manager is on no machine ("").
    """

    machine: str
    kind: FaultKind
    replica: str = ""
    component: Component | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The targets of a drill."""

    hits: tuple[Hit, ...]
    #: The worst that the plane loses.
    loss: Loss
    #: Whether the machines are those that the planes on a network share; else they are the plane's site's.
    hub: bool = False
    #: Whether no plane loses anything.
    spares: bool = False
    #: Hosts that fail as a whole.
    hosts: frozenset[str] = frozenset()
    #: The other machines of these hosts at the plane's site.
    along: frozenset[str] = frozenset()
    #: Whether a DNS server fails too.
    dns: bool = False

    @property
    def machines(self) -> frozenset[str]:
        """The target machines."""
        return self.along.union(each.machine for each in self.hits if each.machine)

    @property
    def manager(self) -> bool:
        """Whether the target is the manager, and no machine."""
        return any(each.kind is FaultKind.KILL_MANAGER for each in self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The surroundings of a drill: the plane as it was observed, and the machines of its site, and of the hub. Machines
    of one ``host`` fail together here; one without a host ("") fails alone, whatever it shares with others.
    """

    plane: str
    site: str
    world: World
    machines: Sequence[Machine]
    hub: Sequence[Machine]

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """The plane's replicas at its site, by name."""
        found = (each for each in self.world.memory.replicas if each.site == self.site)
        return tuple(sorted(found, key=lambda each: each.name))


def aim(ground: Ground, wish: Wish) -> Aim:
    """The targets. Raises NotFound for a replica or zone that does not exist, InvalidInput for a value that has no
    meaning here, PreconditionFailed where such a failure is impossible.
    """
    require_meant(ground.plane, wish)
    return _AIMS[wish.fail](ground, wish)


def loss_of(
    world: World, site: str, machines: frozenset[str], edges: frozenset[str], hosts: frozenset[str] = frozenset()
) -> Loss:
    """What a plane loses with these machines of a site, whose load balancers are on the machines ``edges``, and with
    everything on these hosts, wherever it is.
    """
    at = {(each.site, each.name): each.host for each in world.machines}
    struck = {place for place, host in at.items() if host in hosts} | {(site, each) for each in machines}
    gone = (each.name for each in world.memory.replicas if (each.site, each.machine) in struck)
    there = (edge.name for balancer in world.balancers for edge in balancer.edges if edge.host in hosts)
    edges_lost = _edges_lost(world, site, machines, edges).union(there)
    return Loss(where="where it fails", replicas=frozenset(gone), edges=edges_lost)


def _edges_lost(world: World, site: str, machines: frozenset[str], edges: frozenset[str]) -> frozenset[str]:
    """The failing edges of a site, as ``BalancerFact.on`` names them."""
    balancer = world.balancer(site)
    if not balancer.edges:
        return frozenset(each.name for each in balancer.on) if edges and edges <= machines else frozenset()
    return frozenset(each.name for each in balancer.edges if each.name in machines)


def require_meant(plane: str, wish: Wish) -> None:
    """Raise InvalidInput for a target that has no meaning for the failure."""
    doing = _doing(plane, wish)
    for given, words, meant in (
        (wish.replica, "a replica", _OF_A_REPLICA),
        (wish.zone, "a zone", {Fail.ZONE}),
        (wish.component if wish.component != Component.APISERVER else "", "a program", {Fail.UNIT, Fail.HANG}),
    ):
        if given and wish.fail not in meant:
            raise InvalidInput(doing, f"{words} is given, but this failure takes no such target", "omit it")


def _doing(plane: str, wish: Wish) -> str:
    return f"drilling plane {plane} ({wish.fail})"


def _turned(found: Sequence[str], named: str, turn: int, doing: str, what: str) -> str:
    if not found:
        raise PreconditionFailed(doing, f"it has no {what} that could fail")
    if named and named not in found:
        raise NotFound(doing, f"it has no {what} {named}", f"there are: {', '.join(found)}")
    return named or found[turn % len(found)]


def _replica(ground: Ground, wish: Wish) -> Replica:
    name = _turned(
        [each.name for each in ground.replicas], wish.replica, wish.turn, _doing(ground.plane, wish), "replica"
    )
    return next(each for each in ground.replicas if each.name == name)


def edges_of(machines: Sequence[Machine]) -> frozenset[str]:
    """The machines for load balancers."""
    return frozenset(each.name for each in machines if each.role is MachineRole.EDGE)


def _struck(ground: Ground, hits: Iterable[Hit], *, hub: bool = False) -> Aim:
    """What fails together with whole machines; each host has one fault."""
    host = {each.name: each.host for each in (ground.hub if hub else ground.machines)}
    made = {host.get(each.machine) or each.machine: each for each in reversed((*hits,))}
    hosts = frozenset(found for each in made.values() if (found := host.get(each.machine)))
    first = () if hub else (each.machine for each in made.values())
    gone = frozenset(first).union(each.name for each in ground.machines if each.host in hosts)
    return Aim(
        hits=tuple(reversed(made.values())),
        loss=loss_of(ground.world, ground.site, gone, edges_of(ground.machines), hosts),
        hub=hub,
        hosts=hosts,
        along=gone.difference(each.machine for each in made.values()),
        dns=hub or any(each.host in hosts for each in ground.hub),
    )


def _of_a_replica(kind: FaultKind) -> Callable[[Ground, Wish], Aim]:
    """The machine of a replica."""

    def found(ground: Ground, wish: Wish) -> Aim:
        return _struck(ground, (Hit(machine=_replica(ground, wish).machine, kind=kind),))

    return found


def _of_a_program(kind: FaultKind) -> Callable[[Ground, Wish], Aim]:
    """A program of a replica, and at worst the whole replica with it."""

    def found(ground: Ground, wish: Wish) -> Aim:
        record = _replica(ground, wish)
        if wish.component not in record.programs(ground.world.programs):
            raise PreconditionFailed(_doing(ground.plane, wish), f"{record.name} has no {wish.component}")
        hit = Hit(machine=record.machine, kind=kind, replica=record.name, component=wish.component)
        return Aim(hits=(hit,), loss=Loss(where="where it fails", replicas=frozenset({record.name})))

    return found


def _of_a_member(kind: FaultKind) -> Callable[[Ground, Wish], Aim]:
    """An etcd member, with its data."""

    def found(ground: Ground, wish: Wish) -> Aim:
        return _member(_replica(ground, wish), kind)

    return found


def _member(record: Replica, kind: FaultKind) -> Aim:
    hit = Hit(machine=record.machine, kind=kind, replica=record.name, component=Component.ETCD)
    return Aim(hits=(hit,), loss=Loss(where="where it fails", replicas=frozenset({record.name})))


def _leader(ground: Ground, wish: Wish) -> Aim:
    return _member(_leading(ground, wish), FaultKind.KILL_UNIT)


def _leading(ground: Ground, wish: Wish) -> Replica:
    """The replica of the etcd leader."""
    membership = ground.world.membership
    leads = membership.leader if membership is not None else None
    record = next((each for each in ground.replicas if each.name == leads), None)
    if record is None:
        raise PreconditionFailed(_doing(ground.plane, wish), "the leader of its etcd is not known")
    return record


def _slow_disk(ground: Ground, wish: Wish) -> Aim:
    """The disk of the etcd leader, which delays all writes, unless another one is named. A slow disk keeps working."""
    record = _replica(ground, wish) if wish.replica else _leading(ground, wish)
    return Aim(hits=(Hit(machine=record.machine, kind=FaultKind.SLOW_DISK),), loss=Loss(where=""), spares=True)


def _zone(ground: Ground, wish: Wish) -> Aim:
    """All machines of a zone that has any of the plane."""
    on = {each.machine for each in ground.replicas}
    zones = sorted({each.zone for each in ground.machines if each.name in on})
    zone = _turned(zones, wish.zone, wish.turn, _doing(ground.plane, wish), "zone")
    inside = (each for each in ground.machines if each.zone == zone)
    return _struck(ground, (Hit(machine=each.name, kind=FaultKind.POWER_OFF) for each in inside))


def _quorum(ground: Ground, wish: Wish) -> Aim:
    """The machines of as many voters as cost the quorum."""
    membership = ground.world.membership
    if membership is None:
        raise PreconditionFailed(_doing(ground.plane, wish), "the members of its etcd are not known")
    voters = {each.replica for each in membership.voters}
    machines = [each.machine for each in ground.replicas if each.name in voters]
    most = len(membership.voters) - quorum(len(membership.voters)) + 1
    return _struck(ground, (Hit(machine=each, kind=FaultKind.POWER_OFF) for each in dict.fromkeys(machines[:most])))


def _the_edge(ground: Ground, wish: Wish) -> Aim:
    edges = sorted(edges_of(ground.machines))
    if not edges:
        raise PreconditionFailed(_doing(ground.plane, wish), f"site {ground.site} has no machine for load balancers")
    return _struck(ground, (Hit(machine=edges[wish.turn % len(edges)], kind=FaultKind.POWER_OFF),))


def _dns(ground: Ground, wish: Wish) -> Aim:
    if not ground.hub:
        raise PreconditionFailed(
            _doing(ground.plane, wish), "its name is kept by DNS servers that quarterdeck does not run"
        )
    hit = Hit(machine=ground.hub[wish.turn % len(ground.hub)].name, kind=FaultKind.POWER_OFF)
    return _struck(ground, (hit,), hub=True)


def _corrupt(ground: Ground, wish: Wish) -> Aim:
    """A member that others outvote: a follower, unless one is named."""
    membership, doing = ground.world.membership, _doing(ground.plane, wish)
    leads = membership.leader if membership is not None else None
    if membership is None or leads is None:
        raise PreconditionFailed(doing, "the leader of its etcd is not known")
    if len(membership.voters) < _OUTVOTES:
        raise PreconditionFailed(
            doing,
            f"with {len(membership.voters)} members no majority would have the same data, and it could not be "
            "decided whose is right",
        )
    voters = {each.replica for each in membership.voters}
    names = [each.name for each in ground.replicas if each.name in voters and (wish.replica or each.name != leads)]
    name = _turned(names, wish.replica, wish.turn, doing, "member")
    return _member(next(each for each in ground.replicas if each.name == name), FaultKind.CORRUPT)


def _manager(ground: Ground, wish: Wish) -> Aim:
    """The manager of the plane, which keeps running without it."""
    return Aim(hits=(Hit(machine="", kind=FaultKind.KILL_MANAGER),), loss=Loss(where=""))


_AIMS: Mapping[Fail, Callable[[Ground, Wish], Aim]] = {
    Fail.UNIT: _of_a_program(FaultKind.KILL_UNIT),
    Fail.HANG: _of_a_program(FaultKind.HANG_UNIT),
    Fail.MACHINE: _of_a_replica(FaultKind.POWER_OFF),
    Fail.FREEZE: _of_a_replica(FaultKind.FREEZE),
    Fail.ZONE: _zone,
    Fail.LEADER: _leader,
    Fail.PARTITION: _of_a_replica(FaultKind.CUT),
    Fail.ONEWAY: _of_a_replica(FaultKind.DEAFEN),
    Fail.SLOW_DISK: _slow_disk,
    Fail.DISK_FULL: _of_a_replica(FaultKind.FILL_DISK),
    Fail.DATA_LOSS: _of_a_member(FaultKind.LOSE_DATA),
    Fail.CORRUPT: _corrupt,
    Fail.QUORUM: _quorum,
    Fail.MANAGER: _manager,
    Fail.EDGE: _the_edge,
    Fail.DNS: _dns,
    Fail.CLOCK: _of_a_replica(FaultKind.SET_CLOCK),
}
_OF_A_REPLICA = frozenset(Fail) - {
    Fail.ZONE,
    Fail.LEADER,
    Fail.QUORUM,
    Fail.MANAGER,
    Fail.EDGE,
    Fail.DNS,
    Fail.TOTAL_LOSS,
}
