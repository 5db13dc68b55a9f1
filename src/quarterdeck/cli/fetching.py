"""What a person sees while programs are fetched."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text


class _SizeColumn(DownloadColumn):
    """How much of a download is there; nothing for a build, whose size nobody knows."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class RichProgress:
    """Bars on a terminal while there is something to fetch, plain lines elsewhere. Use it in a ``with`` block."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            _SizeColumn(),
            TimeElapsedColumn(),
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
        self._tasks[task] = self._bars.add_task(escape(task), total=total)

    def advance(self, task: str, done: int) -> None:
        """Move the bar."""
        self._bars.update(self._tasks[task], completed=done)

    def finish(self, task: str, outcome: str) -> None:
        """Put one line in place of the bar."""
        number = self._tasks.pop(task)
        elapsed = next(bar.elapsed or 0.0 for bar in self._bars.tasks if bar.id == number)
        self._bars.remove_task(number)
        if not self._tasks:
            self._bars.stop()  # what commands print is theirs alone
        self.note(f"{task}: {outcome} ({elapsed:.0f} s)")

    def note(self, line: str) -> None:
        """Print ``line`` above the bars."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
