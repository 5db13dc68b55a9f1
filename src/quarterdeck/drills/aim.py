"""What a drill strikes: from what is to fail to faults on machines, and to what goes with them."""

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

#: As many members as it takes for the data of one to be outvoted.
_OUTVOTES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person wants to fail. What is not said ("") is another one in each drill: ``turn`` counts them."""

    fail: Fail
    replica: str = ""
    component: Component = Component.APISERVER
    zone: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A fault on one machine: on its program of ``component`` for that ``replica``, or on the member's data, where it
    is about one. The manager is on none ("").
    """

    machine: str
    kind: FaultKind
    replica: str = ""
    component: Component | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a drill strikes. ``hub``: the machines are those of what the planes on a network share, else those of the
    plane's site. ``loss``: what is lost to the plane, at worst. ``spares``: no plane loses anything by it. ``hosts``:
    those that fail as a whole, and ``along`` the other machines that they are at the plane's site. ``dns``: so does a
    DNS server go.
    """

    hits: tuple[Hit, ...]
    loss: Loss
    hub: bool = False
    spares: bool = False
    hosts: frozenset[str] = frozenset()
    along: frozenset[str] = frozenset()
    dns: bool = False

    @property
    def machines(self) -> frozenset[str]:
        """Those that are struck."""
        return self.along.union(each.machine for each in self.hits if each.machine)

    @property
    def manager(self) -> bool:
        """Whether it is the manager that is struck, and no machine."""
        return any(each.kind is FaultKind.KILL_MANAGER for each in self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a drill is to be: the plane as it was seen, and the machines of its site, and of the hub. Machines of one
    ``host`` fail as one here; one that has none ("") fails alone, whatever it shares with others.
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
    """What is to fail. Raises NotFound for a replica or zone that there is none of, InvalidInput for one that has no
    meaning here, PreconditionFailed where nothing can fail so.
    """
    _require_meant(ground, wish)
    return _AIMS[wish.fail](ground, wish)


def loss_of(
    world: World, site: str, machines: frozenset[str], edges: frozenset[str], hosts: frozenset[str] = frozenset()
) -> Loss:
    """What a plane loses with these machines of a site, whose load balancers are on the machines ``edges``, and with
    all that is on these hosts, wherever they are.
    """
    at = {(each.site, each.name): each.host for each in world.machines}
    struck = {place for place, host in at.items() if host in hosts} | {(site, each) for each in machines}
    gone = (each.name for each in world.memory.replicas if (each.site, each.machine) in struck)
    there = (edge.name for balancer in world.balancers for edge in balancer.edges if edge.host in hosts)
    edges_lost = _edges_lost(world, site, machines, edges).union(there)
    return Loss(where="where it fails", replicas=frozenset(gone), edges=edges_lost)


def _edges_lost(world: World, site: str, machines: frozenset[str], edges: frozenset[str]) -> frozenset[str]:
    """Those of a site's edges that go, as ``BalancerFact.on`` names them."""
    balancer = world.balancer(site)
    if not balancer.edges:
        return frozenset(each.name for each in balancer.on) if edges and edges <= machines else frozenset()
    return frozenset(each.name for each in balancer.edges if each.name in machines)


def _require_meant(ground: Ground, wish: Wish) -> None:
    doing = _doing(ground, wish)
    for given, words, meant in (
        (wish.replica, "a replica", _OF_A_REPLICA),
        (wish.zone, "a zone", {Fail.ZONE}),
        (wish.component if wish.component != Component.APISERVER else "", "a program", {Fail.UNIT, Fail.HANG}),
    ):
        if given and wish.fail not in meant:
            raise InvalidInput(doing, f"{words} is named, and it strikes none in particular", "leave that out")


def _doing(ground: Ground, wish: Wish) -> str:
    return f"having {wish.fail} of plane {ground.plane} fail"


def _turned(found: Sequence[str], named: str, turn: int, doing: str, what: str) -> str:
    if not found:
        raise PreconditionFailed(doing, f"it has no {what} that could")
    if named and named not in found:
        raise NotFound(doing, f"it has no {what} {named}", f"there are: {', '.join(found)}")
    return named or found[turn % len(found)]


def _replica(ground: Ground, wish: Wish) -> Replica:
    name = _turned([each.name for each in ground.replicas], wish.replica, wish.turn, _doing(ground, wish), "replica")
    return next(each for each in ground.replicas if each.name == name)


def edges_of(machines: Sequence[Machine]) -> frozenset[str]:
    """Those that are for load balancers."""
    return frozenset(each.name for each in machines if each.role is MachineRole.EDGE)


