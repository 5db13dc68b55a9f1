"""From one state to the next: a round of the planner, or anything that can come between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from model.clients import Clients
from model.faults import Fault, data_loss, faults, links, new_driver, repaired, survivable, whole
from model.invariants import check_calm, check_cut, check_plan, check_step, check_swap, claim, flat, names
from model.worlds import normal
from quarterdeck.model.slots import Slot
from quarterdeck.model.steps import (
    AddLearner,
    DecideBootstrap,
    NoteCluster,
    NoteCreated,
    NoteDraining,
    NoteMembers,
    NoteRecord,
    NoteUnsettled,
    Plan,
    Step,
    Swap,
)
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan as real_plan
from quarterdeck.planner.simulator import RefusedError, apply, observe, tick
from quarterdeck.planner.truth import Truth

Planner = Callable[[World], Plan]

#: Steps that only write the memory. The driver writes all that a plan has in one go.
NOTES = (DecideBootstrap, NoteCreated, NoteCluster, NoteMembers, NoteRecord, NoteUnsettled, NoteDraining)
#: Plans of up to this many steps are cut short in every way; of longer ones, any one step or all after it.
MOST_SUBSETS = 4


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user may ask for instead at any moment: other slots, or (``slots`` empty) that the plane goes."""

    name: str
    slots: tuple[Slot, ...] = ()

    def of(self, truth: Truth) -> Truth:
        """The truth once it was asked for."""
        return replace(truth, slots=self.slots) if self.slots else replace(truth, deleting=True)


@dataclass(frozen=True, slots=True)
class State:
    """A truth (in its normal form), what clients hold, and what may still come between.

    ``calm``: nothing but drivers has failed so far. ``swapping``: a driver died amid a swap that is not finished.
    """

    truth: Truth
    clients: Clients = Clients()
    faults: int = 0
    wishes: int = 0
    calm: bool = True
    swapping: bool = False

    def settled(self) -> State:
        """The same state in its normal form."""
        clients, truth = self.clients.aged(self.truth), normal(self.truth)
        swapping = self.swapping and truth.home is None
        if clients is self.clients and truth is self.truth and swapping == self.swapping:
            return self
        return replace(self, truth=truth, clients=clients, swapping=swapping)


@dataclass(frozen=True, slots=True)
class Round:
    """What a driver is about to do: ``state`` is that after it wrote ``noted`` down, ``plan`` what is to be done."""

    state: State
    noted: tuple[Step, ...]
    plan: Plan


