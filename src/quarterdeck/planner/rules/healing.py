"""Healing: a replica that is dead is exchanged without a person, if nothing speaks against that.

It is condemned, and then it fills no slot: the other rules place another one, take the dead one out, and have the new
one join, as in any other exchange. So this module decides no more than whether. What is dead is so by the cluster's own
word (``engine/observation/silence.py``), never because we do not see it, and taking out what is dead costs nobody
anything. So an exchange or a move that is under way neither waits for healing nor holds it up: a wanted one that dies
meanwhile would hold it up for ever. Only who rests for its next revision, which is our own doing, comes back first.

Where its volumes can be attached to another machine it comes back there as the member that it is (``volume_moves.py``):
then nobody is condemned, and all else holds just as well.

A program that does not get well on a machine that answers (``unhealthy_programs.py``) is killed and started again,
once. If that does not help its replica is condemned as well: one whose member is down goes at once, any other one when
another has come. A member of etcd that lags is such a program, which has longer; all others must have the data, or it
is not this one alone that is slow.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.healing import Condemn, CordonMachine, NoteAiling, NoteDown, Pardon, renewal_of
from quarterdeck.model.steps.placement import AttachVolumes
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import ReviveUnit
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.machines import flapping
from quarterdeck.planner.members import has_the_data
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.membership import removable
from quarterdeck.planner.rules.placement import place
from quarterdeck.planner.rules.rollout import unit
from quarterdeck.planner.rules.volume_moves import attached
from quarterdeck.planner.unhealthy_programs import (
    ailing,
    cannot_start,
    is_calm,
    is_idle,
    is_surely_ill,
    is_well,
    joins,
    lags,
    may_be_starting,
    not_alone,
    runs_well_elsewhere,
    time_for,
)
from quarterdeck.planner.view import View, view

#: What follows where something speaks against healing.
_HELD = "quarterdeck heals it by itself once that does not hold any more"


def heal(view: View) -> RuleOutcome:
    """A condemned replica that is well again is pardoned, a dead one is noted, and one that has been dead for long
    enough is condemned, one at a time. So are programs that do not get well, which are started anew before. A machine
    that this happened to again and again is cordoned.
    """
    if flaps := _flapping(view):
        return RuleOutcome(flaps)
    notes = (*_pardons(view), *_noted(view), *_noted_ailing(view))
    if notes:
        return RuleOutcome(notes)
    waiting: list[Wait] = []
    for record in _late(view):
        moved = attached(view, record, f"{_silent(view, record)}; its volumes can be attached elsewhere")
        why = _held_back(view, record, moved)
        if not why:
            return RuleOutcome((moved or _condemn(view, record),))
        held = Wait(f"{record.name} to be exchanged, or to be back: {why}", f"{_HELD}, or bring its machine back")
        waiting.append(held)
    for record, component in _unwell(view):
        step, why = _cure(view, record, component)
        if not why:
            return RuleOutcome((step,))
        held = Wait(
            f"{unit(component, record)} to get well: {why}",
            f"{_HELD}; {next_steps.look(view.world, record, component)}",
        )
        waiting.append(held)
    return RuleOutcome(waiting=(*waiting, *_awaited(view)))


def _awaited(view: View) -> tuple[Wait, ...]:
    """The members that lag and still have time. (What else does not get well is missed by other rules.)"""
    late = _unwell(view)
    early = (each for each in _ailing(view) if each not in late) if view.world.memory.ailing else ()
    return tuple(
        next_steps.program(view.world, record, component, "to catch up")
        for record, component in early
        if lags(view, record, component)
    )


def held_back(view: View) -> tuple[tuple[str, str], ...]:
    """The replicas that are dead for long enough and are not condemned all the same, and the programs that do not get
    well and are left so, each with why.
    """
    dead = ((record.name, _held_back(view, record, attached(view, record, ""))) for record in _late(view))
    units = ((unit(component, record), _cure(view, record, component)[1]) for record, component in _unwell(view))
    return tuple((name, why) for name, why in (*dead, *units) if why)


def is_dead(view: View, record: Replica) -> bool:
    """Whether a replica is dead as far as is seen: its machine does not answer, and the cluster hears nothing of its
    member either. One that never was a member has nothing that could be missed.
    """
    member = view.member(record)
    unheard = not record.listed if member is None else member.health is Health.DOWN
    return unheard and not view.reachable(record)


def _looks_dead(view: View, record: Replica) -> bool:
    """Whether its time begins to count: it is dead, or its site says that its machine is off, and its member is silent.
    Nobody is condemned before the cluster has missed it for long enough, too.
    """
    member, off = view.member(record), view.fact(record).machine is MachineState.DOWN
    return is_dead(view, record) or (off and member is not None and member.health is not Health.HEALTHY)


def _pardons(view: View) -> tuple[Step, ...]:
    """Those that are well again before their member was taken out, and those that a person wants left alone. Who comes
    in the place of one goes again, if it did not come further.
    """
    programs = {each.replica: each.program for each in view.world.memory.condemned}
    steps: list[Step] = []
    for record in view.world.memory.replicas:
        found = programs.get(record.name)
        member = view.world.member(record.name, _cluster_of(found))
        if found is None or member is None:
            continue
        if record.name in view.world.cordoned:
            steps.append(Pardon(site="", why="it is cordoned", replica=record.name))
        elif record.name not in view.lost and member.health is Health.HEALTHY and _is_well(view, record, found):
            why = "it is well again, and was not taken out yet"
            steps.append(Pardon(site="", why=why, replica=record.name))
    return tuple(steps)


def _cluster_of(program: str | None) -> Cluster:
    """The cluster in which somebody who is condemned for a program, or for nothing but its machine, is looked at."""
    return Cluster.EVENTS if program == Component.EVENTS_ETCD else Cluster.MAIN


def _is_well(view: View, record: Replica, program: str) -> bool:
    """Whether the program is well for which a replica with a healthy member was condemned; a member has the data, too,
    and is not merely on its way.
    """
    for each in view.world.programs.every:
        if each == program and view.reachable(record) and not is_well(view, record, each):
            return False
    member = view.world.member(record.name, _cluster_of(program))
    return program not in CLUSTER or (member is not None and has_the_data(view.world, member))


def _flapping(view: View) -> tuple[Step, ...]:
    names = flapping(view.world)
    return tuple(
        CordonMachine(site=each.site, why="its replicas had to be exchanged again and again", machine=each.name)
        for each in view.world.machines
        if each.name in names and not each.cordoned
    )


def _noted(view: View) -> tuple[Step, ...]:
    world = view.world
    dead: tuple[str, ...] = ()
    if world.settings.healing.budget and world.memory.created:
        others = world.memory.given_up.union(world.cordoned)
        dead = tuple(each.name for each in view.wanted if _looks_dead(view, each) and each.name not in others)
    if sorted(dead) == sorted(name for name, _ in world.memory.down):
        return ()
    return (NoteDown(site="", why="who is dead for long is exchanged", replicas=tuple(sorted(dead))),)


def _ailing(view: View) -> tuple[tuple[Replica, Component], ...]:
    """What does not get well, where anything is to be done about it."""
    return ailing(view) if view.world.settings.healing.budget else ()


def _noted_ailing(view: View) -> tuple[Step, ...]:
    units = tuple(sorted(unit(component, record) for record, component in _ailing(view)))
    if units == tuple(sorted(name for name, _ in view.world.memory.ailing)):
        return ()
    return (NoteAiling(site="", why="what does not get well for long is started anew", units=units),)


def _unwell(view: View) -> list[tuple[Replica, Component]]:
    """The programs that have not been well for long enough, the longest first. Who may be starting has its time."""
    world, since = view.world, dict(view.world.memory.ailing)
    if not since:
        return []

    def is_late(record: Replica, component: Component) -> bool:
        if unit(component, record) not in since or not is_surely_ill(view, record, component):
            return False
        waited = world.now - since[unit(component, record)]
        return waited >= time_for(view, record, component) and not may_be_starting(view, record, component)

    found = [each for each in _ailing(view) if is_late(*each)]
    return sorted(found, key=lambda each: since[unit(each[1], each[0])])


def _was_revived(view: View, record: Replica, component: Component) -> bool:
    when = dict(view.world.memory.revived).get(unit(component, record))
    return when is not None and view.world.now - when < view.world.settings.healing.window


def _was_renewed(view: View, record: Replica) -> bool:
    """Whether a replica got its member of the events' cluster lately, or has one that never was well: another one would
    be as this is.
    """
    when = dict(view.world.memory.revived).get(renewal_of(record.name))
    lately = when is not None and view.world.now - when < view.world.settings.healing.window
    return lately or record.events is None or not record.events.started


def _needed_for_events(view: View, record: Replica) -> str:
    """Why the events' cluster cannot spare a member that does not get well; "" if it can. Little else is asked: a
    replica that gets another member of it serves all else meanwhile, and nobody comes or goes for that.
    """
    assert view.events is not None, "a member of it does not get well"
    if why := not_alone(view, record, Component.EVENTS_ETCD):
        return why
    if is_idle(view, record, Component.EVENTS_ETCD) and not cannot_start(view, record, Component.EVENTS_ETCD):
        return "it is to be started first"
    return "" if removable(view.events, record) else "the others are no healthy quorum without it"


def _tried(view: View, component: Component) -> set[str]:
    """The programs that were started anew, are not well yet, and are waited for. A member waits for none but members:
    what else does not get well may need the quorum that lacks it to be exchanged. Nothing waits for a member of the
    events' etcd: all else works without it.
    """
    memory = view.world.memory
    tried = {name for name, _ in memory.ailing}.intersection(name for name, _ in memory.revived)
    if component == Component.ETCD:
        return tried & {unit(component, each) for each in view.wanted}
    return tried - {unit(Component.EVENTS_ETCD, each) for each in memory.replicas}


def _cure(view: View, record: Replica, component: Component) -> tuple[Step, str]:
    """What is done about a program that does not get well, and why it is not done now ("": it is to be)."""
    world, window = view.world, view.world.settings.healing.window
    name = unit(component, record)
    # A replica does all else without the events' etcd.
    many = len({each.name for each, what in ailing(view) if what != Component.EVENTS_ETCD})
    patient = world.now - dict(world.memory.ailing)[name] >= world.settings.healing.later
    held = not_alone(view, record, component) or _spent(view)
    if others := _tried(view, component) - {name}:
        held = f"{min(others)}, which was started anew, is to be well first"
    elif many > 1 and 2 * many >= len(view.wanted) and not patient:
        held = f"half of the replicas are not well: {world.settings.healing.later:g} s are waited"
    why = f"it has not been well for {time_for(view, record, component):g} s, and what it depends on is"
    revive = ReviveUnit(site=record.site, why=why, replica=record.name, component=component, window=window)
    if not _was_revived(view, record, component) and not is_idle(view, record, component):
        return revive, held
    why = f"{component} does not get well on machine {record.machine}, though it was started again"
    condemn = replace(_condemn(view, record), why=why, program=component)
    if component == Component.EVENTS_ETCD and not _was_renewed(view, record):
        return replace(condemn, alone=True), _needed_for_events(view, record)
    if not held and not runs_well_elsewhere(view, record, component):
        held = "no other replica shows that it is its machine"
    elif not held and not (_may_go(view, record, component) or is_calm(view, record)):
        held = "the others are to be in their places first"
    elif not held and is_idle(view, record, component) and not cannot_start(view, record, component):
        held = "it is to be started first"
    elif not held and not removable(view, record):
        held = "the others are no healthy quorum without it"
    return condemn, held or _without_room(view, record, condemn, patient=patient)


def _may_go(view: View, record: Replica, component: Component) -> bool:
    """Whether somebody who lags goes though others are to be exchanged, or the plane moves: all that waits for it, and
    nobody counts on it. One that votes is a member more than wanted once another one comes, so that nobody else may be.
    """
    if not lags(view, record, component) or view.heading != view.world.slots[0].site:
        return False
    if joins(view, record, component):
        return not _going(view)
    return not any(each.site == record.site and view.member(each) is not None for each in view.unwanted)


def _going(view: View) -> list[Replica]:
    """The replicas that were given up and are members still."""
    return [each for each in view.unwanted if each.name in view.world.memory.given_up and view.member(each) is not None]


def _late(view: View) -> list[Replica]:
    """The replicas that are dead for long enough, the longest first."""
    down, after = dict(view.world.memory.down), view.world.settings.healing.after
    late = (each for each in view.wanted if each.name in down and view.world.now - down[each.name] >= after)
    return sorted((each for each in late if is_dead(view, each)), key=lambda each: down[each.name])


def _silent(view: View, record: Replica) -> str:
    member = view.member(record)
    said = "and the leader of its cluster hears nothing of it" if member is not None else "and it never was a member"
    return f"machine {record.machine} does not answer, {said}"


def _condemn(view: View, record: Replica) -> Condemn:
    local = "" if view.fact(record).reattachable or not record.started else "; its volume is local to that machine"
    return Condemn(
        site="",
        why=f"{_silent(view, record)}{local}",
        replica=record.name,
        machine=record.machine,
        window=view.world.settings.healing.window,
    )


def _held_back(view: View, record: Replica, moved: AttachVolumes | None) -> str:
    """Why a replica that is dead is not ``moved``, or else condemned, now; "" if it is to be."""
    world = view.world
    member, slots = view.member(record), world.slots
    if view.heading != slots[0].site:
        return f"the plane goes to site {view.heading} first"
    if view.resting is not None:
        return f"{view.resting.words} is started anew first"
    if going := _going(view):
        return f"{going[0].name} is exchanged first"
    if member is not None and not member.learner and (view.quorum_site is None or not removable(view, record)):
        return "the others are no healthy quorum without it"
    return _spent(view) or _risky(view, record, moved)


def _spent(view: View) -> str:
    """That as much was done as may be within a time; "" if not."""
    world, healing = view.world, view.world.settings.healing
    done = len(world.memory.healed_within(healing.window, world.now))
    if done < healing.budget:
        return ""
    return (
        f"{done} of at most {healing.budget} replicas were mended or exchanged within {healing.window / 60:g} minutes"
    )


def _risky(view: View, record: Replica, moved: AttachVolumes | None) -> str:
    """Why it is too early to have it elsewhere, or of no use to have another one in its place."""
    world, healing = view.world, view.world.settings.healing
    patient = world.now - dict(world.memory.down)[record.name] >= healing.later
    if _half_is_dark(world, record.site) and not patient:
        return f"half of the machines of site {record.site} look dead at once: {healing.later:g} s are waited"
    return "" if moved is not None else _without_room(view, record, _condemn(view, record), patient=patient)


def _without_room(view: View, record: Replica, condemn: Condemn, *, patient: bool) -> str:
    """Why nobody could come in its place now; "" if somebody could."""
    if _has_room(view, condemn, other_zones=False):
        return ""
    if not _has_room(view, condemn, other_zones=True):
        return "there is no spare machine: it serves degraded"
    if not patient:
        later = view.world.settings.healing.later
        return f"no machine of zone {record.slot.zone} is free: {later:g} s are waited before another zone is used"
    return ""


def _has_room(seen: View, condemn: Condemn, *, other_zones: bool) -> bool:
    """Whether another one gets a machine once a replica is condemned, as the other rules will have it."""
    world = seen.world
    allowed = other_zones and world.settings.healing.other_zones
    bounds = replace(world.settings, healing=replace(world.settings.healing, other_zones=allowed))
    then = view(replace(world, memory=condemn.remembered(world.memory, world.now), settings=bounds))
    return not then.held_up and len(place(then).steps) >= len(then.missing)


def _half_is_dark(world: World, site: str) -> bool:
    """Whether several, and at least half, of a site's machines do not answer."""
    states = [each.state for each in world.machines if each.site == site]
    dark = sum(state is not MachineState.UP for state in states)
    return dark > 1 and 2 * dark >= len(states)
