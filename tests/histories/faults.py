"""What fails in a soak, when and for how long: the same for the same seed; and having it fail."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.app.drill.plans import planned
from quarterdeck.concurrency import together, whole
from quarterdeck.drills.aim import Wish
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.components import Component
from quarterdeck.model.faults import MOMENTARY, Fail, Fault
from quarterdeck.sites.port import Faults

#: What may fail at any time, as often as is said; a plane mends it, or is well again with what failed.
ANYWHERE = {
    Fail.UNIT: 4,
    Fail.HANG: 4,
    Fail.LEADER: 4,
    Fail.MACHINE: 4,
    Fail.FREEZE: 3,
    Fail.ZONE: 1,
    Fail.QUORUM: 1,
    Fail.EDGE: 1,
    Fail.DATA_LOSS: 1,
    Fail.MANAGER: 1,
}
#: What may fail as well where each machine has a network of its own.
ON_NETWORKS = {Fail.PARTITION: 4, Fail.ONEWAY: 4, Fail.DNS: 1}
#: A member that has lost its data is as good as one replica less until another has come: never beside anything else.
_ALONE = frozenset({Fail.DATA_LOSS})
_OF_A_REPLICA = frozenset({Fail.UNIT, Fail.HANG, Fail.MACHINE, Fail.FREEZE, Fail.PARTITION, Fail.ONEWAY})
_PROGRAMS = (Component.APISERVER, Component.APISERVER, Component.ETCD, Component.ETCD, Component.CONTROLLER_MANAGER)
#: Seconds: between two strikes, one of these, and how long what fails stays so. Some are struck while others still
#: fail, some when all was mended.
_PAUSES = ((1.0, 5.0), (1.0, 5.0), (10.0, 40.0))
_HOLD = (1.0, 10.0)
#: Seconds after which a fault ends by itself if nobody undoes it.
_GRACE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """Something that fails, ``at`` so many seconds, for ``hold`` seconds. ``which`` chooses the replica."""

    at: float
    fail: Fail
    hold: float
    which: int
    component: Component

    def __str__(self) -> str:
        return f"{self.at:6.1f} s: {self.fail} for {self.hold:.1f} s"


def strikes(seed: int, seconds: float, kinds: dict[Fail, int]) -> tuple[Strike, ...]:
    """All of them, the first one first; each has ended when the time is over."""
    chance, at, found = random.Random(f"strikes {seed}"), 0.0, []
    while True:
        at += chance.uniform(*chance.choice(_PAUSES))
        fail = chance.choices(tuple(kinds), tuple(kinds.values()))[0]
        hold, which, component = chance.uniform(*_HOLD), chance.randrange(1_000), chance.choice(_PROGRAMS)
        if at + hold > seconds:
            return tuple(found)
        found.append(Strike(at=at, fail=fail, hold=hold, which=which, component=component))


@dataclass(kw_only=True)
class Striker:
    """Has a plane's machines fail. What cannot be had to fail just then is left out, and ``tell`` hears why. A manager
    is for whoever started it.
    """

    home: Home
    name: str
    tell: Callable[[str], None]
    made: list[Strike] = field(default_factory=list)

    async def run(self, planned_strikes: Sequence[Strike]) -> None:
        """All of them in their time. However this ends, what was made to fail is undone first."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for each in planned_strikes:
                if each.fail is Fail.MANAGER:
                    continue
                await asyncio.sleep(max(0.0, began + each.at - time.monotonic()))
                group.create_task(self._strike(each))

    async def _strike(self, strike: Strike) -> None:
        try:
            plan = await planned(self.home, self.name, await self._wish(strike), hold=strike.hold)
            if strike.fail in _ALONE:
                plan.require(dangerous=False)
        except QuarterdeckError as error:
            self.tell(f"{strike}: left out: {error}")
            return
        begun: list[tuple[Faults, Fault]] = []
        try:
            for site, fault in plan.faults:
                if await self._begun(strike, site, fault):
                    begun.append((site, fault))
            if begun:
                self.made.append(strike)
            if any(fault.kind not in MOMENTARY for _, fault in begun):
                await asyncio.sleep(strike.hold)
        finally:
            left = await whole(together(*(site.undo_fault(fault) for site, fault in begun)))
            for each in filter(None, left):
                self.tell(each)

    async def _begun(self, strike: Strike, site: Faults, fault: Fault) -> bool:
        """Whether a fault could be made: where another one is, there it is left out."""
        try:
            await site.make_fault(fault, strike.hold + _GRACE)
        except QuarterdeckError as error:
            self.tell(f"{strike}: left out: {error}")
            return False
        self.tell(f"{strike}: {fault.words}")
        return True

    async def _wish(self, strike: Strike) -> Wish:
        if strike.fail not in _OF_A_REPLICA:
            return Wish(fail=strike.fail)
        plane = await recorded.existing(self.home.store, self.name)
        names = sorted(each.name for each in memory_from_status(plane.status.memory).replicas)
        program = strike.component if strike.fail in (Fail.UNIT, Fail.HANG) else Component.APISERVER
        return Wish(fail=strike.fail, replica=names[strike.which % len(names)], component=program)
