"""New epochs: with the user's consent the main cluster begins again, from a survivor after a lost quorum, or from a
backup. Nothing of the former epoch ever serves again. The rest is an ordinary replacement of replicas.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.components import Component
from quarterdeck.model.epochs import RestorePoint, Seed, SurvivorOrigin
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import BeginEpoch, DeleteKept, NoteQuorum, RestoreMember, WithdrawConsent
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import IDLE, MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.machines import machine_for, no_machine
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules import standby
from quarterdeck.planner.rules.volume_moves import may_return
from quarterdeck.planner.standbys import without_standbys
from quarterdeck.planner.survivors import Survivors, VoterFate, away, cut_off_majority, loss, survivors
from quarterdeck.planner.view import View, view


def fence(view: View) -> RuleOutcome:
    """Every program of a former epoch stops where it can be reached, whatever it serves: two epochs must never both
    take writes. This rule comes before all others, also when a machine comes back years later.
    """
    world = view.world
    steps: list[Step] = []
    for record in world.memory.replicas:
        if not world.memory.is_former(record) or not view.reachable(record):
            continue
        steps.extend(
            StopUnit(site=record.site, why=_OVER, replica=record.name, component=component)
            for component in reversed(world.programs.every)
            if view.unit(record, component) not in (*IDLE, UnitState.UNKNOWN)
        )
    return RuleOutcome(tuple(steps))


_OVER = "it belongs to a former epoch of the cluster"


def begin(view: View) -> RuleOutcome:
    """A new epoch begins where the user consents: after a lost quorum, to restore a backup, or to fail over to the
    standby.
    """
    world = view.world
    if world.consent.standby and world.consent.epoch == world.memory.epoch + 1:
        return standby.begin(view)
    if world.consent.restore is not None and world.consent.epoch == world.memory.epoch + 1:
        return _begin_from_backup(view, world.consent.restore)
    left = survivors(world)
    noted = _noted(view, left)
    if noted is not None:
        return RuleOutcome((noted,))
    if left is None or not left.lost:
        return RuleOutcome()
    why_not = waits(world, left)
    if why_not is not None:
        return RuleOutcome(waiting=(why_not,))
    best = left.best
    record = world.memory.replica(best.replica)
    step = BeginEpoch(
        site="",
        why=f"the quorum is lost, and {best.replica} has the most of the written data: {_positions(left)}",
        epoch=world.memory.epoch + 1,
        origin=SurvivorOrigin(replica=best.replica, others=left.words[1:]),
        founder=f"{record.site}-{world.memory.next_ordinal}",
        revision=best.revision,
        seen=world.memory.revision,
    )
    return RuleOutcome((step,))


def _begin_from_backup(view: View, asked: RestorePoint) -> RuleOutcome:
    """A restore begins whatever the present epoch does, unless that may go on serving where it cannot be stopped."""
    world = view.world
    cut_off = cut_off_majority(world)
    if cut_off and not world.consent.even_if_others_live:
        gone = world.command("restore", "--even-if-others-live")
        what = f"{', '.join(cut_off)} to answer: they may still serve, and two epochs must never serve at once"
        return RuleOutcome(waiting=(Wait(what, f"bring their machines back; if they are surely gone, see {gone}"),))
    former = _reachable_place(view)
    step = BeginEpoch(
        site="",
        why=f"the user restores etcd revision {asked.revision:,}",
        epoch=world.memory.epoch + 1,
        origin=asked.origin,
        founder=f"{former.site if former is not None else view.heading}-{world.memory.next_ordinal}",
        revision=asked.revision,
        seen=world.memory.revision,
        events=asked.events,
    )
    return RuleOutcome((step,))


def withdraw(view: View) -> RuleOutcome:
    """A user's consent to a new epoch is removed once the lost quorum is back without one: it does not cover the next
    lost quorum.
    """
    world = view.world
    epoch = world.memory.epoch + 1
    if world.consent.epoch != epoch or world.consent.restore is not None:
        return RuleOutcome()
    step = WithdrawConsent(site="", why="a quorum answers, so no new epoch is needed", epoch=epoch)
    return RuleOutcome((step,))


def _positions(left: Survivors) -> str:
    return ", ".join(
        f"{word.replica} has applied {word.applied:,} of {word.committed:,} entries (term {word.term})"
        for word in left.words
    )


def _noted(view: View, left: Survivors | None) -> NoteQuorum | None:
    """The time since which the quorum is lost is recorded as long as it is, where a decision needs it. Where no member
    answers, nothing follows.
    """
    world, known = view.world, view.world.memory.quorum_lost is not None
    if left is not None and left.lost:
        needed = not known and (world.consent.automatic or may_return(view, left))
        return NoteQuorum(site="", why="the remaining members cannot be a quorum", lost=True) if needed else None
    if known and (world.membership is not None or left is not None or world.memory.seeding is not None):
        return NoteQuorum(site="", why="enough members are there", lost=False)
    return None


def waits(world: World, left: Survivors) -> Wait | None:
    """What a new epoch waits for where the quorum is lost; None if it may begin."""
    if left.awaited:
        first = world.memory.replica(left.awaited[0])
        what = f"member {', '.join(left.awaited)} to report its last entry, before a new epoch can begin"
        return Wait(what, next_steps.look(world, first, Component.ETCD))
    consent, memory = world.consent, world.memory
    asked = consent.epoch == memory.epoch + 1
    if left.others_may_live and not (asked and consent.even_if_others_live):
        gone = next_steps.new_epoch(world, "--even-if-others-live")
        return Wait(
            f"{', '.join(left.of(VoterFate.CUT_OFF))} to answer: they may still serve others, and two epochs must"
            " never serve at once",
            f"bring their machines back; if they are surely gone, see {gone}",
        )
    if asked:
        return None
    since = memory.quorum_lost if memory.quorum_lost is not None else world.now
    if consent.automatic and world.now - since >= world.settings.patience:
        return None
    if consent.automatic:
        return Wait(
            f"{away(world, left)} to come back",
            f"bring their machines back; after {world.settings.patience:g} s a new epoch begins by itself",
        )
    return Wait(
        f"{away(world, left)} to come back with the data",
        f"bring them back; if they never will, see {next_steps.new_epoch(world)}",
    )


def advice(world: World) -> str:
    """The explanation of a lost quorum for people; "" where it is not lost."""
    others, instead = without_standbys(world), standby.offer(world)
    left = survivors(others)
    if left is None or not left.lost:
        return instead
    counted = f"{len(left.of(VoterFate.ALIVE))} of {len(left.fates)} voters are left"
    if world.memory.seeding is not None and isinstance(world.memory.seeding.origin, SurvivorOrigin):
        counted = f"{world.memory.seeding.origin.replica} was lost, and with it the data for the new epoch"
    if (wait := waits(others, left)) is not None:
        counted += f": waiting for {wait}"
    if instead:
        counted += f"; {instead}"
    if back := may_return(view(others), left, confirmed=True):
        names = ", ".join(each.replica for each in back)
        return f"{counted}; then the volumes of {names} are attached to other machines, and no data is lost"
    return f"{counted}; a new epoch would lose {loss(world.memory, left.best)}"


def seed(view: View) -> RuleOutcome:
    """The founder of an epoch gets its data once nothing of the former epoch runs where it can be reached: that of a
    survivor or the standby, on the same machine (once it has stopped, all that it has applied is in its database), or
    that of a backup. No other step comes before that.
    """
    world = view.world
    wanted = world.memory.seeding
    if wanted is None:
        return RuleOutcome()
    if wanted.founder not in {each.name for each in world.memory.replicas}:
        return _place_founder(view, wanted)
    founder = world.memory.replica(wanted.founder)
    source = world.memory.replica(wanted.source) if wanted.source is not None else founder
    if not view.reachable(source):
        return RuleOutcome(waiting=(next_steps.machine(world, source, ", because its data is needed"),))
    running = [each for each in world.memory.replicas if world.memory.is_former(each) and _runs(view, each)]
    if running:
        stops = next_steps.status(world)
        return RuleOutcome(
            waiting=tuple(Wait(f"etcd of {each.name} to stop, and its apiserver", stops) for each in running)
        )
    why = f"a new epoch begins at etcd revision {wanted.revision:,}"
    step = RestoreMember(site=founder.site, why=why, replica=wanted.founder, origin=wanted.origin)
    return RuleOutcome((step,), (Wait(f"the data of {wanted.founder}", next_steps.once(world, "it is copied")),))


def _runs(view: View, record: Replica) -> bool:
    """Whether a program of a reachable replica may still take writes, or write to its database."""
    writers = (Component.ETCD, Component.APISERVER)
    return view.reachable(record) and any(view.unit(record, each) not in IDLE for each in writers)


def _place_founder(view: View, wanted: Seed) -> RuleOutcome:
    """The founder is placed where the survivor, or the standby, is; from a backup, on a machine that a replica had
    before, or on any free machine of a plane that has none.
    """
    if wanted.source is not None:
        survivor = view.world.memory.replica(wanted.source)
        return RuleOutcome((_placed(wanted, survivor, f"it starts from {wanted.origin} on the same machine"),))
    former = _reachable_place(view)
    if former is not None:
        return RuleOutcome((_placed(wanted, former, f"it starts from {wanted.origin}"),))
    for slot in view.missing:
        machine = machine_for(view.world, slot, ())
        if machine is not None:
            step = PlaceReplica(
                site="",
                why=f"it starts from {wanted.origin}",
                replica=wanted.founder,
                slot=replace(slot, zone=machine.zone),
                machine=machine.name,
                storage_class=view.world.storage_class,
                revision=view.revision,
            )
            return RuleOutcome((step,))
    return RuleOutcome(waiting=tuple(no_machine(view.world, slot) for slot in view.missing))


def _reachable_place(view: View) -> Replica | None:
    """The first replica whose machine answers and is not cordoned, preferably where the plane is heading."""
    cordoned = {(each.site, each.name) for each in view.world.machines if each.cordoned}
    usable = (
        each
        for each in view.world.memory.replicas
        if view.reachable(each) and (each.site, each.machine) not in cordoned
    )
    return min(usable, key=lambda each: each.site != view.heading, default=None)


def _placed(wanted: Seed, former: Replica, why: str) -> PlaceReplica:
    return PlaceReplica(
        site="",
        why=why,
        replica=wanted.founder,
        slot=former.slot,
        machine=former.machine,
        storage_class=former.storage_class,
        revision=former.revision,
    )


def drop_kept(world: World) -> tuple[tuple[Step, ...], tuple[Wait, ...]]:
    """Data of former epochs is deleted with its plane."""
    up = {(each.site, each.name) for each in world.machines if each.state is MachineState.UP}
    steps: list[Step] = []
    waiting: list[Wait] = []
    for each in world.memory.kept:
        if (each.site, each.machine) in up:
            steps.append(
                DeleteKept(site=each.site, why="the plane is deleted", replica=each.replica, machine=each.machine)
            )
        else:
            waiting.append(next_steps.silent(world, each.site, each.machine, ", which has data of a former epoch,"))
    return tuple(steps), tuple(waiting)
