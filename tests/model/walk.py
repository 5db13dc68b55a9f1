"""From one state to the next: a round of the planner, or anything that can come between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from model.clients import Clients
from model.faults import data_loss, faults, links, new_driver, repaired, retried, survivable, whole
from model.faulty_truth import FaultyTruth
from model.invariants import (
    check_blind,
    check_calm,
    check_cut,
    check_plan,
    check_read,
    check_step,
    check_swap,
    claim,
    flat,
    names,
    unreadable,
)
from model.kinds import ASKED_FOR, Fault, Kind
from model.mixed_looks import mixed_looks
from model.refusals import Refusal, check_held_back, ranked
from model.worlds import normal, ranks, standing
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Note, Step
from quarterdeck.model.steps.members import (
    AddLearner,
    CancelDowngrade,
    Compact,
    Defragment,
    Disarm,
    EnableDowngrade,
    Promote,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.stored import CheckStored
from quarterdeck.model.steps.traffic import LeadTo, RemoveRecord, SetBackends, SetRecord
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.planner import plan as real_plan
from quarterdeck.planner.simulated import RefusedError, apply, observe, tick

Planner = Callable[[World], Plan]

#: Calls that carry no token: etcd does not know which driver is the newer one.
UNFENCED = (
    AddLearner,
    Promote,
    RemoveMember,
    TransferLeadership,
    Compact,
    Defragment,
    Disarm,
    EnableDowngrade,
    CancelDowngrade,
)
#: Changes of the plane's record.
NAMING = (SetRecord, LeadTo, RemoveRecord)
#: Plans of up to this many steps are cut short in every way; of longer ones, any one step or all after it.
MOST_SUBSETS = 4


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user may ask for instead at any moment: other slots, or another revision (None: the same), or (``slots``
    empty) that the plane goes. ``direct``: whether its name is to lead to apiservers themselves (None: as it does);
    ``standby``: the site of the standby ("": none; None: as it is); ``keeps_one``: whether one replica keeps its etcd
    (None: as it does).
    """

    name: str
    slots: tuple[Slot, ...] = ()
    revision: str | None = None
    direct: bool | None = None
    standby: str | None = None
    keeps_one: bool | None = None

    def of(self, truth: FaultyTruth) -> FaultyTruth:
        """The truth once it was asked for."""
        if not self.slots:
            return replace(truth, deleting=True)
        return replace(
            truth,
            slots=self.slots,
            revision=truth.revision if self.revision is None else self.revision,
            direct=truth.direct if self.direct is None else self.direct,
            condemned=(),
            standby=truth.standby if self.standby is None else standing(self.standby),
            keeps_one=truth.keeps_one if self.keeps_one is None else self.keeps_one,
        )


