"""Time that jumps: nothing is waited for, the clock goes to when the next thing happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from typing import Protocol, TypeVar

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

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """What is meant for a thread is done at once: the clock does not stand still for one."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the caller gets it
            done.set_exception(error)
        return done

    def _process_events(self, events: list[object]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits in a system call who would have to be woken."""


class Lab(Protocol):
    """What a life takes place in."""

    @property
    def clock(self) -> Clock: ...


T = TypeVar("T")
L = TypeVar("L", bound=Lab)


def lived(
    lab: Callable[[], L], living: Callable[[L], AbstractAsyncContextManager[None]]
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A decorator for tests that run on a clock that jumps. Each gets a lab of its own as its first argument, and runs
    within ``living``, which ends what it has started.
    """

    def decorated(life: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(life)
        def test(**fixtures: object) -> None:
            made = lab()

            async def whole() -> None:
                async with living(made):
                    await life(made, **fixtures)

            loop = JumpingLoop(made.clock)
            try:
                loop.run_until_complete(whole())
            finally:
                loop.close()

        # pytest provides what the signature names: all but the lab.
        vars(test)["__signature__"] = Signature(list(signature(life).parameters.values())[1:])
        return test

    return decorated
