"""Whether the clocks of a plane's machines agree: each checks certificates and tokens by its own clock."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition
from quarterdeck.api.base import ConditionStatus
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.engine.observation.queries import or_none
from quarterdeck.model.capabilities import ClockOffset
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World

#: Seconds by which clocks may differ: certificates are valid from a little before they were issued.
MOST_SKEW = 30.0


@dataclass(kw_only=True)
class WatchClocks:
    """A background task: the clocks of the machines with replicas are read every so many seconds, and reported in a
    condition. Nothing else follows: a person, or NTP, sets clocks.
    """

    every: float = 60.0
    _last: float = -math.inf

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``. Machines that do not answer are left out."""
        now = asyncio.get_running_loop().time()
        if now - self._last < self.every:
            return
        self._last = now
        up = {each.name for each in world.replicas if each.machine is MachineState.UP}
        there = {each.machine: each.site for each in plane.memory.replicas if each.name in up}
        measured = (plane.site(site).measure(machine, ClockOffset()) for machine, site in there.items())
        found = zip(there, await asyncio.gather(*map(or_none, measured)), strict=True)
        off = {machine: seconds for machine, seconds in found if seconds is not None and abs(seconds) > MOST_SKEW}
        problems = [
            f"the clock of machine {each} is off by {off[each]:+.0f} s: set it, and run NTP there" for each in off
        ]
        status, reason = (
            (ConditionStatus.FALSE, ConditionReason.CLOCK_SKEW)
            if problems
            else (ConditionStatus.TRUE, ConditionReason.SYNCHRONIZED)
        )
        await tell_condition(plane, ConditionType.CLOCKS_SYNCHRONIZED, (status, reason, "; ".join(problems)))