@dataclass(frozen=True, slots=True)
class State:
    """A truth (in its normal form), what clients hold, and what may still come between.

    ``calm``: nothing but drivers has failed so far. ``swapping``: a driver died amid a swap that is not finished.
    ``late``: what a driver that was frozen just before it, and was replaced since, may still do at any moment.
    ``stamped``: the record carries the token of the driver that there is now. ``refused``: what is refused every time;
    ``aside``: the step that was refused last, which the driver puts aside. ``unread``: the revisions of an older minor
    version that may not be able to read all that is stored.
    """

    truth: FaultyTruth
    clients: Clients = Clients()
    faults: int = 0
    wishes: int = 0
    calm: bool = True
    swapping: bool = False
    late: Step | None = None
    stamped: bool = True
    refused: Refusal | None = None
    aside: Step | None = None
    unread: frozenset[str] = frozenset()

    def settled(self) -> State:
        """The same state in its normal form."""
        clients, truth = self.clients.aged(self.truth), normal(self.truth)
        swapping = self.swapping and any(truth.of(each).quorum_site is None for each in truth.memory.clusters)
        late, aside = self._ranked(self.late), self._ranked(self.aside)
        # Without a record there is none to be stamped, and a fixed address has none.
        stamped = self.stamped or truth.deleting or truth.fixed or truth.record is None
        as_before = swapping == self.swapping and stamped == self.stamped and aside is self.aside
        if clients is self.clients and truth is self.truth and late is self.late and as_before:
            return self
        return replace(self, truth=truth, clients=clients, swapping=swapping, late=late, stamped=stamped, aside=aside)

    def taken_over(self, late: Step | None = None) -> State:
        """Another driver takes over; ``late``: what the one before was about to do."""
        truth = retried(new_driver(self.truth))
        return replace(self, truth=truth, late=late or self.late, stamped=False, aside=None)

    def after(self, before: FaultyTruth, step: Step, after: FaultyTruth) -> State:
        """The state after a step of the driver that there is now. A late call on the machines of a site, or to the
        DNS server, is refused from then on; etcd knows no drivers.
        """
        clients = self.clients.after(before, step, after)
        named = isinstance(step, NAMING)
        late = None if self.late is not None and _fences(step, self.late) else self.late
        unread = self.unread - ({step.revision} if isinstance(step, CheckStored) else set()) | unreadable(after)
        return replace(self, truth=after, clients=clients, late=late, stamped=self.stamped or named, unread=unread)

    def _ranked(self, step: Step | None) -> Step | None:
        return ranked(step, ranks(self.truth.replicas)) if step is not None else None

    def refuses(self, step: Step) -> bool:
        """Whether a step is refused whenever it is tried."""
        return self.never_runs(step) or (self.refused is not None and Refusal.of(step) == self.refused)

    def never_runs(self, step: Step) -> bool:
        """Whether a step starts a load balancer that ends as often as it is started."""
        return isinstance(step, SetBackends) and step.site in self.truth.looping

    def mended(self) -> State:
        """All is repaired."""
        return replace(self, truth=repaired(self.truth), refused=None, aside=None).settled()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that comes between; ``kind`` is None for what is no fault."""

    kind: Kind | None
    name: str
    state: State


@dataclass(frozen=True, slots=True)
class DriverFault:
    """What goes wrong with a driver: its class, its name, and the state after it."""

    kind: Kind
    name: str
    state: State


@dataclass(frozen=True, slots=True)
class Round:
    """What a driver is about to do: ``state`` is that after it wrote ``noted`` down, ``plan`` what is to be done."""

    state: State
    noted: tuple[Step, ...]
    plan: Plan


@dataclass
class Walker:
    """Walks with one planner. ``kinds``: the classes of faults that happen (None: all, but the loss of data only if
    ``with_data_loss``), ``mended``: whether what broke may be repaired. ``steps`` counts the steps that were carried
    out and checked.
    """

    planner: Planner = real_plan
    wishes: tuple[Wish, ...] = ()
    with_data_loss: bool = False
    kinds: frozenset[Kind] | None = None
    mended: bool = True
    steps: int = 0

    def look(self, state: State, world: World | None = None) -> Round:
        """What the driver makes of a state, or of ``world``, in which it sees it. What only has to be written down is
        written down first, and what was observed is planned on again; all of it is checked.
        """
        if state.calm:
            check_calm(state.truth, state.clients, swapping=state.swapping)
        if world is None:
            world = observe(state.truth)
        if not state.stamped:
            world = replace(world, stamped=False)
        if state.aside is not None:
            world = replace(world, failing=(Failing(step=state.aside, error="what is refused to succeed"),))
        noted: list[Step] = []
        while True:
            plan = self.planner(world)
            check_plan(world, plan)
            if world.failing:
                check_held_back(self.planner(replace(world, failing=())), world, plan)
            if not plan.now or not all(isinstance(step, Note) for step in plan.now):
                return Round(state, tuple(noted), plan)
            state, _ = self._take(state, plan.now)
            noted.extend(plan.now)
            claim(state.truth.memory != world.memory, f"10: {names(plan.now)} notes nothing")
            world = world.with_memory(state.truth.memory)

    def carried_out(self, now: Round) -> State:
        """The state after a round: its steps, or else that time passes; every step is checked."""
        following, well = self._after(now)
        if well and len(now.plan.now) > 1 and not any(isinstance(step, AddLearner) for step in now.plan.now):
            # They are carried out at the same time: no order may do harm, nor matter.
            other, _ = self._take(now.state, now.plan.now[::-1])
            claim(_unordered(other) == _unordered(following), f"10: the order of {names(now.plan.now)} matters")
        return following.settled()

    def _after(self, now: Round) -> tuple[State, bool]:
        """``carried_out``, with times and ids as they were; and whether no step was refused."""
        state, plan = now.state, now.plan
        if not plan.now:
            return (state if now.noted else replace(state, truth=tick(state.truth))), True
        following, well = self._take(state, plan.now)
        return (following if well else replace(following, truth=tick(following.truth))), well

    def _take(self, state: State, steps: tuple[Step, ...]) -> tuple[State, bool]:
        """All steps, one after the other; a refused one does not hold up the others. Whether none was refused."""
        well = True
        for step in steps:
            if state.refuses(step):
                # What does not run is there all the same: its supervisor goes on starting it.
                state = self._step(state, step) if state.never_runs(step) else state
                state, well = replace(state, aside=bare(step)), False
                continue
            try:
                state = self._swap(state, step) if isinstance(step, Swap) else self._step(state, step)
            except RefusedError:
                well = False
        return state, well

    def _step(self, state: State, step: Step, *, swapping: bool = False) -> State:
        before = state.truth
        after = apply(before, step)
        self.steps += 1
        check_step(before, step, after, state.clients, swapping=swapping)
        check_read(before, step, state.unread)
        return state.after(before, step, after)

    def _swap(self, state: State, step: Swap) -> State:
        truths = [state.truth]
        for change in step.changes:
            state = self._step(state, change, swapping=True)
            truths.append(state.truth)
        check_swap(truths, step)
        return state

    def others(self, state: State, now: Round) -> Iterator[Event]:
        """Everything else that may happen in a state."""
        yield from self.wished(state)
        if self.mended and not (whole(state.truth) and state.refused is None):
            yield Event(None, "all is repaired", state.mended())
        if (again := retried(state.truth)) is not state.truth:
            yield Event(None, "it is tried once more", replace(state, truth=again).settled())
        yield from self.landed(state)
        if state.faults:
            yield from self.failed(state, now)

    def wished(self, state: State) -> Iterator[Event]:
        """The user wants something else."""
        for wish in self.wishes if state.wishes else ():
            truth = wish.of(state.truth)
            if truth != state.truth:
                yield Event(None, f"the user wants {wish.name}", replace(state, truth=truth, wishes=state.wishes - 1))

    def landed(self, state: State) -> Iterator[Event]:
        """The late call of an old driver lands. What it then would write down is refused: its token is old."""
        if state.late is None:
            return
        before = state.truth
        try:
            after = replace(apply(before, state.late), memory=before.memory)
        except RefusedError:
            return
        check_blind(before, state.late, after)
        clients = state.clients.after(before, state.late, after)
        stamped = state.stamped and not isinstance(state.late, SetRecord | LeadTo)
        unread = state.unread | unreadable(after)
        landed = replace(state, truth=after, clients=clients, late=None, calm=False, stamped=stamped, unread=unread)
        yield Event(None, f"the late {names((state.late,))} lands", landed.settled())

    def failed(self, state: State, now: Round) -> Iterator[Event]:
        """Something fails: the driver, or anything in the world, at any moment."""
        yield from self.driver_failed(state, now)
        for moment in moments(state, now):
            for fault in self.faults(moment.state.truth):
                struck = moment.struck(fault)
                if survivable(struck.truth):
                    yield Event(fault.kind, f"{fault.name}{moment}", struck)
            # Only what is cut at the very moment of the swap may stop the plane.
            if state.calm and not state.swapping and not moment.rest:
                for fault in links(state.truth):
                    check_cut(state.truth, fault.truth)

    def _allowed(self, kind: Kind) -> bool:
        return kind not in ASKED_FOR if self.kinds is None else kind in self.kinds

    def faults(self, truth: FaultyTruth) -> Iterator[Fault]:
        """Whatever may fail in the world."""
        yield from (fault for fault in faults(truth) if self._allowed(fault.kind))
        if self.with_data_loss:
            yield from (fault for fault in data_loss(truth) if self._allowed(fault.kind))

    def driver_failed(self, state: State, now: Round) -> Iterator[Event]:
        """The driver dies amid its steps; some of them fail; one's effect is there and not remembered; or what it
        sees is not so any more.
        """
        for event in (*self._driver_faults(state, now), *self._old_looks(now)):
            if self._allowed(event.kind):
                yield Event(event.kind, event.name, replace(event.state, faults=state.faults - 1).settled())

    def _driver_faults(self, state: State, now: Round) -> Iterator[DriverFault]:
        for when, at in (("", state), (f" after {names(now.noted)}", now.state)) if now.noted else (("", state),):
            taken_over = at.taken_over().settled()
            if taken_over != state:
                yield DriverFault(Kind.TAKEOVER, f"another driver takes over{when}", taken_over)
        state, plan = now.state, now.plan
        if plan.now:
            yield DriverFault(Kind.SLOW, "time passes before", replace(state, truth=tick(state.truth)))
        for some in _subsets(plan.now):
            following, _ = self._take(state, some)
            yield DriverFault(Kind.SOME_STEPS, f"only {names(some)} is done", following)
        for step in plan.now if state.refused is None else ():
            if not isinstance(step, Note):
                refusing = replace(state, refused=Refusal.of(step))
                following, _ = self._after(replace(now, state=refusing))
                yield DriverFault(Kind.REFUSED, f"{names((step,))} is refused every time", following)
        for step in plan.now:
            others = tuple(each for each in plan.now if each is not step)
            for context in ((), others) if others else ((),):
                following, _ = self._take(state, context)
                for fault in self._cut_short(following, step):
                    name = f"{fault.name} (and {names(context) or 'nothing else'})"
                    yield DriverFault(fault.kind, name, fault.state)

    def _old_looks(self, now: Round) -> Iterator[DriverFault]:
        """What the driver sees after a round is, in whole or in part, what it saw before it."""
        after, _ = self._after(now)
        before, seen = observe(now.state.truth), observe(after.truth)
        for kind, name, mixed in mixed_looks(before, seen):
            if self._allowed(kind):
                done, _ = self._after(self.look(after, mixed))
                yield DriverFault(kind, f"{name} after {names(now.plan.now) or 'a while'}", done)

    def _cut_short(self, state: State, step: Step) -> Iterator[DriverFault]:
        """A step is not carried out to its end: a swap is broken off, an effect is there and not remembered, or the
        driver freezes just before a call and another one takes over.
        """
        began = state
        try:
            for index, change in enumerate(flat(step)):
                if index:
                    name = f"the driver dies after {index} changes of the swap"
                    yield DriverFault(Kind.SWAP_BROKEN_OFF, name, replace(state, swapping=True))
                if not isinstance(change, Note | PlaceReplica):
                    frozen = replace(state.taken_over(change), swapping=bool(index))
                    name = f"the driver freezes before {names((change,))}, and another takes over"
                    yield DriverFault(Kind.LATE, name, frozen)
                state = self._step(state, change, swapping=isinstance(step, Swap))
        except RefusedError:
            return
        forgotten = replace(state.truth, memory=began.truth.memory)
        if state.truth.memory != began.truth.memory and forgotten != began.truth:
            yield DriverFault(
                Kind.REPLY_LOST, f"{names((step,))} is done, its reply lost", replace(state, truth=forgotten)
            )


def _fences(step: Step, late: Step) -> bool:
    """Whether a step of the newer driver has the older one's late call refused."""
    if isinstance(late, NAMING):
        return isinstance(step, NAMING)
    return step.site == late.site and not isinstance(late, UNFENCED) and not isinstance(step, UNFENCED)


