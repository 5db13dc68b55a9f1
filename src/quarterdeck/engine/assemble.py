"""From what each source said to one world. Pure: what was not heard, or too long ago, stays unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from quarterdeck.components.etcd import holds_a_log
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import BalancerStatus, NameFact
from quarterdeck.model.memory import Replica
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import MachineRole, MachineState, UnitState
from quarterdeck.model.world import BalancerFact, MachineFact, MemberData, Membership, ReplicaFact, World, WrongData

T = TypeVar("T")

#: Seconds after which nothing is concluded any more from what was seen. No look takes as long, so that the observer
#: itself stood still meanwhile, or its host slept.
TOO_OLD = 15.0


@dataclass(frozen=True, slots=True)
class Dated(Generic[T]):
    """What a source said, asked ``at`` a time (in seconds, on the clock that nobody sets). None: it did not answer."""

    at: float
    said: T | None

    def by(self, now: float) -> T | None:
        """What of it counts at a later time."""
        return self.said if now - self.at <= TOO_OLD else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a replica is found on its machine: the names of its units, and of its volume of a ``storage_class``;
    ``events`` is the volume of its member of the events' cluster (None: it has no such member).
    """

    units: Mapping[Component, str]
    volume: str
    storage_class: str
    events: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdFacts:
    """What etcd said: the membership that a quorum confirmed, if one did, and who has data that is not the plane's."""

    membership: Membership | None = None
    wrong: tuple[WrongData, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a replica's own processes said: whether its apiserver is ready (None: unknown), whether etcd's peer port
    answers, or that of the events' etcd, and as which revisions the apiserver has its files, if it was asked and said
    so. ``given`` and ``stuck``: see ``ReplicaFact``.
    """

    ready: bool | None = None
    peer_up: bool = False
    events_peer_up: bool = False
    loaded: frozenset[str] | None = None
    given: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that was seen of one plane, by source: ``sites`` and ``balancers`` by site, ``servers`` by replica.
    ``restless`` are units that end again and again, as (site, name); ``events`` is of the events' etcd (None: there is
    none).
    """

    sites: Mapping[str, Dated[SiteFacts]]
    etcd: Dated[EtcdFacts]
    servers: Mapping[str, Dated[ServerFacts]]
    balancers: Mapping[str, Dated[BalancerStatus]]
    name: Dated[NameFact]
    restless: frozenset[tuple[str, str]] = frozenset()
    events: Dated[EtcdFacts] | None = None


def assemble(known: World, places: Mapping[str, Place], seen: Seen, now: float) -> World:
    """The world: what is ``known`` without a look, and what was seen by ``now``. ``places`` are by replica."""
    sites = {name: facts for name, each in seen.sites.items() if (facts := each.by(now)) is not None}
    etcd = seen.etcd.by(now) or EtcdFacts()
    events = (seen.events.by(now) if seen.events is not None else None) or EtcdFacts()
    name = seen.name.by(now) or NameFact(known=False, trouble="it was not looked at in time")
    return replace(
        known,
        membership=etcd.membership,
        wrong=etcd.wrong,
        events_membership=events.membership,
        events_wrong=events.wrong,
        replicas=tuple(
            _replica(each, places[each.name], sites.get(each.site), _servers(each, seen, now), seen.restless)
            for each in known.memory.replicas
        ),
        balancers=tuple(_balancer(site, each.by(now), sites.get(site)) for site, each in seen.balancers.items()),
        machines=tuple(_machines(sites)),
        record=name.site,
        record_known=name.known,
        record_trouble=name.trouble,
        foreign=name.foreign,
        torn=name.torn,
        also=name.also,
        stamped=name.stamped,
        record_ttl=name.ttl,
        name_servers=name.servers,
    )


def _servers(record: Replica, seen: Seen, now: float) -> ServerFacts:
    asked = seen.servers.get(record.name)
    return (asked.by(now) if asked is not None else None) or ServerFacts()


def _replica(
    record: Replica,
    place: Place,
    site: SiteFacts | None,
    servers: ServerFacts,
    restless: frozenset[tuple[str, str]],
) -> ReplicaFact:
    there = site.machine(record.machine) if site is not None else None
    if site is None or there is None or there.units is None:
        down = there is not None and there.machine.state is MachineState.DOWN
        return ReplicaFact(
            name=record.name,
            machine=MachineState.DOWN if down else MachineState.UNREACHABLE,
            units=tuple((component, UnitState.UNKNOWN) for component in Component),
            ready=None,
        )
    units = {component: there.unit(place.units[component]) for component in Component}
    return ReplicaFact(
        name=record.name,
        machine=there.machine.state,
        units=tuple((component, unit.state) for component, unit in units.items()),
        digests=tuple((component, unit.digest) for component, unit in units.items() if unit.digest),
        peer_up=servers.peer_up,
        ready=servers.ready,
        has_data=_has_data(place.volume, place.storage_class, site, there),
        events=_events(place, site, there, servers, units[Component.EVENTS_ETCD].refused),
        loaded=servers.loaded,
        given=servers.given,
        stuck=servers.stuck,
        refused=units[Component.ETCD].refused,
        restless=frozenset(component for component, unit in units.items() if (record.site, unit.name) in restless),
    )


def _events(place: Place, site: SiteFacts, machine: MachineFacts, servers: ServerFacts, refused: str) -> MemberData:
    if place.events is None:
        return MemberData()
    return MemberData(peer_up=servers.events_peer_up, has_data=_has_data(*place.events, site, machine), refused=refused)


def _has_data(volume: str, storage_class: str, site: SiteFacts, machine: MachineFacts) -> bool | None:
    """Whether a member's data is there. Where the site tells no more of its storage class it is somewhere."""
    entries = machine.holds(volume) if storage_class in site.storage_classes else None
    return None if entries is None else holds_a_log(entries)


def _balancer(site: str, status: BalancerStatus | None, facts: SiteFacts | None) -> BalancerFact:
    machines = (each.machine for each in facts.machines) if facts is not None else ()
    edge = next((each for each in machines if each.role is MachineRole.EDGE), None)
    zone, host = (edge.zone, edge.host) if edge is not None else ("", "")
    if status is None:
        return BalancerFact(site=site, running=False, reachable=False, zone=zone, host=host)
    return BalancerFact(
        site=site,
        running=status.running,
        backends=status.backends,
        healthy=status.healthy,
        connections=status.connections,
        zone=zone,
        host=host,
    )


def _machines(sites: Mapping[str, SiteFacts]) -> Iterator[MachineFact]:
    """Those that may be given replicas."""
    for site in sites.values():
        for machine in (each.machine for each in site.machines):
            if machine.role is MachineRole.CONTROL and machine.declared:
                yield MachineFact(
                    name=machine.name,
                    site=machine.site,
                    zone=machine.zone,
                    state=machine.state,
                    host=machine.host,
                )
