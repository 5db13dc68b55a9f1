"""Joins the answers of all sources to one world. Pure: missing and outdated answers stay unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from quarterdeck.components.etcd import holds_a_log
from quarterdeck.model.components import Component
from quarterdeck.model.edges import EdgeSeen, Where, amiss, by_itself, joined
from quarterdeck.model.endpoints import NameFact
from quarterdeck.model.epochs import MemberWord
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.membership import MemberData, Membership, WrongData
from quarterdeck.model.memory import Replica
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import IDLE, MachineRole, MachineState, UnitState
from quarterdeck.model.world import MachineFact, ReplicaFact, World

T = TypeVar("T")

#: Seconds after which an answer no longer counts. No observation takes as long, so the observer itself was frozen, or
#: its host slept.
TOO_OLD = 15.0


@dataclass(frozen=True, slots=True)
class Dated(Generic[T]):
    """The answer of a source, requested ``at`` a time (seconds on the steady clock). None: it did not answer."""

    at: float
    answer: T | None

    def by(self, now: float) -> T | None:
        """The answer, if it still counts at a later time."""
        return self.answer if now - self.at <= TOO_OLD else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlace:
    """The place of a replica on its machine: the names of its units, and of its volume of a ``storage_class``;
    ``events`` is the volume of its member of the events' cluster (None: it has no such member).
    """

    units: Mapping[Component, str]
    volume: str
    storage_class: str
    events: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdFacts:
    """The facts from etcd: the membership that a quorum confirmed, or else the members' reports about themselves; and
    the members with data that is not the plane's.
    """

    membership: Membership | None = None
    wrong: tuple[WrongData, ...] = ()
    words: tuple[MemberWord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """The answers of a replica's own processes."""

    #: Whether its apiserver is ready; None: unknown.
    ready: bool | None = None
    #: The failing checks of an apiserver that is not ready.
    unready: str = ""
    #: Whether etcd's peer port answers.
    peer_up: bool = False
    events_peer_up: bool = False
    #: The revisions that match the loaded files of its apiserver; None: it was not queried, or did not report them.
    loaded: frozenset[str] | None = None
    #: See ``ReplicaFact``.
    given: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyPrograms:
    """The programs of a replica that run and do not report that they are healthy; those of them that were (``hung``);
    and the managers of controller sets that have been silent for so long that their locks are about to pass to others
    (``frozen``).
    """

    all: frozenset[Component] = frozenset()
    hung: frozenset[Component] = frozenset()
    frozen: frozenset[Component] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All observed facts about one plane, by source."""

    #: By site.
    sites: Mapping[str, Dated[SiteFacts]]
    etcd: Dated[EtcdFacts]
    #: By replica.
    servers: Mapping[str, Dated[ServerFacts]]
    #: By site.
    balancers: Mapping[str, Dated[tuple[EdgeSeen, ...]]]
    name: Dated[NameFact]
    #: Units that exit repeatedly, as (site, name).
    crash_looping: frozenset[tuple[str, str]] = frozenset()
    #: Why units exited, by (site, name).
    endings: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: As in ``ReplicaFact``, by replica.
    quiet: Mapping[str, tuple[tuple[Component, str], ...]] = field(default_factory=dict)
    #: By replica.
    silent: Mapping[str, UnhealthyPrograms] = field(default_factory=dict)
    #: The events' etcd; None: it does not exist.
    events: Dated[EtcdFacts] | None = None
    #: The leader of each kind of controllers.
    leading: tuple[Leadership, ...] = ()
    #: See ``World``.
    kubelets_back: bool | None = None


def assemble(known: World, places: Mapping[str, ReplicaPlace], seen: Seen, now: float) -> World:
    """The world: the ``known`` state, and the facts observed until ``now``. ``places`` are by replica."""
    sites = {name: facts for name, each in seen.sites.items() if (facts := each.by(now)) is not None}
    etcd = seen.etcd.by(now) or EtcdFacts()
    events = (seen.events.by(now) if seen.events is not None else None) or EtcdFacts()
    name = seen.name.by(now) or NameFact(known=False, trouble="it was not read in time")
    edges = {site: each.by(now) or () for site, each in seen.balancers.items()}
    balancers = {
        site: joined(site, each, name.addresses or (), _places_of(each, sites.get(site)))
        for site, each in edges.items()
    }
    replicas = tuple(_replica(each, places[each.name], sites, seen, now) for each in known.memory.replicas)
    return replace(
        known,
        membership=etcd.membership,
        wrong=etcd.wrong,
        words=etcd.words,
        events_membership=events.membership,
        events_wrong=events.wrong,
        replicas=replicas,
        balancers=tuple(balancers.values()),
        apiservers=by_itself(name, replicas),
        machines=tuple(_machines(sites)),
        record=name.site,
        record_known=name.known,
        record_trouble=name.trouble,
        foreign=name.foreign,
        torn=name.torn,
        amiss=amiss(name, edges.get(name.site or "", ()), balancers.get(name.site or "")),
        also=name.also,
        stamped=name.stamped,
        record_ttl=name.ttl,
        name_servers=name.servers,
        leading=seen.leading,
        kubelets_back=seen.kubelets_back,
    )


def _servers(record: Replica, seen: Seen, now: float) -> ServerFacts:
    asked = seen.servers.get(record.name)
    return (asked.by(now) if asked is not None else None) or ServerFacts()


def _replica(
    record: Replica, place: ReplicaPlace, sites: Mapping[str, SiteFacts], seen: Seen, now: float
) -> ReplicaFact:
    site = sites.get(record.site)
    there = site.machine(record.machine) if site is not None else None
    reattachable, volume_at = _attached(record, place, site)
    if site is None or there is None or there.units is None:
        return replace(_unseen(record, place, there), reattachable=reattachable, volume_at=volume_at)
    units = {component: there.unit(name) for component, name in place.units.items()}
    servers, silent = _servers(record, seen, now), seen.silent.get(record.name, UnhealthyPrograms())
    ends = {component for component, unit in units.items() if (record.site, unit.name) in seen.crash_looping}
    return ReplicaFact(
        name=record.name,
        machine=there.machine.state,
        units=tuple((component, unit.state) for component, unit in units.items()),
        peer_up=servers.peer_up,
        ready=servers.ready,
        has_data=_has_data(place.volume, place.storage_class, site, there),
        events=_events(place, site, there, servers, units[Component.EVENTS_ETCD].refused),
        loaded=servers.loaded,
        given=servers.given,
        stuck=servers.stuck,
        refused=units[Component.ETCD].refused,
        crash_looping=frozenset(ends),
        endings=tuple(
            (component, why) for component, unit in units.items() if (why := seen.endings.get((record.site, unit.name)))
        ),
        quiet=seen.quiet.get(record.name, ()),
        silent=silent.all,
        hung=silent.hung,
        frozen=silent.frozen,
        altered=frozenset(component for component, unit in units.items() if unit.altered and unit.state not in IDLE),
        reattachable=reattachable,
        volume_at=volume_at,
        why=there.machine.why,
    )


def _unseen(record: Replica, place: ReplicaPlace, there: MachineFacts | None) -> ReplicaFact:
    """A replica whose machine does not answer, or does not report its units."""
    down = there is not None and there.machine.state is MachineState.DOWN
    return ReplicaFact(
        name=record.name,
        machine=MachineState.DOWN if down else MachineState.UNREACHABLE,
        units=tuple((component, UnitState.UNKNOWN) for component in place.units),
        ready=None,
        why=there.machine.why if there is not None else "",
    )


def _attached(record: Replica, place: ReplicaPlace, site: SiteFacts | None) -> tuple[bool, str]:
    """Whether all volumes of a replica can move to other machines, and the other machine that one is on."""
    if site is None:
        return False, ""
    volumes = ((place.volume, place.storage_class), *((place.events,) if place.events is not None else ()))
    away = (site.away_from(record.machine, name) for name, each in volumes if each in site.reattachable)
    return all(each in site.reattachable for _, each in volumes), next(filter(None, away), "")


def _events(
    place: ReplicaPlace, site: SiteFacts, machine: MachineFacts, servers: ServerFacts, refused: str
) -> MemberData:
    if place.events is None:
        return MemberData()
    return MemberData(peer_up=servers.events_peer_up, has_data=_has_data(*place.events, site, machine), refused=refused)


def _has_data(volume: str, storage_class: str, site: SiteFacts, machine: MachineFacts) -> bool | None:
    """Whether a member's data exists. It is unknown where the site does not report its storage class, or another
    machine has the volume.
    """
    if storage_class in site.reattachable and site.away_from(machine.machine.name, volume):
        return None
    entries = machine.holds(volume) if storage_class in site.storage_classes else None
    return None if entries is None else holds_a_log(entries)


def _places_of(edges: Sequence[EdgeSeen], facts: SiteFacts | None) -> dict[str, Where]:
    """The places of the machines of edges, as far as known."""
    found = {each.name: facts.machine(each.name) for each in edges} if facts is not None else {}
    return {
        name: Where(seen.machine.zone, seen.machine.host, seen.machine.why)
        for name, seen in found.items()
        if seen is not None
    }


def _machines(sites: Mapping[str, SiteFacts]) -> Iterator[MachineFact]:
    """The machines that can get replicas."""
    for site in sites.values():
        for machine in (each.machine for each in site.machines):
            if machine.role is MachineRole.CONTROL and machine.declared:
                yield MachineFact(
                    name=machine.name,
                    site=machine.site,
                    zone=machine.zone,
                    state=machine.state,
                    host=machine.host,
                    why=machine.why,
                )