def _unordered(state: State) -> FaultyTruth:
    truth = state.settled().truth
    records = tuple(sorted(truth.memory.replicas, key=lambda record: record.name))
    return replace(truth, memory=replace(truth.memory, replicas=records))


def _subsets(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Which of several steps were carried out when some failed: never none, never all."""
    count = len(steps)
    if count <= MOST_SUBSETS:
        for size in range(1, count):
            yield from combinations(steps, size)
        return
    for index in range(count):
        yield (steps[index],)
        yield tuple(step for step in steps if step is not steps[index])
        if 1 < index < count - 1:
            yield steps[:index]


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment between an observation and the end of what it leads to, with the steps that are still to come."""

    state: State
    rest: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return f" before {names(self.rest)}" if self.rest else ""

    def struck(self, fault: Fault) -> State:
        """The state when a fault strikes now, and the rest is carried out all the same."""
        state = replace(self.state, truth=fault.truth, faults=self.state.faults - 1, calm=False)
        return _blind(state, self.rest, claimed=True).settled()


def moments(state: State, now: Round) -> Iterator[Moment]:
    """Before the round, and before each change that it makes."""
    yield Moment(state)
    state, steps = now.state, now.plan.now
    for index, step in enumerate(steps):
        rest, changes = steps[index + 1 :], flat(step)
        for done in range(len(changes)):
            yield Moment(state, (replace(step, changes=changes[done:]) if isinstance(step, Swap) else step, *rest))
            state = _blind(state, (changes[done],))


def _blind(state: State, steps: tuple[Step, ...], *, claimed: bool = False) -> State:
    """Steps go on although the world is no longer as it was observed: what must not happen even then is claimed, and
    whatever else that does must be survived.
    """
    for step in steps:
        for change in flat(step) if not state.refuses(step) else ():
            before = state.truth
            try:
                after = apply(before, change)
            except RefusedError:
                break  # of a swap, nothing more is done; other steps do not wait for one another
            if claimed:
                check_blind(before, change, after, swapping=isinstance(step, Swap))
            state = state.after(before, change, after)
    return state
