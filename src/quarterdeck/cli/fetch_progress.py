"""What a person sees while programs are fetched, or sent to hosts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text
from typing_extensions import override

#: Seconds between two lines of one task where there is no terminal.
_EVERY = 10.0


class _SizeColumn(DownloadColumn):
    """How much of a task is done; nothing for a build, whose size nobody knows."""

    @override
    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class _SpeedColumn(TransferSpeedColumn):
    """How fast it goes; nothing for a build, and to begin with."""

    @override
    def render(self, task: Task) -> Text:
        return Text() if task.total is None or not task.speed else super().render(task)


class _TimeColumn(TimeElapsedColumn):
    """How long it will take; for what nobody knows that of, how long it took."""

    _left = TimeRemainingColumn(compact=True)

    @override
    def render(self, task: Task) -> Text:
        return super().render(task) if task.total is None else self._left.render(task)


@dataclass(slots=True)
class _Shown:
    """A task: its bar, how large it is (0: nobody knows), since when it goes on, and when a line of it was printed."""

    bar: TaskID
    total: int
    since: float
    printed_at: float


class RichProgress:
    """Bars on a terminal while there is something to show, plain lines elsewhere. Use it in a ``with`` block.
    ``clock``: seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._tasks: dict[str, _Shown] = {}
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            _SizeColumn(),
            _SpeedColumn(),
            _TimeColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def start(self, task: str, total: int | None) -> None:
        """Show a bar, or a pulse when ``total`` is None."""
        if not self._console.is_terminal:
            self.note(f"{task} ...")
        self._bars.start()
        now = self._clock()
        self._tasks[task] = _Shown(self._bars.add_task(escape(task), total=total), total or 0, now, now)

    def resize(self, task: str, total: int) -> None:
        """Make the bar longer."""
        self._tasks[task].total = total
        self._bars.update(self._tasks[task].bar, total=total)

    def advance(self, task: str, done: int) -> None:
        """Move the bar."""
        shown, now = self._tasks[task], self._clock()
        self._bars.update(shown.bar, completed=done)
        if not self._console.is_terminal and now - shown.printed_at >= _EVERY:
            shown.printed_at = now
            self.note(f"{task}: {done / 1e6:.1f} of {shown.total / 1e6:.1f} MB" if shown.total else f"{task} ...")

    def finish(self, task: str, outcome: str) -> None:
        """Put one line in place of the bar."""
        shown = self._tasks.pop(task)
        self._bars.remove_task(shown.bar)
        if not self._tasks:
            self._bars.stop()  # what commands print is theirs alone
        self.note(f"{task}: {outcome} ({self._clock() - shown.since:.0f} s)")

    def note(self, line: str) -> None:
        """Print ``line`` above the bars."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
