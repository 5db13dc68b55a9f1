"""Watchers: one stream of events after the other, each from where the last one ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from quarterdeck.errors import Unavailable
from quarterdeck.probe.objects import ObjectEvent, Requests, WatchEventType, parse_event, parse_list
from quarterdeck.probe.order import EventCheck
from quarterdeck.probe.pace import Pace
from quarterdeck.probe.reporter import Reporter
from quarterdeck.probe.schema import Watches

_GONE = 410
_KEPT_EXAMPLES = 20


class ObjectWatcher:
    """Lists once, then watches; lists again only when the server answers 410 Gone.

    A stream without any event for ``silence`` seconds counts as cut: the writers write more often.
    """

    def __init__(self, *, reporter: Reporter, requests: Requests, check: EventCheck, silence: float) -> None:
        self.check = check
        self.relists = 0
        self.ended = 0
        self.cut = 0
        self._reporter = reporter
        self._requests = requests
        self._silence = silence
        self._listed = False
        self._moved = asyncio.Event()
        self.watching = asyncio.Event()  # the first watch is open: from now on no list hides a write
        self.examples: list[str] = []

    async def until_caught_up(self) -> None:
        """Returns when every acknowledged write was received (or is known to be missed)."""
        while not self.check.caught_up:
            self._moved.clear()
            await self._moved.wait()

    async def run(self, pace: Pace) -> None:
        """Watch until cancelled or until the pace ends; retry at the pace."""
        while await pace.tick():
            if not self._listed and not await self._list():
                continue
            outcome = await self._reporter.open(self._requests.watch(self.check.revision))
            if outcome.status == _GONE:
                self._gone()
            elif outcome.ok:
                self.watching.set()
                await self._follow()

    async def _list(self) -> bool:
        _, found = await self._reporter.call(self._requests.list(), parse_list)
        if found is not None:
            self.check.listed(*found)
            self._listed = True
            self._moved.set()
        return self._listed

    def _gone(self) -> None:
        self.relists += 1
        self._listed = False

    async def _follow(self) -> None:
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    if event.type is WatchEventType.ERROR:
                        self._refused(event.code)
                        break
                    self._take(event)
                else:
                    self.ended += 1
                    return
        except TimeoutError:
            self._cut(f"nothing came for {self._silence:g} s")
        except Unavailable as error:
            self._cut(error.seen)
        await self._reporter.client.drop()

    def _refused(self, code: int) -> None:
        if code == _GONE:
            self._gone()
        else:
            self._cut(f"an error event with code {code}")

    def _cut(self, reason: str) -> None:
        self.cut += 1
        if len(self.examples) < _KEPT_EXAMPLES:
            self.examples.append(f"a watch was cut: {reason}")

    def _take(self, event: ObjectEvent) -> None:
        if event.type is WatchEventType.BOOKMARK:
            self.check.bookmark(event.seen.revision)
        elif event.seen.slot is not None and event.type in (WatchEventType.ADDED, WatchEventType.MODIFIED):
            started = self.check.event(event.seen.slot, event.seen.number, event.seen.revision)
            if started is not None:
                self._reporter.news(started)
            self._moved.set()

    async def _events(self) -> AsyncGenerator[ObjectEvent, None]:
        rest = b""
        pieces = self._reporter.client.pieces()
        while True:
            async with asyncio.timeout(self._silence):
                piece = await anext(pieces, b"")
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield parse_event(line)


def add_up(watchers: Iterable[ObjectWatcher]) -> Watches:
    """The sums of all watchers."""
    every = tuple(watchers)
    return Watches(
        events=sum(each.check.events for each in every),
        missed=sum(each.check.missed for each in every),
        duplicated=sum(each.check.duplicated for each in every),
        out_of_order=sum(each.check.out_of_order for each in every),
        relists=sum(each.relists for each in every),
        ended=sum(each.ended for each in every),
        cut=sum(each.cut for each in every),
        examples=tuple(example for each in every for example in [*each.check.examples, *each.examples]),
    )
