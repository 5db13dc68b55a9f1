"""The parts of a simulated world: machines, the content of each replica on them, and members of etcd."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from quarterdeck.model.clusters import CLUSTER
from quarterdeck.model.components import Component
from quarterdeck.model.membership import EtcdMinor


class Power(StrEnum):
    """The state of a simulated machine."""

    ON = "on"
    OFF = "off"
    FROZEN = "frozen"


class Fill(StrEnum):
    """The content of the database of a simulated member."""

    ROOM = "room"
    FREE = "free"  # it has no room left, but for what defragmenting gives back
    HISTORY = "history"  # nor that, before history is forgotten
    DATA = "data"  # nor that: it has room only with a larger quota


#: At a peer URL that no replica has.
ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimMember:
    """A member: ``behind`` in ticks of copying still to do (a voter too may lag), ``silent`` in ticks for which the
    leader has heard nothing of it, ``unserved`` in ticks until it publishes itself again (a joiner that got its own
    publication in a snapshot). ``found_at``: the replica at whose peer URL the others look for it, or ``ELSEWHERE``
    ("": they look for it where it is). ``storage``: the minor version of etcd that its database is written for (None:
    all have the same).
    """

    id: int
    learner: bool
    behind: int = 0
    silent: int = 0
    unserved: int = 0
    fill: Fill = Fill.ROOM
    found_at: str = ""
    storage: EtcdMinor | None = None

    @property
    def misplaced(self) -> bool:
        """Whether the other members have another peer URL for it than its own."""
        return bool(self.found_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimReplica:
    """The content of a machine for one replica. ``units`` should run, each of the revision in ``shapes``;
    ``crashed`` ones are down until the next tick; ``warm`` says that the apiserver has finished starting; ``stuck``:
    revisions whose files it was given, and did not take up; ``hung``: programs that run, and do nothing until they are
    killed; ``slow``: members that run and never catch up, until they are killed;
    ``altered``: those whose files somebody has changed since they were started. ``events`` and ``events_data``
    are its member of the events' cluster, and whether there is any data for that one.
    """

    units: frozenset[Component] = frozenset()
    shapes: tuple[tuple[Component, str], ...] = ()
    crashed: frozenset[Component] = frozenset()
    data: bool = False
    warm: bool = False
    stuck: frozenset[str] = frozenset()
    hung: frozenset[Component] = frozenset()
    slow: frozenset[Component] = frozenset()
    altered: frozenset[Component] = frozenset()
    member: SimMember | None = None
    events: SimMember | None = None
    events_data: bool = False

    def of_events(self) -> SimReplica:
        """The same, with its member of the events' cluster in place of that of the main one."""
        return replace(
            self,
            units=_as_main(self.units),
            shapes=_shapes_as_main(self.shapes),
            crashed=_as_main(self.crashed),
            hung=_as_main(self.hung),
            slow=_as_main(self.slow),
            data=self.events_data,
            member=self.events,
        )

    def runs(self, component: Component) -> bool:
        """Whether a unit runs, as long as the machine does."""
        return component in self.units and component not in self.crashed


NOTHING = SimReplica()


def _shapes_as_main(shapes: tuple[tuple[Component, str], ...]) -> tuple[tuple[Component, str], ...]:
    if not any(component in CLUSTER for component, _ in shapes):
        return shapes
    others = {component: shape for component, shape in shapes if component not in CLUSTER}
    events = [(Component.ETCD, shape) for component, shape in shapes if component == Component.EVENTS_ETCD]
    return tuple(sorted([*others.items(), *events]))


def _as_main(components: frozenset[Component]) -> frozenset[Component]:
    if not components & CLUSTER.keys():
        return components
    others = components - CLUSTER.keys()
    return others | {Component.ETCD} if Component.EVENTS_ETCD in components else others


@dataclass(frozen=True, slots=True, kw_only=True)
class SimMachine:
    """A machine of the simulated sites. ``why``: see ``MachineFact``."""

    name: str
    site: str
    zone: str
    power: Power = Power.ON
    cordoned: bool = False
    why: str = ""


# Names of what works and may not answer the manager (``Truth.mute``), and of whose address a client may have.

#: What is no machine that hosts replicas: the name's server, and the membership.
DNS = "dns"
ETCD = "etcd"


def edge(site: str) -> str:
    """The machine of a site's load balancer."""
    return f"edge of {site}"


def second(site: str) -> str:
    """The same of its other edge."""
    return f"second edge of {site}"


def other(name: str) -> str:
    """The other edge of an edge's site."""
    site = name.removeprefix(second(""))
    return edge(site) if site != name else second(name.removeprefix(edge("")))


def etcd_of(name: str) -> str:
    """A replica's member."""
    return f"etcd of {name}"


def apiserver_of(name: str) -> str:
    """A replica's apiserver; beside those of edges, its own address."""
    return f"apiserver of {name}"


def all_of(site: str) -> str:
    """Everything at a site."""
    return f"site {site}"
