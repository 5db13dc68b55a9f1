"""Which failures a plane survives right now, and why not others. For people: no decision depends on it.

A plane survives a failure that leaves each of its etcd clusters a quorum of members that answer and have the data, and
every load balancer that clients may use a ready apiserver. Healing does not count: a failure that needs a new replica
is not survived now. An unknown fact is counted once as the worst and once as the best; where that makes a difference,
the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.model.balancers import EdgeFact
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import MachineFact
from quarterdeck.planner.members import has_the_data, serves
from quarterdeck.planner.quorum import quorum
from quarterdeck.planner.view import View

# What is lost at once when something fails: replicas, and load balancers that clients are led to.


class FailureDomain(StrEnum):
    """A kind of thing that fails as a whole; any single one of it may fail."""

    MACHINE = "machine"  # a machine with replicas
    HOST = "host"  # with all machines on it
    ZONE = "zone"
    EDGE = "edge"  # the machine of a load balancer
    DNS = "dns"  # a DNS server
    SITE = "site"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A set of things that are lost together."""

    #: The place, for people; "": obvious.
    where: str
    replicas: frozenset[str] = frozenset()
    #: The machines of load balancers.
    edges: frozenset[str] = frozenset()
    #: Replicas that may or may not be at the place.
    unsure: frozenset[str] = frozenset()


def _machines(seen: View) -> Iterator[Loss]:
    yield from _grouped(seen, lambda record: f"on machine {record.machine}", {})


def _hosts(seen: View) -> Iterator[Loss]:
    def where(record: Replica) -> str | None:
        machine = _machine(seen, record)
        if machine is None:
            return None
        return f"on host {machine.host}" if machine.host else f"on machine {machine.name}"

    edges = {edge.name: f"on host {edge.host}" for _, edge in _held_edges(seen) if edge.host}
    yield from _grouped(seen, where, edges)


def _zones(seen: View) -> Iterator[Loss]:
    def where(record: Replica) -> str | None:
        machine = _machine(seen, record)
        zone = machine.zone if machine is not None else record.slot.zone or None
        return None if zone is None else _in_zone(record.site, zone)

    edges = {edge.name: _in_zone(site, edge.zone) for site, edge in _held_edges(seen) if edge.zone}
    yield from _grouped(seen, where, edges)


def _in_zone(site: str, zone: str) -> str:
    return f"in zone {zone} of {site}" if zone else f"at site {site}, which has no zones"


def _edges(seen: View) -> Iterator[Loss]:
    for _, edge in _held_edges(seen):
        yield Loss(where="", edges=frozenset({edge.name}))


def _held_edges(seen: View) -> Iterator[tuple[str, EdgeFact]]:
    """The edges of each site whose load balancer clients may be led to."""
    for site in sorted(seen.held - {APISERVERS}):
        yield from ((site, edge) for edge in seen.world.balancer(site).on)


def _sites(seen: View) -> Iterator[Loss]:
    edges = {edge.name: f"at site {site}" for site, edge in _held_edges(seen)}
    yield from _grouped(seen, lambda record: f"at site {record.site}", edges)


def _grouped(seen: View, where: Callable[[Replica], str | None], edges: Mapping[str, str]) -> Iterator[Loss]:
    """One loss for each place of a replica or a load balancer; None: unknown."""
    at = {record.name: where(record) for record in seen.world.memory.replicas}
    unsure = frozenset(name for name, place in at.items() if place is None)
    for place in sorted(_known((*at.values(), *edges.values()))):
        yield Loss(
            where=place,
            replicas=frozenset(name for name, each in at.items() if each == place),
            edges=frozenset(name for name, each in edges.items() if each == place),
            unsure=unsure,
        )


def _known(places: Iterable[str | None]) -> set[str]:
    return {place for place in places if place is not None}


def _machine(seen: View, record: Replica) -> MachineFact | None:
    """The machine of a replica, if it is known."""
    found = (each for each in seen.world.machines if (each.site, each.name) == (record.site, record.machine))
    return next(found, None)


