"""Exhaustive search: every state that the planner, faults and wishes can lead to, and where each of them ends."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from random import Random

from model.addresses import astray, dark
from model.faults import given_up, healable, spared, unfit, whole
from model.faulty_truth import FaultyTruth
from model.invariants import Broken, check_done, claim, names
from model.kinds import Kind
from model.manual_changes import stray_voters
from model.refusals import claim_others, refusing
from model.walk import Event, Round, State, Walker
from quarterdeck.model.clusters import CALLED
from quarterdeck.model.components import Component
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import SetBackends, SetRecord
from quarterdeck.planner.simulated import observe

Budget = tuple[int, int, bool, bool]
#: The way to a state: how the last step of it is called, and the way before it.
Way = tuple[str, "Way | None"]


@dataclass
class _Interned:
    """Equal values get equal numbers. A value that is known itself is found without hashing it."""

    by_value: dict[object, int] = field(default_factory=dict)
    by_id: dict[int, int] = field(default_factory=dict)

    def number(self, value: Hashable) -> int:
        known = self.by_id.get(id(value))
        if known is None:
            known = self.by_value.get(value)
            if known is None:
                known = len(self.by_value)
                self.by_value[value] = known
                self.by_id[id(value)] = known  # it lives on in by_value, so its id is never used again
        return known


#: Rounds for which an address at most leads nowhere though it could: one, in which that is mended.
MOST_DARK = 1


@dataclass(frozen=True, slots=True)
class Sample:
    """A search of what is too much to be searched whole: at some of the states (``at``: their share) something comes
    between, and some of what could (``of``: its share). ``most``: after so many states nothing does any more.
    """

    seed: int
    at: float
    of: float
    most: int


@dataclass
class Explorer:
    """Searches from one state; raises Broken with the way there when an invariant does not hold."""

    walker: Walker
    sample: Sample | None = None
    states: int = 0
    kinds: set[Kind] = field(default_factory=set)
    _interned: _Interned = field(default_factory=_Interned)
    _numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    _ways: dict[int, Way] = field(default_factory=dict)
    _seen: list[tuple[Budget, ...]] = field(default_factory=list)
    _round: dict[int, int] = field(default_factory=dict)
    _dark: dict[int, frozenset[str]] = field(default_factory=dict)
    _draws: Random = field(default_factory=Random)
    _goal: tuple[Slot, ...] = ()
    _acts: set[int] = field(default_factory=set)
    _ends: dict[int, tuple[State, Plan]] = field(default_factory=dict)

    def explore(self, start: State, *, most: int = 5_000_000) -> None:
        """Visit everything, or what is in the sample."""
        if self.sample is not None:
            self._draws = Random(self.sample.seed)
        start, self._goal = start.settled(), start.truth.slots
        queue: list[tuple[int, State, Way]] = [(self._number(start), start, ("start", None))]
        while queue:
            number, state, way = queue.pop()
            if not self._is_new(number, state):
                continue
            self._ways[number] = way
            self.states += 1
            if self.states > most:
                raise AssertionError(f"more than {most} states")
            try:
                for event in self._following(number, state):
                    if event.kind is not None:
                        self.kinds.add(event.kind)
                    queue.append((self._number(event.state), event.state, (event.name, way)))
            except Broken as broken:
                raise Broken(f"{broken}\n  {_tale(way)}") from broken
        self._all_end_well()

    def _following(self, number: int, state: State) -> list[Event]:
        now = self.walker.look(state)
        then = self.walker.carried_out(now)
        if number not in self._round:
            self._round[number] = self._number(then)
            if now.plan.now or now.noted:
                self._acts.add(number)
            self._dark[number] = dark(state.truth, state.clients) - refusing(state.refused)
            if self._round[number] == number:
                self._ends[number] = (state, now.plan)
            if now.plan.done:
                check_done(now.state.truth, now.plan)
        # The fault-free way is searched first, with all faults still to come: what follows faults often joins it.
        done = Event(None, names((*now.noted, *now.plan.now)) or "time passes", then)
        return [*self._between(state, now), done]

    def _between(self, state: State, now: Round) -> list[Event]:
        sample, draw = self.sample, self._draws.random
        if sample is None or not (state.faults or state.wishes):
            return list(self.walker.others(state, now))
        if self.states > sample.most or draw() > sample.at:
            return []
        return [event for event in self.walker.others(state, now) if draw() < sample.of]

    def _number(self, state: State) -> int:
        truth, number = state.truth, self._interned.number
        key = (
            number(truth.slots),
            number(truth.memory),
            number(truth.machines),
            number(truth.replicas),
            number(truth.balancers),
            number(truth.checked),
            number((truth.seconds, truth.dead_seconds, truth.unnamed, truth.away, truth.direct, truth.named)),
            number(truth.unrouted),
            number((truth.dead_edges, truth.cuts, truth.mute, truth.record, truth.leader, truth.deleting)),
            number(
                (
                    truth.revision,
                    truth.condemned,
                    truth.events_leader,
                    truth.full,
                    truth.events_full,
                    truth.sick,
                    truth.lame,
                    truth.looping,
                    truth.corrupt,
                    truth.authenticates,
                )
            ),
            number(state.clients),
            number((state.late, state.stamped)),
            number((truth.former, truth.consent, truth.standby)),
            number(
                (
                    truth.works_as,
                    truth.downgrade,
                    truth.events_works_as,
                    truth.events_downgrade,
                    truth.keeps_one,
                )
            ),
            number((state.refused, state.aside)),
        )
        known = self._numbers.get(key)
        if known is None:
            known = len(self._numbers)
            self._numbers[key] = known
            self._seen.append(())
        return known

    def _is_new(self, number: int, state: State) -> bool:
        """Whether the state was not searched yet with at least as much still to come, and claims as strict."""
        budget = (state.faults, state.wishes, state.calm, not state.swapping)
        if any(all(map(_at_least, known, budget)) for known in self._seen[number]):
            return False
        kept = (known for known in self._seen[number] if not all(map(_at_least, budget, known)))
        self._seen[number] = (budget, *kept)
        return True

    def _all_end_well(self) -> None:
        """Rule 10: with no further faults every state comes to rest. Where the world is whole it is done then; and also
        where all that is out of order is at a site that the plane is leaving, if that has been its goal all the time.
        """
        resting: set[int] = set(self._ends)
        for number, (state, plan) in self._ends.items():
            self._claim_end(number, state, plan)
        for start in self._round:
            self._claim_light(start)
            way: list[int] = []
            number, on_it = start, set[int]()
            while number not in resting:
                if number in on_it:
                    raise Broken(f"10: round in circles\n  {_tale(self._ways[way[-1]])}")
                way.append(number)
                on_it.add(number)
                number = self._round[number]
            resting.update(way)

    def _claim_light(self, start: int) -> None:
        """Rule 5, in the middle of a fault too: an address that leads nowhere though it could is mended at once."""
        for site in self._dark[start]:
            number, rounds = start, 0
            while site in self._dark[number]:
                rounds += 1
                if rounds > MOST_DARK:
                    raise Broken(f"5: the address of {site} goes on leading nowhere\n  {_tale(self._ways[start])}")
                number = self._round[number]

    def _claim_end(self, number: int, state: State, plan: Plan) -> None:
        try:
            claim(bool(plan.done or plan.waiting), f"10: neither done nor waiting, but {names(plan.now)}")
            straight = state.truth.slots == self._goal
            if state.refused is not None and whole(state.truth):
                claim_others(state.truth, state.refused, straight=straight)
            fine = whole(state.truth) or (straight and spared(state.truth, self._goal[0].site))
            fine = (fine or (straight and healable(state.truth))) and state.refused is None
            bad = unfit(state.truth)
            if fine and bad is not None:
                _claim_given_up(state.truth, bad)
            claim(
                plan.done or not fine or bad is not None, f"10: waits for ever for {'; '.join(map(str, plan.waiting))}"
            )
            _claim_strays_named(state, plan)
            _claim_alarms_named(state, plan)
            # Nobody of an epoch that is over serves on: a load balancer that takes no others leads nowhere, and a name
            # that stays goes on leading to a site that is lost.
            kept = state.refused is not None and state.refused.kind in (SetBackends, SetRecord)
            unlit = state.truth.memory.epoch and kept
            claim(not astray(state.truth) or bool(unlit), "5: the name goes on leading nowhere")
            claim(number not in self._acts, f"10: tries for ever: {names(plan.now)}")
        except Broken as broken:
            raise Broken(f"{broken}\n  {_tale(self._ways[number])}") from broken


def _claim_given_up(truth: FaultyTruth, program: Component) -> None:
    """The creation of a plane whose first revision does not run has failed, and it is said which program is why."""
    rejected = truth.memory.rejected
    claim(given_up(truth), f"13: {program} does not run, and the creation goes on")
    claim(rejected is not None and f"{program} of " in rejected.why, f"13: {program} does not run, and is not named")


def _claim_strays_named(state: State, plan: Plan) -> None:
    """Where a voter belongs to no replica, and a quorum answers, a person is told of it."""
    for cluster in () if state.truth.deleting else state.truth.memory.clusters:
        seen = state.truth.of(cluster)
        if stray_voters(seen) and observe(state.truth).membership_of(cluster) is not None:
            named = any(
                f"of {CALLED[cluster]} to be removed: it belongs to no replica" in each.what for each in plan.waiting
            )
            claim(named, f"22: a voter of {CALLED[cluster]} belongs to no replica, and nobody is told")


def _claim_alarms_named(state: State, plan: Plan) -> None:
    """Where etcd is in a state that only a person ends, and a quorum answers, a person is told what ends it."""
    if state.truth.deleting or not state.truth.tells_members:
        return
    for on, words in ((state.truth.corrupt, "alarm CORRUPT"), (state.truth.authenticates, "turn off authentication")):
        claim(not on or any(words in str(each) for each in plan.waiting), f"22: nobody is told: {words}")


def _tale(way: Way | None) -> str:
    lines: list[str] = []
    while way is not None:
        lines.append(way[0])
        way = way[1]
    return "\n  ".join(reversed(lines))


def _at_least(one: int, other: int) -> bool:
    return one >= other


def search(walker: Walker, start: State) -> Explorer:
    explorer = Explorer(walker)
    explorer.explore(replace(start))
    return explorer
