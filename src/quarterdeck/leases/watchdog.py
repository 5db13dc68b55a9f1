"""A thread that ends the process when the event loop cannot stop controllers in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn


@dataclass(slots=True)
class _Expected:
    """The controllers under a lock must be asked to stop at ``stop``, and no other process acts before ``until``.
    ``noticed``: when the thread saw that it was time to stop.
    """

    stop: float
    until: float
    noticed: float | None = None


@dataclass(kw_only=True)
class Watchdog:
    """The watchdog of a manager. ``clock`` is monotonic, in seconds, and so is ``stop_within``: the time that
    controllers have to stop.

    A process that was frozen gets as long from its wake-up: the event loop stops the controllers. A process with a
    blocked event loop, since a controller does not yield, is ended before another process acts.
    """

    clock: Callable[[], float]
    fatal: Callable[[str], NoReturn]
    stop_within: float
    _expected: dict[str, _Expected] = field(default_factory=dict)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _ended: bool = False

    def expect(self, lock: str, stop: float, until: float) -> None:
        """Controllers run under a lock: a later call replaces this one."""
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
        """Stop the thread."""
        with self._news:
            self._ended = True
            self._news.notify()

    def _run(self) -> None:
        with self._news:
            while not self._ended:
                self._news.wait(self.look())

    def look(self) -> float | None:
        """Seconds until the next check, or None. Ends the process if nothing else can help."""
        now = self.clock()
        again: list[float] = []
        for lock, each in self._expected.items():
            if now < each.stop:
                again.append(each.stop)
                continue
            each.noticed = now if each.noticed is None else each.noticed
            late = max(each.until, each.noticed + self.stop_within)
            if now >= late:
                self.fatal(f"lock {lock!r} is not held any more, and this process does not stop its controllers")
            again.append(late)
        return max(0.001, min(again) - now) if again else None
