"""A thread that ends the process when the event loop does not get to stop what may not go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn


@dataclass(slots=True)
class _Expected:
    """What runs under a lock is to be told to end at ``stop``, and nobody else acts before ``until``. ``noticed``:
    when the thread saw that it was time to stop.
    """

    stop: float
    until: float
    noticed: float | None = None


@dataclass(kw_only=True)
class Watchdog:
    """Of a manager. ``clock`` is monotonic, in seconds, and so is ``stop_within``: what controllers get to end.

    A process that was frozen gets as long from when it is woken: it is the event loop that stops the controllers. One
    whose event loop does not run, since a controller does not give way, is ended before somebody else acts.
    """

    clock: Callable[[], float]
    fatal: Callable[[str], NoReturn]
    stop_within: float
    _expected: dict[str, _Expected] = field(default_factory=dict)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _ended: bool = False

    def expect(self, lock: str, stop: float, until: float) -> None:
        """Controllers run under a lock: a later call counts instead of this one."""
        with self._news:
            self._expected[lock] = _Expected(stop, until)
            self._news.notify()

    def forget(self, lock: str) -> None:
        """None run any more."""
        with self._news:
            self._expected.pop(lock, None)

    def start(self) -> None:
        """Begin to watch."""
        self._ended = False
        threading.Thread(target=self._run, name="watchdog of locks", daemon=True).start()

    def end(self) -> None:
        """Watch no longer."""
        with self._news:
            self._ended = True
            self._news.notify()

    def _run(self) -> None:
        with self._news:
            while not self._ended:
                self._news.wait(self.look())

    def look(self) -> float | None:
        """Seconds until it is time to look again, or None. Ends the process if it is too late for all else."""
        now = self.clock()
        again: list[float] = []
        for lock, each in self._expected.items():
            if now < each.stop:
                again.append(each.stop)
                continue
            each.noticed = now if each.noticed is None else each.noticed
            late = max(each.until, each.noticed + self.stop_within)
            if now >= late:
                self.fatal(f"lock {lock!r} is not held any more, and nothing here stops what runs under it")
            again.append(late)
        return max(0.001, min(again) - now) if again else None
