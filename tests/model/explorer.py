"""Exhaustive search: every state that the planner and a bounded number of faults can lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from model.invariants import Broken, check_observed, check_plan, check_step, flat
from model.worlds import data_loss, faults, normal, repaired
from quarterdeck.model.remember import remember
from quarterdeck.model.slots import Slot
from quarterdeck.model.steps import Plan, SetRecord, Step, Swap
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan as real_plan
from quarterdeck.planner.simulator import RefusedError, Truth, apply, observe, tick

Planner = Callable[[World], Plan]

#: Fault-free rounds within which every state must reach done.
MOST_ROUNDS = 250


@dataclass(frozen=True)
class State:
    """A truth, the addresses that clients hold (site, since), and what may still go wrong."""

    truth: Truth
    held: tuple[tuple[str, float], ...]
    faults: int
    wishes: int

    def key(self) -> tuple[Truth, tuple[tuple[str, float], ...], int, int]:
        ages = tuple(sorted((site, max(since - self.truth.now, -3.0)) for site, since in self.held))
        return normal(self.truth), ages, self.faults, self.wishes


def held_sites(state: State) -> frozenset[str]:
    """The sites whose address a client may hold: the record's, and every former one within its time to live."""
    settings = state.truth.settings
    former = {site for site, since in state.held if state.truth.now - since < settings.ttl + settings.drain}
    return frozenset(former | ({state.truth.record} if state.truth.record else set()))


@dataclass
class Explorer:
    """Searches from one truth. ``wishes`` are what the user may ask for instead at any moment (abort, retarget)."""

    planner: Planner = real_plan
    wishes: tuple[tuple[Slot, ...], ...] = ()
    with_data_loss: bool = False
    states: int = 0
    steps: int = 0
    finished: set[object] = field(default_factory=set)

    def explore(self, truth: Truth, *, faults: int, wishes: int = 0, most: int = 2_000_000) -> None:
        """Visit everything; raises Broken with the way there when an invariant does not hold."""
        start = State(truth, (), faults, wishes)
        seen = {start.key()}
        queue: list[tuple[State, tuple[str, ...]]] = [(start, ())]
        while queue:
            state, path = queue.pop()
            self.states += 1
            if self.states > most:
                raise AssertionError(f"more than {most} states")
            try:
                for name, following in self._successors(state):
                    key = following.key()
                    if key not in seen:
                        seen.add(key)
                        queue.append((following, (*path, name)))
                self._must_finish(state)
            except Broken as broken:
                tale = "\n  ".join(path[-25:])
                raise Broken(f"{broken}\n  {tale}") from broken

    def _successors(self, state: State) -> Iterator[tuple[str, State]]:
        world = observe(state.truth)
        plan = self.planner(world)
        check_plan(world, plan)
        check_observed(world, plan)
        yield "round", self._round(state, plan)
        for wish in self.wishes if state.wishes else ():
            if wish != state.truth.slots:
                yield (
                    f"user wants {wish[0].site}",
                    replace(state, truth=replace(state.truth, slots=wish), wishes=state.wishes - 1),
                )
        if not state.faults:
            return
        less = replace(state, faults=state.faults - 1)
        yield from self._broken_rounds(less, plan)
        for fault in self._faults(state.truth):
            yield fault.name, replace(less, truth=fault.truth)
            if plan.now:
                # The fault strikes between the observation and the steps that it led to.
                yield f"{fault.name} before {_names(plan.now)}", self._blind(replace(less, truth=fault.truth), plan)

    def _faults(self, truth: Truth) -> Iterator:  # type: ignore[type-arg]
        yield from faults(truth)
        if self.with_data_loss:
            yield from data_loss(truth)

    def _round(self, state: State, plan: Plan) -> State:
        if not plan.now:
            return replace(state, truth=tick(state.truth))
        for step in plan.now:
            for change in _changes(step):
                before = state.truth
                try:
                    after = apply(before, change)
                except RefusedError:
                    return replace(state, truth=tick(before))
                self.steps += 1
                if not isinstance(step, Swap):
                    check_step(before, step, after, held_sites(state))
                state = _handed(replace(state, truth=after), before, change)
            if isinstance(step, Swap):
                check_swap(state.truth, step)
        return state

    def _broken_rounds(self, state: State, plan: Plan) -> Iterator[tuple[str, State]]:
        """The driver dies after each change; and each change takes effect without being remembered."""
        changes = [change for step in plan.now for change in _changes(step)]
        truth = state.truth
        for index, change in enumerate(changes):
            try:
                after = apply(truth, change)
            except RefusedError:
                return
            forgotten = replace(after, memory=truth.memory)
            if after.memory != truth.memory and forgotten != truth:
                yield (
                    f"{type(change).__name__} is done, its reply lost",
                    _handed(replace(state, truth=forgotten), truth, change),
                )
            state = _handed(replace(state, truth=after), truth, change)
            truth = after
            if index + 1 < len(changes):
                yield f"driver dies after {type(change).__name__}", state

    def _blind(self, state: State, plan: Plan) -> State:
        for step in plan.now:
            for change in _changes(step):
                before = state.truth
                try:
                    state = _handed(replace(state, truth=apply(before, change)), before, change)
                except RefusedError:
                    return state
        return state

    def _must_finish(self, state: State) -> None:
        """Once everything is repaired, the plane reaches done."""
        truth = repaired(state.truth)
        chain: list[object] = []
        for _ in range(MOST_ROUNDS):
            key = normal(truth)
            if key in self.finished:
                self.finished.update(chain)
                return
            chain.append(key)
            plan = self.planner(observe(truth))
            if plan.done:
                self.finished.update(chain)
                return
            for step in plan.now:
                truth = apply(truth, step)
            if not plan.now:
                truth = tick(truth)
        raise Broken(f"10: no progress; waiting for {plan.waiting}, doing {_names(plan.now)}")


def check_swap(after: Truth, step: Swap) -> None:
    from model.invariants import claim, true_voters
    from quarterdeck.planner.quorum import home

    claim(home(true_voters(after)) == step.site, f"3: after the swap {step.site} holds no quorum by itself")


def _changes(step: Step) -> tuple[Step, ...]:
    return flat(step)


def _names(steps: tuple[Step, ...]) -> str:
    return ", ".join(f"{type(step).__name__} {getattr(step, 'replica', step.site)}" for step in steps)


def _handed(state: State, before: Truth, step: Step) -> State:
    """Clients go on holding the address that the name led to until now."""
    if isinstance(step, SetRecord) and before.record is not None and before.record != step.to:
        held = {site: since for site, since in state.held if site != before.record}
        held[before.record] = before.now
        return replace(state, held=tuple(sorted(held.items())))
    return state


def remembered(truth: Truth, step: Step) -> Truth:
    """Only the memory of a step, as when its effect was lost."""
    return replace(truth, memory=remember(truth.memory, step, truth.now))
