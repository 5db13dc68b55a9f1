"""The rolling restart: which replicas stop some programs for a moment, to start them with their next revision."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import UnitState
from quarterdeck.planner.events import not_ready_for
from quarterdeck.planner.members import CORRUPT, acts, all_raised, can_spare, serves
from quarterdeck.planner.reading import Reading
from quarterdeck.planner.revisions import ends_by_itself, may_stop


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """The replicas of which some programs must stop, to be started again with their next revision: one, or ``at_once``
    all whose controllers must not run at the same time as the new ones.
    """

    replicas: tuple[Replica, ...]
    stops: frozenset[Component]
    at_once: bool = False

    def has(self, replica: Replica, component: Component) -> bool:
        """Whether a program of a replica must be stopped now."""
        return component in self.stops and any(each.name == replica.name for each in self.replicas)

    @property
    def words(self) -> str:
        """The names of the replicas."""
        return ", ".join(each.name for each in self.replicas)


def rest(view: Reading) -> RollingRestart | None:
    """The rolling restart of at most one replica. One whose programs may stop at once goes first, without waiting; any
    other one waits until all others can do without it. All replicas whose controllers must not run at the same time as
    those of the wanted revision restart at once: such a revision is wanted only where that is allowed
    (``revisions.next_revision``), or after a rejection.
    """
    world = view.world
    apart = tuple(each for each in world.memory.replicas if not view.may_run_beside(each) and acts(world, each))
    if apart and (world.membership is None or not all(map(view.reachable, apart))):
        return None  # no replica stops for what may take long: all keep running
    if apart:
        stops = (world.stops(world.change(each.revision, view.revision)) for each in apart)
        return RollingRestart(apart, world.programs.managers.union(*stops), at_once=True)
    if view.heading != view.world.goal:
        return None
    behind = in_turn(view)
    free = [each for each in view.behind if each in behind and may_stop(world, each, _stops(view, each))]
    if free:
        return RollingRestart((free[0],), _stops(view, free[0]))
    if behind and spared(view, behind[0]):
        return RollingRestart((behind[0],), _stops(view, behind[0]))
    return None


def _stops(view: Reading, record: Replica) -> frozenset[Component]:
    """The programs of a replica that must not run while it changes to the wanted revision."""
    return view.world.stops(view.change(record))


def in_turn(view: Reading) -> list[Replica]:
    """The replicas that must and can be restarted: those that have begun first, the leader last."""
    leader = view.world.membership.leader if view.world.membership is not None else None
    begun = dict(view.world.memory.draining)
    behind = (each for each in view.behind if view.reachable(each) and not view.loads(each))
    return sorted(behind, key=lambda each: (each.name not in begun and view.runs_all(each), each.name == leader))


def spared(view: Reading, record: Replica) -> bool:
    """Whether all others are healthy and carry the traffic, no replica joins or leaves, and the cluster can spare the
    members that stop: etcd may list voters that belong to no replica.
    """
    world, stops = view.world, _stops(view, record)
    if world.membership is None or view.quorum_site != view.heading or view.missing:
        return False
    if CORRUPT in all_raised(world):
        return False
    if world.keeps_events_apart(view.revision) and not_ready_for(view, record):
        return False
    if any(view.member(each) is not None for each in view.unwanted):
        return False
    if not all(can_spare(world.of(each), record) for each in Cluster if MEMBER[each] in stops):
        return False
    others = [each for each in view.wanted if each.name != record.name]
    if not all(serves(world, each) for each in others):
        return False
    if not all(_controls(view, each, view.change(record)) for each in others):
        return False
    return Component.APISERVER not in stops or (bool(others) and view.led_to({each.name for each in others}))


def _controls(view: Reading, record: Replica, change: ReplicaChange) -> bool:
    """Whether a replica runs its controllers; those that the ``change`` has restarted must report that they are
    healthy: one that exits when it reads its flags also runs for a moment. One that exits repeatedly, and that the
    change is meant to fix, is not waited for.
    """
    fact, new = view.fact(record), record.revision == view.revision
    stops = view.world.stops(change)
    return all(
        (not new and each in stops and ends_by_itself(view.world, record, each))
        or (fact.unit(each) is UnitState.RUNNING and not (new and each in change.restart & fact.silent))
        for each in view.world.controllers(record)
    )
