"""Healing: a dead replica is replaced automatically, unless a safety check forbids it.

The replica is condemned (marked for replacement), and then fills no slot: the other rules place a new one, remove the
dead one and let the new one join, as in any other replacement. So this module only decides whether. A replica is dead
when the cluster itself misses it (``engine/observation/silence.py``), never because this process does not see it, and
its removal costs nothing. So a replacement or a migration in progress neither waits for healing nor blocks it: a wanted
replica that dies during it would block it for ever. Only a replica that is stopped for its next revision, by
quarterdeck itself, comes back first.

Where its volumes can be attached to another machine, the replica comes back there as the same member
(``volume_moves.py``): then nothing is condemned, and all other checks apply as well.

A program that stays unhealthy on a machine that answers (``unhealthy_programs.py``) is killed and restarted, once. If
that does not help, its replica is condemned as well: one whose member is down leaves at once, any other one when its
replacement is there. A lagging member of etcd counts as such a program, with a longer time; all others must have the
data, or the cause is not this member alone.
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
from quarterdeck.planner import next_steps, standbys
from quarterdeck.planner.machines import flapping
from quarterdeck.planner.members import has_the_data
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.membership import removable
from quarterdeck.planner.rules.placement import place
from quarterdeck.planner.rules.rollout import unit
from quarterdeck.planner.rules.volume_moves import attached
from quarterdeck.planner.unhealthy_programs import (
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
    unhealthy,
)
from quarterdeck.planner.view import View, view

#: What follows where a check forbids healing.
_HELD = "quarterdeck heals it once that no longer holds"


def heal(view: View) -> RuleOutcome:
    """A condemned replica that is healthy again is pardoned, a dead one is noted, and one that has been dead for long
    enough is condemned, one at a time. The same holds for programs that stay unhealthy, after one restart. A machine
    whose replicas were replaced repeatedly is cordoned.
    """
    if flaps := _flapping(view):
        return RuleOutcome(flaps)
    notes = (*_pardons(view), *_noted(view), *_noted_unhealthy(view))
    if notes:
        return RuleOutcome(notes)
    waiting: list[Wait] = []
    for record in _late(view):
        moved = attached(view, record, f"{_silent(view, record)}; its volumes can be attached elsewhere")
        why = _held_back(view, record, moved)
        if not why:
            return RuleOutcome((moved or _condemn(view, record),))
        held = Wait(f"{record.name} to be replaced, or to come back: {why}", f"{_HELD}, or bring its machine back")
        waiting.append(held)
    for record, component in _unwell(view):
        step, why = _cure(view, record, component)
        if not why:
            return RuleOutcome((step,))
        held = Wait(
            f"{unit(component, record)} to become healthy: {why}",
            f"{_HELD}; {next_steps.look(view.world, record, component)}",
        )
        waiting.append(held)
    return RuleOutcome(waiting=(*waiting, *_awaited(view)))


def _awaited(view: View) -> tuple[Wait, ...]:
    """The lagging members that still have time. (Other rules wait for all other unhealthy programs.)"""
    late = _unwell(view)
    early = (each for each in _unhealthy(view) if each not in late) if view.world.memory.unhealthy else ()
    return tuple(
        next_steps.program(view.world, record, component, "to catch up")
        for record, component in early
        if lags(view, record, component)
    )


def held_back(view: View) -> tuple[tuple[str, str], ...]:
    """The replicas that have been dead for long enough and are not condemned all the same, and the programs that stay
    unhealthy and are not healed, each with the reason.
    """
    dead = ((record.name, _held_back(view, record, attached(view, record, ""))) for record in _late(view))
    units = ((unit(component, record), _cure(view, record, component)[1]) for record, component in _unwell(view))
    return tuple((name, why) for name, why in (*dead, *units) if why)


def is_dead(view: View, record: Replica) -> bool:
    """Whether a replica is dead as far as observed: its machine does not answer, and the cluster does not reach its
    member either. A replica that was never a member has none that the cluster could miss.
    """
    member = view.member(record)
    unheard = not record.listed if member is None else member.health is Health.DOWN
    return unheard and not view.reachable(record)


def _looks_dead(view: View, record: Replica) -> bool:
    """Whether its time begins to count: it is dead, or its site reports that its machine is off, and its member is
    silent. No replica is condemned before the cluster has missed it for long enough, too.
    """
    member, off = view.member(record), view.fact(record).machine is MachineState.DOWN
    return is_dead(view, record) or (off and member is not None and member.health is not Health.HEALTHY)


def _pardons(view: View) -> tuple[Step, ...]:
    """Replicas that are healthy again before their member was removed, and cordoned ones. The replacement of such a
    replica is removed again, unless it is already a member.
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
            why = "it is healthy again, and was not removed yet"
            steps.append(Pardon(site="", why=why, replica=record.name))
    return tuple(steps)