@dataclass
class Walker:
    """Walks with one planner. ``steps`` counts the steps that were carried out and checked."""

    planner: Planner = real_plan
    wishes: tuple[Wish, ...] = ()
    with_data_loss: bool = False
    steps: int = 0

    def look(self, state: State) -> Round:
        """What the driver makes of a state. What only has to be written down is written down first, and what was
        observed is planned on again; all of it is checked.
        """
        if state.calm:
            check_calm(state.truth, state.clients, swapping=state.swapping)
        world = observe(state.truth)
        noted: list[Step] = []
        while True:
            plan = self.planner(world)
            check_plan(world, plan)
            if not plan.now or not all(isinstance(step, NOTES) for step in plan.now):
                return Round(state, tuple(noted), plan)
            state, _ = self._take(state, plan.now)
            noted.extend(plan.now)
            claim(state.truth.memory != world.memory, f"10: {names(plan.now)} notes nothing")
            world = replace(world, memory=state.truth.memory)

    def carried_out(self, now: Round) -> State:
        """The state after a round: its steps, or else that time passes; every step is checked."""
        state, plan = now.state, now.plan
        if not plan.now:
            return (state if now.noted else replace(state, truth=tick(state.truth))).settled()
        following, well = self._take(state, plan.now)
        if well and len(plan.now) > 1 and not any(isinstance(step, AddLearner) for step in plan.now):
            # They are carried out at the same time: no order may do harm, nor matter.
            other, _ = self._take(state, plan.now[::-1])
            claim(_unordered(other) == _unordered(following), f"10: the order of {names(plan.now)} matters")
        return (following if well else replace(following, truth=tick(following.truth))).settled()

    def _take(self, state: State, steps: tuple[Step, ...]) -> tuple[State, bool]:
        """All steps, one after the other; a refused one does not hold up the others. Whether none was refused."""
        well = True
        for step in steps:
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
        return replace(state, truth=after, clients=state.clients.after(before, step, after))

    def _swap(self, state: State, step: Swap) -> State:
        truths = [state.truth]
        for change in step.changes:
            state = self._step(state, change, swapping=True)
            truths.append(state.truth)
        check_swap(truths, step)
        return state

    def others(self, state: State, now: Round) -> Iterator[tuple[str, State]]:
        """Everything else that may happen in a state, each with its name."""
        yield from self.wished(state)
        if not whole(state.truth):
            yield "all is repaired", replace(state, truth=repaired(state.truth)).settled()
        yield from self.failed(state, now)

    def wished(self, state: State) -> Iterator[tuple[str, State]]:
        """The user wants something else."""
        for wish in self.wishes if state.wishes else ():
            truth = wish.of(state.truth)
            if truth.slots != state.truth.slots or truth.deleting != state.truth.deleting:
                yield f"the user wants {wish.name}", replace(state, truth=truth, wishes=state.wishes - 1)

    def failed(self, state: State, now: Round) -> Iterator[tuple[str, State]]:
        """Something fails: the driver, or anything in the world, at any moment."""
        if not state.faults:
            return
        yield from self.driver_failed(state, now)
        for moment in moments(state, now):
            for fault in self.faults(moment.state.truth):
                struck = moment.struck(fault)
                if survivable(struck.truth):
                    yield f"{fault.name}{moment}", struck
            # Only what is cut at the very moment of the swap may stop the plane.
            if state.calm and not state.swapping and not moment.rest:
                for fault in links(state.truth):
                    check_cut(state.truth, fault.truth)

    def faults(self, truth: Truth) -> Iterator[Fault]:
        """Whatever may fail in the world."""
        yield from faults(truth)
        if self.with_data_loss:
            yield from data_loss(truth)

    def driver_failed(self, state: State, now: Round) -> Iterator[tuple[str, State]]:
        """The driver dies amid its steps; some of them fail; or one's effect is there and not remembered."""
        for name, following in self._driver_faults(state, now):
            yield name, replace(following, faults=state.faults - 1).settled()

    def _driver_faults(self, state: State, now: Round) -> Iterator[tuple[str, State]]:
        fresh = new_driver(state.truth)
        if fresh is not state.truth:
            yield "another driver takes over", replace(state, truth=fresh)
        state, plan = now.state, now.plan
        if now.noted and plan.now:
            yield f"the driver dies after {names(now.noted)}", state
        for some in _subsets(plan.now):
            following, _ = self._take(state, some)
            yield f"only {names(some)} is done", following
        for step in plan.now:
            others = tuple(each for each in plan.now if each is not step)
            for context in ((), others) if others else ((),):
                following, _ = self._take(state, context)
                for name, done in self._cut_short(following, step):
                    yield f"{name} (and {names(context) or 'nothing else'})", done

    def _cut_short(self, state: State, step: Step) -> Iterator[tuple[str, State]]:
        """A step is not carried out to its end: a swap is broken off, or an effect is there and not remembered."""
        try:
            if isinstance(step, Swap):
                for index, change in enumerate(step.changes[:-1], start=1):
                    state = replace(self._step(state, change, swapping=True), swapping=True)
                    yield f"the driver dies after {index} changes of the swap", state
                return
            after = self._step(state, step)
        except RefusedError:
            return
        forgotten = replace(after.truth, memory=state.truth.memory)
        if after.truth.memory != state.truth.memory and forgotten != state.truth:
            yield f"{names((step,))} is done, its reply lost", replace(after, truth=forgotten)


def _unordered(state: State) -> Truth:
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
        return _blind(state, self.rest).settled()


def moments(state: State, now: Round) -> Iterator[Moment]:
    """Before the round, and before each change that it makes."""
    yield Moment(state)
    state, steps = now.state, now.plan.now
    for index, step in enumerate(steps):
        rest, changes = steps[index + 1 :], flat(step)
        for done in range(len(changes)):
            yield Moment(state, (replace(step, changes=changes[done:]) if isinstance(step, Swap) else step, *rest))
            state = _blind(state, (changes[done],))


def _blind(state: State, steps: tuple[Step, ...]) -> State:
    """Steps go on although the world is no longer as it was observed: whatever that does, it must be survived."""
    for step in steps:
        for change in flat(step):
            before = state.truth
            try:
                after = apply(before, change)
            except RefusedError:
                break  # of a swap, nothing more is done; other steps do not wait for one another
            state = replace(state, truth=after, clients=state.clients.after(before, change, after))
    return state
