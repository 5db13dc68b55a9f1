"""The rollout of another revision: the programs that differ are restarted, one replica at a time.

Where programs reload new files while they run, nothing stops.
"""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.stored import CheckStored, NoteUnchecked
from quarterdeck.model.steps.units import (
    AdoptRevision,
    NoteProven,
    NoteUnready,
    RejectRevision,
    ReloadUnit,
    StopUnit,
)
from quarterdeck.model.units import IDLE
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.events import not_ready_for
from quarterdeck.planner.members import all_raised, can_spare, serves, stray_voters
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.revisions import (
    ends_by_itself,
    heading,
    is_unchecked,
    may_stop,
    never_ready,
    next_revision,
    restarts_expired,
    restarts_for_quota,
    stand_still,
)
from quarterdeck.planner.rolling_restart import RollingRestart, in_turn, spared
from quarterdeck.planner.rules.membership import hand_over
from quarterdeck.planner.rules.replica_programs import others_well, settled
from quarterdeck.planner.rules.traffic import drains
from quarterdeck.planner.view import View


def roll(view: View) -> RuleOutcome:
    """A replica in its rolling restart stops what must stop: its controllers, then its apiserver once it is drained,
    then etcd once it does not lead. When all of that is stopped, it adopts the next revision, and the other rules start
    it again.
    """
    rest = view.resting
    if rest is None:
        return RuleOutcome(waiting=_not_yet(view))
    running = {record.name: _running(view, record, rest.stops) for record in rest.replicas}
    if not any(running.values()):
        why = "none of its programs runs with another revision"
        steps = (AdoptRevision(site="", why=why, replica=each, revision=view.revision) for each in running)
        return RuleOutcome(tuple(steps))
    if rest.at_once:
        return _all_at_once(view, rest, running)
    (record,) = rest.replicas
    return _one_by_one(view, record, rest.stops, running[record.name])


def _running(view: View, record: Replica, stops: frozenset[Component]) -> tuple[Component, ...]:
    return tuple(
        each for each in reversed(view.world.programs.every) if each in stops and view.unit(record, each) not in IDLE
    )


def _all_at_once(view: View, rest: RollingRestart, running: Mapping[str, tuple[Component, ...]]) -> RuleOutcome:
    """The controllers of several replicas stop, and none of the next revision starts before all of them have."""
    kept = [each.name for each in rest.replicas if each.name in view.world.cordoned]
    if kept:
        what = f"{', '.join(kept)} to be uncordoned, before controllers are handed over"
        return RuleOutcome(waiting=(Wait(what, next_steps.uncordon(view.world, kept[0])),))
    return RuleOutcome(tuple(_stop(view, record, each) for record in rest.replicas for each in running[record.name]))


def _one_by_one(
    view: View, record: Replica, stops: frozenset[Component], running: tuple[Component, ...]
) -> RuleOutcome:
    controllers = tuple(each for each in running if each.is_controller)
    if controllers:
        return RuleOutcome(tuple(_stop(view, record, each) for each in controllers))
    free = may_stop(view.world, record, stops)
    if running[0] == Component.APISERVER:
        return RuleOutcome((_stop(view, record, Component.APISERVER),)) if free else _drained(view, record)
    return _stop_member(view, record, running[0])


def _not_yet(view: View) -> tuple[Wait, ...]:
    """Why no replica is restarted although one has another revision."""
    behind = [each for each in view.behind if not view.loads(each)]
    if not behind:
        return ()
    deaf = [each for each in behind if not view.may_run_beside(each) and not view.reachable(each)]
    if deaf:
        purpose = ", before controllers are handed over"
        return tuple(next_steps.machine(view.world, each, purpose) for each in deaf)
    if view.world.membership is None and view.world.expired:
        what = f"a quorum of the members to answer, before {behind[0].name} is restarted"
        return (Wait(what, next_steps.quorum(view.world)),)
    first = next(iter(in_turn(view)), behind[0])
    apart = not_ready_for(view, first) if view.world.keeps_events_apart(view.revision) else ()
    return apart or _unspared(view, first) or (others_well(view, first, "is restarted"),)