def _cluster_of(program: str | None) -> Cluster:
    """The cluster whose member decides about a replica that was condemned for a program, or for its machine alone."""
    return Cluster.EVENTS if program == Component.EVENTS_ETCD else Cluster.MAIN


def _is_well(view: View, record: Replica, program: str) -> bool:
    """Whether the program for which a replica with a healthy member was condemned is healthy; a member must have the
    data, too, and not merely be catching up.
    """
    for each in view.world.programs.every:
        if each == program and view.reachable(record) and not is_well(view, record, each):
            return False
    member = view.world.member(record.name, _cluster_of(program))
    return program not in CLUSTER or (member is not None and has_the_data(view.world, member))


def _flapping(view: View) -> tuple[Step, ...]:
    names = flapping(view.world)
    return tuple(
        CordonMachine(site=each.site, why="its replicas had to be replaced repeatedly", machine=each.name)
        for each in view.world.machines
        if each.name in names and not each.cordoned
    )


def _noted(view: View) -> tuple[Step, ...]:
    world = view.world
    dead: tuple[str, ...] = ()
    if world.settings.healing.budget and world.memory.created:
        others = world.memory.given_up.union(world.cordoned)
        dead = tuple(each.name for each in view.wanted if _looks_dead(view, each) and each.name not in others)
        dead += standbys.ailing(view.whole)
    if sorted(dead) == sorted(name for name, _ in world.memory.down):
        return ()
    return (NoteDown(site="", why="a replica that stays dead is replaced", replicas=tuple(sorted(dead))),)


def _unhealthy(view: View) -> tuple[tuple[Replica, Component], ...]:
    """The unhealthy programs, where healing is on."""
    return unhealthy(view) if view.world.settings.healing.budget else ()


def _noted_unhealthy(view: View) -> tuple[Step, ...]:
    units = tuple(sorted(unit(component, record) for record, component in _unhealthy(view)))
    if units == tuple(sorted(name for name, _ in view.world.memory.unhealthy)):
        return ()
    return (NoteAiling(site="", why="a program that stays unhealthy is restarted", units=units),)


def _unwell(view: View) -> list[tuple[Replica, Component]]:
    """The programs that have been unhealthy for long enough, the longest first; not those that may be starting."""
    world, since = view.world, dict(view.world.memory.unhealthy)
    if not since:
        return []

    def is_late(record: Replica, component: Component) -> bool:
        if unit(component, record) not in since or not is_surely_ill(view, record, component):
            return False
        waited = world.now - since[unit(component, record)]
        return waited >= time_for(view, record, component) and not may_be_starting(view, record, component)

    found = [each for each in _unhealthy(view) if is_late(*each)]
    return sorted(found, key=lambda each: since[unit(each[1], each[0])])


def _was_revived(view: View, record: Replica, component: Component) -> bool:
    when = dict(view.world.memory.revived).get(unit(component, record))
    return when is not None and view.world.now - when < view.world.settings.healing.window


def _was_renewed(view: View, record: Replica) -> bool:
    """Whether a replica got its member of the events' cluster lately, or has one that was never healthy: another one
    would fare the same.
    """
    when = dict(view.world.memory.revived).get(renewal_of(record.name))
    lately = when is not None and view.world.now - when < view.world.settings.healing.window
    return lately or record.events is None or not record.events.started


def _needed_for_events(view: View, record: Replica) -> str:
    """Why the events' cluster cannot spare an unhealthy member; "" if it can. Few other checks apply: a replica that
    gets another member of it keeps serving, and no replica is added or removed for that.
    """
    assert view.events is not None, "one of its members is unhealthy"
    if why := not_alone(view, record, Component.EVENTS_ETCD):
        return why
    if is_idle(view, record, Component.EVENTS_ETCD) and not cannot_start(view, record, Component.EVENTS_ETCD):
        return "it must be started first"
    return "" if removable(view.events, record) else "the others are not a healthy quorum without it"


def _tried(view: View, component: Component) -> set[str]:
    """The programs that were restarted, are not healthy yet, and are waited for. A member waits only for members:
    other unhealthy programs may need the quorum, which lacks that member. Nothing waits for a member of the events'
    etcd: everything else works without it.
    """
    memory = view.world.memory
    tried = {name for name, _ in memory.unhealthy}.intersection(name for name, _ in memory.revived)
    if component == Component.ETCD:
        return tried & {unit(component, each) for each in view.wanted}
    return tried - {unit(Component.EVENTS_ETCD, each) for each in memory.replicas}


