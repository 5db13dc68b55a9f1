"""Time that jumps: nothing is waited for, the clock goes to when the next thing happens."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from quarterdeck.stores.lease import Clocks

#: What the wall clock shows when the monotonic one shows 0 (seconds since 1970).
EPOCH = 1_800_000_000.0


@dataclass(slots=True)
class Clock:
    """The time of a world, in seconds since it began. Only its wall clock can be set."""

    now: float = 1_000.0
    #: By how much somebody has set the wall clock ahead.
    ahead: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return EPOCH + self.now + self.ahead

    def processor(self) -> float:
        """Nothing that is simulated takes time of the processor."""
        return 0.0

    def clocks(self) -> Clocks:
        return Clocks(monotonic=self.monotonic, wall=self.wall)


class NothingComes(AssertionError):
    """Everybody waits, and no timer is set: it would be for ever."""


class JumpingLoop(asyncio.BaseEventLoop):
    """An event loop on a ``Clock``, without files and sockets: when nothing is ready, the clock jumps ahead."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._selector = self

    def time(self) -> float:
        return self._clock.now

    def select(self, timeout: float | None) -> list[object]:
        """What the base class asks its selector: what happens within ``timeout`` seconds."""
        if timeout is None:
            raise NothingComes("everybody waits, and no timer is set")
        if timeout > 0:
            self._clock.now += timeout
        return []

    def _process_events(self, events: list[object]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits in a system call who would have to be woken."""