def _unspared(view: View, record: Replica) -> tuple[Wait, ...]:
    """The voters of no replica that keep a replica's members from stopping, where all other replicas are healthy."""
    if not all(serves(view.world, each) for each in view.wanted if each.name != record.name):
        return ()
    stops = view.world.stops(view.change(record))
    stopping = {each: view.world.of(each) for each in Cluster if MEMBER[each] in stops}
    return tuple(
        stray
        for cluster, world in stopping.items()
        if not can_spare(world, record)
        for stray in stray_voters(world, cluster)
    )


def _stop(view: View, record: Replica, component: Component) -> Step:
    why = "it is restarted with its next revision"
    if restarts_expired(view.world, record):
        why = "its certificates have expired: it is restarted with new ones"
    if view.revision in view.fact(record).stuck:
        why = "it did not reload its new files: it is restarted"
    return StopUnit(site=record.site, why=why, replica=record.name, component=component)


def _drained(view: View, record: Replica) -> RuleOutcome:
    drain = drains(view, record)
    return RuleOutcome(waiting=(drain,)) if drain else RuleOutcome((_stop(view, record, Component.APISERVER),))


def _stop_member(plane: View, record: Replica, component: Component) -> RuleOutcome:
    """Stop etcd: never while it leads others that could."""
    view = plane if component == MEMBER[plane.cluster] else plane.events
    if view is None or view.world.membership is None or view.world.membership.leader != record.name:
        return RuleOutcome((_stop(plane, record, component),))
    if restarts_for_quota(view.world, record, (Component.ETCD,)):
        return RuleOutcome((_stop(plane, record, component),))
    others = sorted((each for each in view.voting if each.name != record.name), key=view.plane.is_behind)
    step = hand_over(view, others, f"{record.name} leads, and its etcd is restarted")
    if step is None:
        return RuleOutcome(waiting=(next_steps.leader(view.world, f"another voter to lead instead of {record.name}"),))
    return RuleOutcome((step,))


def check_stored(view: View) -> RuleOutcome:
    """Before the first program of an older minor version, or without a former encryption key, runs, everything that
    etcd stores is checked: it must be able to read that. The check no longer counts once another revision is wanted.
    """
    world = view.world
    wanted = heading(world)
    if is_unchecked(world, wanted):
        if world.membership is None:
            return RuleOutcome(waiting=(next_steps.stored(world, wanted),))
        why = "programs of an older minor version, or without a former key, are to run"
        return RuleOutcome((CheckStored(site="", why=why, revision=wanted),))
    if world.memory.readable not in ("", wanted):
        return RuleOutcome((NoteUnchecked(site="", why="another revision is wanted"),))
    return RuleOutcome()


def watch(view: View) -> RuleOutcome:
    """The time is noted since which programs of the new revision run without being ready, or, for a first revision,
    exit repeatedly, or run and report nothing new. Programs of a later revision no longer count once a replica of that
    revision serves, and none count while etcd has an alarm: then the cause is another one.
    """
    world = view.world
    trial = [] if all_raised(world) else on_trial(view)
    served = any(world.replica(record.name).ready for record, _ in trial)
    units = tuple(
        unit(each, record)
        for record, changed in trial
        for each in changed
        if _fails(world, record, each, served=served)
    )
    if set(units) == {name for name, _ in world.memory.unready}:
        return RuleOutcome()
    return RuleOutcome(
        (NoteUnready(site="", why="a revision whose program never becomes ready is rejected", units=units),)
    )


def _fails(world: World, record: Replica, component: Component, *, served: bool) -> bool:
    """Whether the time of a program on trial counts. With a first revision, each program is judged by itself."""
    if world.memory.proven:
        return not served and component in never_ready(world, record)
    return ends_by_itself(world, record, component) or component in stand_still(world, record)


def unit(component: Component, record: Replica) -> str:
    """The name of a program of a replica in the memory."""
    return f"{component} of {record.name}"