#: Every failure of a kind that can hit the plane now. For DNS servers only their number counts.
_FINDERS: Mapping[FailureDomain, Callable[[View], Iterator[Loss]]] = {
    FailureDomain.MACHINE: _machines,
    FailureDomain.HOST: _hosts,
    FailureDomain.ZONE: _zones,
    FailureDomain.EDGE: _edges,
    FailureDomain.SITE: _sites,
}


class Survivability(StrEnum):
    """Whether a failure is survived."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """Whether the plane survives any single failure of a kind; ``why`` not, or why that is unknown, for people."""

    failure: FailureDomain
    answer: Survivability
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Word:
    """A partial answer, and why."""

    answer: Survivability
    why: str = ""


_YES = _Word(Survivability.YES)


def survivals(seen: View) -> tuple[Survival, ...]:
    """The answer for each kind of failure."""
    return tuple(_survival(failure, _words(seen, failure)) for failure in FailureDomain)


def outlives(seen: View, loss: Loss, *, dns: bool) -> tuple[Survivability, tuple[str, ...]]:
    """Whether the plane survives this loss, with ``dns`` also together with the loss of one DNS server; why not, or why
    that is unknown.
    """
    answers = [_led(seen), _after(seen, Loss(where="")), _after(seen, loss)]
    if dns:
        answers.append(_dns(seen.world.name_servers))
    found = _worst(answers)
    return found if found is not None else (Survivability.YES, ())


def _survival(failure: FailureDomain, words: Iterable[_Word]) -> Survival:
    """The answer for a kind of failure: the worst of its single failures."""
    found = _worst(tuple(words))
    if found is None:
        return Survival(failure=failure, answer=Survivability.YES)
    return Survival(failure=failure, answer=found[0], why=found[1])


def _worst(answers: Sequence[_Word]) -> tuple[Survivability, tuple[str, ...]] | None:
    """The worst answer other than yes, with its reasons; None: all are yes."""
    for answer in (Survivability.NO, Survivability.UNKNOWN):
        why = tuple(dict.fromkeys(each.why for each in answers if each.answer is answer))
        if why:
            return answer, why
    return None


def _words(seen: View, failure: FailureDomain) -> tuple[_Word, ...]:
    """All partial answers: a plane that does not serve now survives nothing."""
    now = (_led(seen), _after(seen, Loss(where="")))
    if failure is FailureDomain.DNS:
        return *now, _dns(seen.world.name_servers)
    return *now, *(_after(seen, each) for each in _FINDERS[failure](seen))


def _led(seen: View) -> _Word:
    """Whether clients are led to the plane at all."""
    world = seen.world
    if not world.record_known:
        return _Word(Survivability.UNKNOWN, "it is unknown where its name leads")
    if world.record is None:
        return _Word(Survivability.NO, "its name leads to nothing")
    return _YES


def _dns(servers: int | None) -> _Word:
    if servers is None:
        return _Word(Survivability.UNKNOWN, "it is unknown which DNS servers clients use")
    return _Word(Survivability.NO, "one DNS server") if servers == 1 else _YES


def _after(seen: View, loss: Loss) -> _Word:
    """The state after a loss. Without a quorum nothing else matters, so only that is reported."""
    words = [_members(seen, loss), *(_door(seen, site, loss) for site in sorted(seen.held))]
    if (events := seen.events) is not None and events.world.memory.created:
        words.append(_members(events, loss))
    for answer in (Survivability.NO, Survivability.UNKNOWN):
        found = next((each for each in words if each.answer is answer), None)
        if found is not None:
            return found
    return _YES


def _members(seen: View, loss: Loss) -> _Word:
    """Whether the cluster of this view keeps a quorum of members that answer and have the data."""
    membership = seen.world.membership
    of = _of(seen)
    if membership is None:
        created = seen.world.memory.created
        return _Word(
            Survivability.UNKNOWN, f"no quorum of the members{of} answers" if created else "it has no etcd yet"
        )
    need, voters = quorum(len(membership.voters)), membership.voters
    left = [each for each in voters if each.replica not in loss.replicas]
    may = [each for each in left if not _ill(seen, each)]
    sure = [each for each in may if not _doubt(seen, each, loss)]
    if len(sure) >= need:
        return _YES
    if len(may) >= need:
        doubts = dict.fromkeys(_doubt(seen, each, loss) for each in may if each not in sure)
        return _Word(Survivability.UNKNOWN, ", ".join(doubts))
    gone = len(voters) - len(left)
    if len(left) < need:
        return _Word(Survivability.NO, _share(gone, len(voters), f"member{of}", f"members{of}", loss.where))
    ill = ", ".join(dict.fromkeys(_ill(seen, each) for each in left if each not in may))
    return _Word(Survivability.NO, f"{ill}, so {'another one costs the quorum' if gone else 'there is no quorum'}")


def _of(seen: View) -> str:
    return f" of {CALLED[seen.cluster]}" if seen.cluster is not Cluster.MAIN else ""


def _ill(seen: View, member: MemberFact) -> str:
    """Why a member does not count for a quorum now; "" if it may."""
    name = f"member {member.description}{_of(seen)}"
    if member.health is Health.DOWN:
        return f"{name} is down"
    if member.replica in seen.lost:
        return f"{name} has lost its data"
    if member.lag is not None and not has_the_data(seen.world, member):
        return f"{name} is {member.lag} entries behind"
    return ""


def _doubt(seen: View, member: MemberFact, loss: Loss) -> str:
    """Why it is unknown whether a member remains and counts; "" if it is known."""
    if member.health is not Health.HEALTHY:
        return f"member {member.description} does not answer"
    if member.lag is None:
        return f"it is unknown how far member {member.description} is behind"
    if not any(member.replica == each.name for each in seen.world.memory.replicas):
        return "it is unknown where a member runs"
    if member.replica in loss.unsure:
        return f"it is unknown what the machine of {member.replica} shares with others"
    return ""


def _door(seen: View, site: str, loss: Loss) -> _Word:
    """Whether a load balancer that clients may use still leads to a ready apiserver; or the name itself (previous
    addresses are those of apiservers to which it led).
    """
    balancer, door = seen.world.balancer(site), f"the load balancer of site {site}"
    if site == APISERVERS:
        return _behind(seen, balancer.backends, "its name", loss) if balancer.running else _YES
    edges = [each for each in balancer.on if each.name not in loss.edges]
    if not edges:
        where = f" is {loss.where}" if loss.where else ""
        return _Word(Survivability.NO, f"the only load balancer of site {site}{where}")
    if not balancer.reachable:
        return _Word(Survivability.UNKNOWN, f"{door} does not answer")
    if loss.edges and not any(each.leads for each in edges):
        names = ", ".join(each.name for each in edges)
        return _Word(
            Survivability.NO,
            f"of the load balancer of site {site} only {names} would be left, without a ready apiserver",
        )
    return _behind(seen, balancer.backends & balancer.healthy, door, loss)


def _behind(seen: View, backends: frozenset[str], door: str, loss: Loss) -> _Word:
    """Whether one of these backends remains ready."""
    may = [name for name in sorted(backends) if _may_serve(seen, name)]
    left = [name for name in may if name not in loss.replicas]
    sure = (seen.world.memory.replica(name) for name in left if name not in loss.unsure)
    if any(serves(seen.world, record) for record in sure):
        return _YES
    if left:
        return _Word(Survivability.UNKNOWN, f"it is unknown whether {', '.join(left)} serves behind {door}")
    if not may:
        return _Word(Survivability.NO, f"{door} leads to no ready apiserver")
    return _Word(Survivability.NO, _share(len(may), len(may), "ready apiserver", "ready apiservers", loss.where))


def _may_serve(seen: View, name: str) -> bool:
    """Whether no fact shows that a backend does not serve although it passes the load balancer's check."""
    record = next((each for each in seen.world.memory.replicas if each.name == name), None)
    if record is None:
        return False
    fact, membership = seen.fact(record), seen.world.membership
    if fact.machine is MachineState.DOWN or fact.ready is False:
        return False
    if membership is None:
        return True
    member = membership.of(name)
    return member is not None and not member.learner and not _ill(seen, member)


def _share(gone: int, of: int, one: str, many: str, where: str) -> str:
    if gone == of == 1:
        return f"the only {one} is {where}"
    if gone == of:
        return f"all {of} {many} are {where}"
    return f"{gone} of {of} {many} {'is' if gone == 1 else 'are'} {where}"
