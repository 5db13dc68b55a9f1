"""What goes at once when something fails: the replicas, and the load balancers that clients are led to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.memory import Replica
from quarterdeck.model.world import EdgeFact, MachineFact
from quarterdeck.planner.view import View


class Failure(StrEnum):
    """Something that fails as a whole: one of a kind, whichever it is."""

    MACHINE = "machine"  # one that has replicas
    HOST = "host"  # with all machines that share it
    ZONE = "zone"
    EDGE = "edge"  # the machine of a load balancer
    DNS = "dns"  # a DNS server
    SITE = "site"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What goes, and ``where`` that is, for people ("": that goes without saying). ``edges`` are the
    machines of load balancers that go; of the replicas that are ``unsure`` nobody knows whether they are there.
    """

    where: str
    replicas: frozenset[str] = frozenset()
    edges: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()


def losses(seen: View, failure: Failure) -> tuple[Loss, ...]:
    """Every failure of a kind that can befall the plane now. Of DNS servers it is their number that counts."""
    find = _FINDERS.get(failure)
    return tuple(find(seen)) if find is not None else ()


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
    """One loss for each place that a replica or a load balancer is at; None: not known."""
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
    """The machine of a replica, if anything is known of it."""
    found = (each for each in seen.world.machines if (each.site, each.name) == (record.site, record.machine))
    return next(found, None)


_FINDERS: Mapping[Failure, Callable[[View], Iterator[Loss]]] = {
    Failure.MACHINE: _machines,
    Failure.HOST: _hosts,
    Failure.ZONE: _zones,
    Failure.EDGE: _edges,
    Failure.SITE: _sites,
}