def reject(view: View) -> RuleOutcome:
    """A revision is rejected when a program that it changes exits repeatedly on the first replica that runs it, or runs
    for long without ever being ready, while other replicas run another revision. (A migration rejects nothing: the
    source keeps serving, and the user can go back.) A first revision is rejected as well, though there is no previous
    one: the creation has failed then, and its programs are still retried.
    """
    world, unready = view.world, dict(view.world.memory.unready)
    for record, changed in on_trial(view):
        for component in changed:
            name = unit(component, record)
            why = _hopeless(world, record, component, world.now - unready.get(name, world.now))
            if not why:
                continue
            step = RejectRevision(
                site=record.site,
                why=f"{name} {why}",
                revision=view.revision,
                replica=record.name,
                component=component,
                complaint=world.replica(record.name).complaint(component) or "",
                runs=not ends_by_itself(world, record, component),
            )
            return RuleOutcome((step,))
    return RuleOutcome()


def _hopeless(world: World, record: Replica, component: Component, seconds: float) -> str:
    """Why the revision of a program is rejected after it was noted for so many seconds; "" if it is not."""
    settings, proven = world.settings, world.memory.proven
    if ends_by_itself(world, record, component):
        return "exits repeatedly" if proven or seconds >= settings.first_start else ""
    if proven:
        late = component in never_ready(world, record) and seconds >= settings.start
        return f"runs, and has not been ready for {settings.start:g} s" if late else ""
    late = component in stand_still(world, record) and seconds >= settings.first_ready
    return f"runs, is not ready, and has reported nothing new for {settings.first_ready:g} s" if late else ""


def prove(view: View) -> RuleOutcome:
    """A revision with which all wanted programs run is noted as one to go back to."""
    rejected = view.world.memory.rejected
    proven = view.world.memory.proven and (rejected is None or rejected.revision != view.revision)
    if proven or not view.wanted or settled(view).waiting:
        return RuleOutcome()
    return RuleOutcome((NoteProven(site="", why="all of its programs are healthy", revision=view.revision),))


def _first(view: View) -> list[tuple[Replica, tuple[Component, ...]]]:
    """The replicas of a plane without a proven revision, each with all of its programs."""
    world, rejected = view.world, view.world.memory.rejected
    if rejected is not None and rejected.revision == view.revision:
        return []
    there = (each for each in world.memory.replicas if each.revision == view.revision)
    return [(record, world.programs.of(record.revision)) for record in there]


def on_trial(view: View) -> list[tuple[Replica, tuple[Component, ...]]]:
    """The replicas that run the revision in rollout inside a site, each with the programs that it changes; none where
    no replica has another revision, or no revision is ever rejected.
    """
    world = view.world
    if not world.memory.proven:
        return _first(view)
    here = {each.site for each in world.memory.replicas} == {world.slots[0].site}
    if view.revision != next_revision(world) or not world.settings.goes_back or not here:
        return []
    changes = [world.change(former, view.revision) for former in {each.revision for each in world.memory.replicas}]
    changed = tuple(
        each
        for each in world.programs.every
        if any(one.exchange or each in one.restart | one.reload for one in changes)
    )
    return [(record, changed) for record in world.memory.replicas if record.revision == view.revision]


def reload(view: View) -> RuleOutcome:
    """One replica after the other gets the files of its next revision, while all others are healthy. When its program
    reports that it has loaded them, it has that revision (see ``rolling_restart``). A replica that got files of a
    revision that is no longer wanted gets its own back.
    """
    waiting = [each for each in view.wanted if view.loads(each) or _has_others(view, each)]
    if not waiting:
        return RuleOutcome()
    record = waiting[0]
    if not spared(view, record):
        return RuleOutcome(waiting=(others_well(view, record, "gets its new files"),))
    if not view.ready(record):
        return RuleOutcome(waiting=(_apiserver(view, record, "to answer, before it reloads new files"),))
    if view.revision in view.fact(record).given:
        return RuleOutcome(waiting=(_apiserver(view, record, "to reload its new files"),))
    why = "its program reloads what differs while it runs"
    step = ReloadUnit(
        site=record.site, why=why, replica=record.name, component=Component.APISERVER, revision=view.revision
    )
    return RuleOutcome((step,))


def _apiserver(view: View, record: Replica, to: str) -> Wait:
    return next_steps.program(view.world, record, Component.APISERVER, to)


def _has_others(view: View, record: Replica) -> bool:
    """Whether the apiserver of a replica of the wanted revision reports that it has files of another one."""
    loaded = view.fact(record).loaded
    others = loaded is not None and record.revision not in loaded
    return record.revision == view.revision and others and record.name not in view.world.cordoned