def _struck(ground: Ground, hits: Iterable[Hit], *, hub: bool = False) -> Aim:
    """What goes with whole machines, of which hosts have one fault each."""
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
    """A program of a replica, and with it at worst all of the replica."""

    def found(ground: Ground, wish: Wish) -> Aim:
        record = _replica(ground, wish)
        if wish.component not in record.programs(ground.world.programs):
            raise PreconditionFailed(_doing(ground, wish), f"{record.name} has no {wish.component}")
        hit = Hit(machine=record.machine, kind=kind, replica=record.name, component=wish.component)
        return Aim(hits=(hit,), loss=Loss(where="where it fails", replicas=frozenset({record.name})))

    return found


def _of_a_member(kind: FaultKind) -> Callable[[Ground, Wish], Aim]:
    """A member of etcd, with its data."""

    def found(ground: Ground, wish: Wish) -> Aim:
        return _member(_replica(ground, wish), kind)

    return found


def _member(record: Replica, kind: FaultKind) -> Aim:
    hit = Hit(machine=record.machine, kind=kind, replica=record.name, component=Component.ETCD)
    return Aim(hits=(hit,), loss=Loss(where="where it fails", replicas=frozenset({record.name})))


def _leader(ground: Ground, wish: Wish) -> Aim:
    return _member(_leading(ground, wish), FaultKind.KILL_UNIT)


def _leading(ground: Ground, wish: Wish) -> Replica:
    """Whose member of etcd leads."""
    membership = ground.world.membership
    leads = membership.leader if membership is not None else None
    record = next((each for each in ground.replicas if each.name == leads), None)
    if record is None:
        raise PreconditionFailed(_doing(ground, wish), "who leads its etcd is not known")
    return record


def _slow_disk(ground: Ground, wish: Wish) -> Aim:
    """The disk of who leads, which all writes wait for, unless another one is named. What is slow goes on."""
    record = _replica(ground, wish) if wish.replica else _leading(ground, wish)
    return Aim(hits=(Hit(machine=record.machine, kind=FaultKind.SLOW_DISK),), loss=Loss(where=""), spares=True)


def _zone(ground: Ground, wish: Wish) -> Aim:
    """All machines of a zone that has any of the plane."""
    on = {each.machine for each in ground.replicas}
    zones = sorted({each.zone for each in ground.machines if each.name in on})
    zone = _turned(zones, wish.zone, wish.turn, _doing(ground, wish), "zone")
    inside = (each for each in ground.machines if each.zone == zone)
    return _struck(ground, (Hit(machine=each.name, kind=FaultKind.POWER_OFF) for each in inside))


def _quorum(ground: Ground, wish: Wish) -> Aim:
    """The machines of as many voters as cost the quorum."""
    membership = ground.world.membership
    if membership is None:
        raise PreconditionFailed(_doing(ground, wish), "the members of its etcd are not known")
    voters = {each.replica for each in membership.voters}
    machines = [each.machine for each in ground.replicas if each.name in voters]
    most = len(membership.voters) - quorum(len(membership.voters)) + 1
    return _struck(ground, (Hit(machine=each, kind=FaultKind.POWER_OFF) for each in dict.fromkeys(machines[:most])))


def _the_edge(ground: Ground, wish: Wish) -> Aim:
    edges = sorted(edges_of(ground.machines))
    if not edges:
        raise PreconditionFailed(_doing(ground, wish), f"site {ground.site} has no machine for load balancers")
    return _struck(ground, (Hit(machine=edges[wish.turn % len(edges)], kind=FaultKind.POWER_OFF),))


def _dns(ground: Ground, wish: Wish) -> Aim:
    if not ground.hub:
        raise PreconditionFailed(_doing(ground, wish), "its name is kept by DNS servers that quarterdeck does not run")
    hit = Hit(machine=ground.hub[wish.turn % len(ground.hub)].name, kind=FaultKind.POWER_OFF)
    return _struck(ground, (hit,), hub=True)


def _corrupt(ground: Ground, wish: Wish) -> Aim:
    """A member that others outvote: one that follows, unless one is named."""
    membership, doing = ground.world.membership, _doing(ground, wish)
    leads = membership.leader if membership is not None else None
    if membership is None or leads is None:
        raise PreconditionFailed(doing, "who leads its etcd is not known")
    if len(membership.voters) < _OUTVOTES:
        raise PreconditionFailed(
            doing,
            f"of {len(membership.voters)} members no majority would have the same data then, and nobody could say whose"
            " is right",
        )
    voters = {each.replica for each in membership.voters}
    names = [each.name for each in ground.replicas if each.name in voters and (wish.replica or each.name != leads)]
    name = _turned(names, wish.replica, wish.turn, doing, "member")
    return _member(next(each for each in ground.replicas if each.name == name), FaultKind.CORRUPT)


def _manager(ground: Ground, wish: Wish) -> Aim:
    """Who keeps the plane, which runs on without it."""
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
_OF_A_REPLICA = frozenset(Fail) - {Fail.ZONE, Fail.LEADER, Fail.QUORUM, Fail.MANAGER, Fail.EDGE, Fail.DNS}
