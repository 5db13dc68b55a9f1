"""What the log of ``serve`` has of programs that are fetched, or sent to hosts: that it begins, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog


@dataclass
class LoggedProgress:
    """A ``Progress``. ``clock``: seconds."""

    log: structlog.typing.FilteringBoundLogger
    clock: Callable[[], float] = time.monotonic
    _since: dict[str, float] = field(default_factory=dict)

    def start(self, task: str, total: int | None) -> None:
        """See ``Progress``."""
        self._since[task] = self.clock()
        self.log.info(task, **({} if total is None else {"bytes": total}))

    def resize(self, task: str, total: int) -> None:
        """See ``Progress``: how it ended says it."""

    def advance(self, task: str, done: int) -> None:
        """See ``Progress``: a log has no bars."""

    def finish(self, task: str, outcome: str) -> None:
        """See ``Progress``."""
        self.log.info(task, outcome=outcome, seconds=round(self.clock() - self._since.pop(task), 1))

    def note(self, line: str) -> None:
        """See ``Progress``."""
        self.log.info(line)