def _cure(view: View, record: Replica, component: Component) -> tuple[Step, str]:
    """What is done about an unhealthy program, and why it is not done now ("" if it is)."""
    world, window = view.world, view.world.settings.healing.window
    name = unit(component, record)
    # A replica works without the events' etcd, except for events.
    many = len({each.name for each, what in unhealthy(view) if what != Component.EVENTS_ETCD})
    patient = world.now - dict(world.memory.unhealthy)[name] >= world.settings.healing.later
    held = not_alone(view, record, component) or _spent(view)
    if others := _tried(view, component) - {name}:
        held = f"{min(others)}, which was restarted, must be healthy first"
    elif many > 1 and 2 * many >= len(view.wanted) and not patient:
        held = f"half of the replicas are unhealthy: healing starts after {world.settings.healing.later:g} s"
    why = f"it has been unhealthy for {time_for(view, record, component):g} s, and its dependencies are healthy"
    revive = ReviveUnit(site=record.site, why=why, replica=record.name, component=component, window=window)
    if not _was_revived(view, record, component) and not is_idle(view, record, component):
        return revive, held
    why = f"{component} stays unhealthy on machine {record.machine} after a restart"
    condemn = replace(_condemn(view, record), why=why, program=component)
    if component == Component.EVENTS_ETCD and not _was_renewed(view, record):
        return replace(condemn, alone=True), _needed_for_events(view, record)
    if not held and not runs_well_elsewhere(view, record, component):
        held = "no other replica shows that the cause is its machine"
    elif not held and not (_may_go(view, record, component) or is_calm(view, record)):
        held = "the other replicas must be in place first"
    elif not held and is_idle(view, record, component) and not cannot_start(view, record, component):
        held = "it must be started first"
    elif not held and not removable(view, record):
        held = "the others are not a healthy quorum without it"
    return condemn, held or _without_room(view, record, condemn, patient=patient)


def _may_go(view: View, record: Replica, component: Component) -> bool:
    """Whether a lagging member is removed although others are being replaced, or the plane moves: those changes wait
    for it, and nothing depends on it. A voter is one member too many once its replacement joins, so no other may be.
    """
    if not lags(view, record, component) or view.heading != view.world.goal:
        return False
    if joins(view, record, component):
        return not _going(view)
    return not any(each.site == record.site and view.member(each) is not None for each in view.unwanted)


def _going(view: View) -> list[Replica]:
    """The replicas that were given up and are still members."""
    return [each for each in view.unwanted if each.name in view.world.memory.given_up and view.member(each) is not None]


def _late(view: View) -> list[Replica]:
    """The replicas that have been dead for long enough, the longest first."""
    down, after = dict(view.world.memory.down), view.world.settings.healing.after
    late = (each for each in view.wanted if each.name in down and view.world.now - down[each.name] >= after)
    return sorted((each for each in late if is_dead(view, each)), key=lambda each: down[each.name])


def _silent(view: View, record: Replica) -> str:
    member = view.member(record)
    finding = (
        "and the leader of its cluster gets no answer from it" if member is not None else "and it was never a member"
    )
    return f"machine {record.machine} does not answer, {finding}"


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
    """Why a dead replica is not ``moved``, or else condemned, now; "" if it is."""
    world = view.world
    member = view.member(record)
    if view.heading != world.goal:
        return f"the plane moves to site {view.heading} first"
    if view.resting is not None:
        return f"{view.resting.words} is restarted first"
    if going := _going(view):
        return f"{going[0].name} is replaced first"
    if member is not None and not member.learner and (view.quorum_site is None or not removable(view, record)):
        return "the others are not a healthy quorum without it"
    return _spent(view) or _risky(view, record, moved)


def _spent(view: View) -> str:
    """That the healing budget of the window is spent; "" if not."""
    world, healing = view.world, view.world.settings.healing
    done = len(world.memory.healed_within(healing.window, world.now))
    if done < healing.budget:
        return ""
    return f"{done} of at most {healing.budget} replicas were healed or replaced within {healing.window / 60:g} minutes"


def _risky(view: View, record: Replica, moved: AttachVolumes | None) -> str:
    """Why it is too early to move it, or useless to replace it."""
    world, healing = view.world, view.world.settings.healing
    patient = world.now - dict(world.memory.down)[record.name] >= healing.later
    if _half_is_dark(world, record.site) and not patient:
        return f"half of the machines of site {record.site} look dead at once: healing starts after {healing.later:g} s"
    return "" if moved is not None else _without_room(view, record, _condemn(view, record), patient=patient)


def _without_room(view: View, record: Replica, condemn: Condemn, *, patient: bool) -> str:
    """Why no replica could take its place now; "" if one could."""
    if _has_room(view, condemn, other_zones=False):
        return ""
    if not _has_room(view, condemn, other_zones=True):
        return "there is no spare machine: the plane stays degraded"
    if not patient:
        later = view.world.settings.healing.later
        return f"no machine of zone {record.slot.zone} is free: another zone is used after {later:g} s"
    return ""


def _has_room(seen: View, condemn: Condemn, *, other_zones: bool) -> bool:
    """Whether the other rules would find a machine for the replacement of a condemned replica."""
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
