"""Every state that a search can come to: what must be so in each, and where each of them ends when nothing fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from model.leases.canonical import canonical
from model.leases.world import (
    FIRST,
    IN_TIME,
    MOVES,
    NO_OVERLAP,
    ONE_TYPE,
    PROGRESS,
    TWO_ACTIVE,
    UNDER_PRIMARY,
    UNIQUE,
    Broken,
    Search,
    World,
)
from quarterdeck.leases.protocol import End, Running, Stop, WaitUntil

#: So many things at most a process has to do in one tick, about each of its locks.
_ROUNDS = 100
#: Who is active under each lock of the store.
Active = dict[int, int]


@dataclass
class Explorer:
    """Searches from the beginning; raises Broken with the way there."""

    search: Search
    most: int = 3_000_000
    steps: int = 0
    _numbers: dict[World, int] = field(repr=False, default_factory=dict)
    _ways: list[tuple[str, int]] = field(repr=False, default_factory=list)
    _taken: set[int] = field(repr=False, default_factory=set)
    _end_well: set[World] = field(repr=False, default_factory=set)

    @property
    def states(self) -> int:
        return len(self._ways)

    def explore(self) -> None:
        self.search.check()
        start = canonical(self.search, self.search.start())
        queue = deque([start])
        self._numbers[start] = 0
        self._ways.append(("start", -1))
        while queue:
            world = queue.popleft()
            number = self._numbers[world]
            try:
                self._claim(world)
                if self.search.rests:
                    self._claim_end(world)
                for name, following in self.search.following(world):
                    self.steps += 1
                    after = canonical(self.search, following, world)
                    if after not in self._numbers:
                        self._numbers[after] = len(self._ways)
                        self._ways.append((name, number))
                        queue.append(after)
            except Broken as broken:
                raise Broken(broken.name, f"{broken}\n  {self._tale(number)}") from broken
            assert self.states <= self.most, f"more than {self.most} states"

    def _tale(self, number: int) -> str:
        names = []
        while number >= 0:
            name, number = self._ways[number]
            names.append(name)
        return "\n  ".join(reversed(names))

    def _claim(self, world: World) -> None:
        """What must be so at any moment."""
        active: Active = {}
        owners: dict[str, int] = {}
        for number, at, stored in self._running(world):
            if self.search.may_act(world, number, at):
                if active.get(stored) == number:
                    raise Broken(UNIQUE, f"process {number} holds lock {stored} twice")
                if stored in active:
                    raise Broken(TWO_ACTIVE, f"processes {active[stored]} and {number} under lock {stored}")
                if at and not world.processes[number].locks[0].holds(0):
                    raise Broken(UNDER_PRIMARY, f"process {number} acts under lock {stored}")
                active[stored] = number
                for name in self.search.terms(world, number, at).controllers:
                    if owners.setdefault(name, stored) != stored:
                        raise Broken(NO_OVERLAP, f"{name} runs under locks {owners[name]} and {stored}")
            elif self._goes_on(world, number, at):
                raise Broken(IN_TIME, f"process {number} goes on under lock {stored}, and nothing ends it")

    def _goes_on(self, world: World, number: int, at: int) -> bool:
        """Whether who was never late lets something run on, after its time."""
        prompt = self.search.fine and world.processes[number].prompt
        return prompt and not isinstance(self.search.move(world, number, at), Stop | End)

    def _running(self, world: World) -> Iterator[tuple[int, int, int]]:
        for number, process in enumerate(world.processes):
            for at, lock in enumerate(process.locks):
                if process.alive and lock.running is not Running.OFF:
                    yield number, at, self.search.members[number].locks[at]

    # where it ends when nothing fails any more

    def _claim_end(self, world: World) -> None:
        """From here, with nothing that fails and nobody frozen, all comes to rest, with the right ones active."""
        way: list[World] = []
        known: set[World] = set()
        world = self._calm(world)
        while world not in self._end_well:
            if world in known:
                self._claim_rest(way[way.index(world) :])
                break
            way.append(world)
            known.add(world)
            world = self._next(world)
        self._end_well.update(way)

    def _calm(self, world: World) -> World:
        processes = tuple(each._replace(prompt=True) for each in world.processes)
        calm = world._replace(
            crashes=0, losses=0, changes=0, freezes=None, late=frozenset(), acts=frozenset(), processes=processes
        )
        return canonical(self.search, calm)

    def _next(self, world: World) -> World:
        """A tick later. Until then everybody does all that is to be done, the first one first."""
        freed: set[int] = set()
        busy, rounds = True, 0
        while busy:
            busy, rounds = False, rounds + 1
            if rounds > _ROUNDS:
                raise Broken(PROGRESS, "there is no end of what is to be done at one moment")
            for number, process in enumerate(world.processes):
                for at in range(len(process.locks) if process.alive else 0):
                    after = self._of_lock(world, number, at)
                    busy = busy or after is not world
                    self._claim_first(world, after, freed)
                    world = after
        return self._calm(self.search.tick(world))

    def _of_lock(self, world: World, number: int, at: int) -> World:
        search, process = self.search, world.processes[number]
        if not process.alive:
            return world
        if process.calls[at] is not None:
            return search.went_on(world, number, at)
        if process.locks[at].running is Running.STOPPING:
            return search.ended(world, number, at)
        if search.news(world, number, at):
            return search.informed(world, number, at)
        move = search.move(world, number, at)
        return world if isinstance(move, WaitUntil) else search.moved(world, number, at, move)

    def _claim_first(self, before: World, after: World, freed: set[int]) -> None:
        """``freed``: locks that were let go in this tick."""
        for stored, (was, now) in enumerate(zip(before.records, after.records, strict=True)):
            if was is now or was is None or now is None:
                continue
            if now.holder not in ("", was.holder):
                self._taken.add(stored)
            if not now.holder:
                freed.add(stored)
            elif stored in freed and was.asked_by not in ("", now.holder) and was.asked_by in self._able(after, stored):
                raise Broken(FIRST, f"{now.holder} took lock {stored}, which {was.asked_by} had asked for")

    def _able(self, world: World, stored: int) -> dict[str, int]:
        """Who could hold a lock, and the precedence of each."""
        found = {}
        record = world.records[stored]
        for number, member in enumerate(self.search.members):
            process = world.processes[number]
            if stored in member.locks and process.alive and process.wanted:
                terms = self.search.terms(world, number, member.locks.index(stored))
                if record is None or record.controllers in ((), terms.controllers):
                    found[terms.identity] = terms.precedence
        return found

    def _claim_rest(self, cycle: list[World]) -> None:
        """It goes on like this for ever."""
        world = cycle[0]
        self._taken.clear()
        for each in cycle:
            self._next(each)
        for stored in range(len(world.records)):
            able = self._able(world, stored)
            holders = {self._active(each, stored) for each in cycle}
            if able and "" in holders:
                raise Broken(PROGRESS, f"nobody ever has lock {stored} for good")
            if stored in self._taken:
                raise Broken(ONE_TYPE, f"lock {stored} goes to and fro for ever")
            best = max(able.values(), default=0)
            if able and not any(each.deaf for each in self.search.members) and able[holders.pop()] < best:
                raise Broken(MOVES, f"lock {stored} stays where it is")

    def _active(self, world: World, stored: int) -> str:
        for number, at, lock in self._running(world):
            if lock == stored and self.search.may_act(world, number, at):
                return self.search.members[number].identity
        return ""
