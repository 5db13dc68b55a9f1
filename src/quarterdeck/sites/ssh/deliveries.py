"""What is told of programs on their way to hosts: one task for each host, as long as any is on its way there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from quarterdeck.progress import Progress


@dataclass(slots=True, eq=False)
class Delivery:
    """One program. ``size``: bytes on the way, None where nobody knows; ``come``: how many of them are there."""

    program: str
    size: int | None
    come: int
    _task: _Task
    _before: int = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.come

    @property
    def moved(self) -> int:
        """Bytes that were sent by this process: it may have gone on where another one ended."""
        return self.come - self._before

    def advance(self, come: int) -> None:
        """So many bytes are there by now."""
        self.come = come
        self._task.advance()


@dataclass(slots=True, eq=False)
class _Task:
    name: str
    progress: Progress
    deliveries: list[Delivery] = field(default_factory=list)
    ended: int = 0
    failed: list[str] = field(default_factory=list)

    def begin(self, program: str, size: int | None, come: int) -> Delivery:
        made = Delivery(program, size, come, self)
        first, before = not self.deliveries, self._size()
        self.deliveries.append(made)
        total = self._size()
        if first:
            self.progress.start(self.name, total)
        elif total is not None and total != before:
            self.progress.resize(self.name, total)
        if come:
            self.advance()
        return made

    def advance(self) -> None:
        self.progress.advance(self.name, sum(each.come for each in self.deliveries))

    def end(self, delivery: Delivery, *, well: bool) -> bool:
        """Whether it was the last one."""
        self.ended += 1
        if not well:
            self.failed.append(delivery.program)
        if self.ended < len(self.deliveries):
            return False
        self.progress.finish(self.name, self._outcome())
        return True

    def _size(self) -> int | None:
        sizes = [each.size for each in self.deliveries if each.size is not None]
        return sum(sizes) if len(sizes) == len(self.deliveries) else None

    def _outcome(self) -> str:
        names = [each.program for each in self.deliveries]
        words = names[0] if len(names) == 1 else f"{len(names)} programs"
        if self._size() is not None:
            words += f", {sum(each.moved for each in self.deliveries) / 1e6:.1f} MB"
        return f"{words}; not all of {', '.join(self.failed)}" if self.failed else words


class Deliveries:
    """Those of one process."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, _Task] = {}

    @contextmanager
    def on_the_way(self, task: str, program: str, size: int | None, come: int = 0) -> Iterator[Delivery]:
        """A program is on its way for the block. ``task``: what is done to which host, in words."""
        current = self._tasks.setdefault(task, _Task(task, self._progress))
        delivery = current.begin(program, size, come)
        well = False
        try:
            yield delivery
            well = True
        finally:
            if current.end(delivery, well=well):
                del self._tasks[task]
