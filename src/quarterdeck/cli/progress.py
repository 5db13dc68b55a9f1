"""What a person sees while the loop works: each step as it ends, and what is waited for."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from quarterdeck.app.words import quorum, warnings
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import World

#: More reasons than this do not fit on the line.
_REASONS = 2
#: Seconds after which a line says what is waited for, where no terminal shows it all the time.
_LONG = 10.0


class LiveProgress:
    """A ``Watcher`` and ``Onlooker`` for the terminal. Use it in a ``with`` block, and have it ``begin`` when the work
    does; plain lines where there is no terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = Status("looking", console=console)
        self._since = time.monotonic()
        self._quorum = ""
        self._asked: set[tuple[str, str]] = set()
        self._warned: set[str] = set()
        self._waits = ("", 0.0)

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Times are counted from here."""
        self._since = time.monotonic()
        if self._console.is_terminal:
            self._status.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    async def observed(self, world: World, plan: Plan) -> None:
        """See ``Watcher``."""
        # What was done since, and is wanted once more, is asked for once more.
        now = {step.words for step in plan.now}
        self._asked = {(words, wish) for words, wish in self._asked if words in now}
        self._quorum = quorum(world)
        for message in warnings(world):
            if message not in self._warned:
                self._warned.add(message)
                self.warns(message)
        if plan.waiting and not plan.now:
            self.waits(f"waiting for {'; '.join(map(str, plan.waiting[:_REASONS]))}")

    async def begins(self, step: Step) -> None:
        """See ``Watcher``."""
        self.begins_to(step.words)

    async def lasts(self, step: Step, seconds: float) -> None:
        """See ``Watcher``."""
        why = f": {step.takes_long}" if step.takes_long else ""
        self.notes(f"{step.words} has taken {seconds:.0f} s so far{why}")

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        """See ``Watcher``."""
        self.did(step.words, seconds, str(error) if error is not None else "")

    async def asks(self, step: Step, must: Must) -> None:
        """See ``Watcher``. Records, and backends, are on lines of their own."""
        if (step.words, must.wish) not in self._asked:
            self._asked.add((step.words, must.wish))
            text = escape(f"{step.words}: {must.asked if must.lines else must.wish}")
            self._console.print(f"{self._at()}  [yellow]?[/yellow] {text}", soft_wrap=True)
            for line in must.lines:
                self._console.print(f"{'':14}{escape(line)}", soft_wrap=True, highlight=False)
        self._say(str(must))

    async def troubled(self, error: QuarterdeckError) -> None:
        """See ``Watcher``."""
        self.warns(f"{error}; trying again")

    def begins_to(self, words: str) -> None:
        """See ``Onlooker``."""
        self._say(words)

    def did(self, words: str, seconds: float, error: str) -> None:
        """See ``Onlooker``."""
        at = self._at()
        if not error:
            self._console.print(f"{at}  [green]✓[/green] {escape(words)} [dim]({seconds * 1000:.0f} ms)[/dim]")
        else:
            self._console.print(f"{at}  [yellow]![/yellow] {escape(words)}: {escape(error)}; trying again")

    def waits(self, words: str) -> None:
        """See ``Onlooker``."""
        self._say(words)
        before, since = self._waits
        now = time.monotonic()
        if words != before:
            self._waits = (words, now)
        elif now - since >= _LONG and not self._console.is_terminal:
            self._waits = (words, math.inf)
            self.notes(words)

    def wants(self, wish: str) -> None:
        """See ``Onlooker``."""
        self._console.print(f"{self._at()}  [yellow]?[/yellow] {escape(wish)}", soft_wrap=True)

    def notes(self, words: str) -> None:
        """See ``Onlooker``."""
        self._console.print(f"{self._at()}    {escape(words)}", soft_wrap=True)

    def warns(self, words: str) -> None:
        """See ``Onlooker``."""
        self._console.print(f"{self._at()}  [yellow]![/yellow] {escape(words)}", soft_wrap=True)

    def _at(self) -> str:
        return f"[dim]{time.monotonic() - self._since:7.2f} s[/dim]"

    def _say(self, text: str) -> None:
        self._status.update(f"{escape(text)}  [dim]{escape(self._quorum)}[/dim]")
