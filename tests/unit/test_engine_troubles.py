"""What a driver tells of what it met."""

from __future__ import annotations

import asyncio

from fakes.store import MemoryStore

from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.notices.troubles import Troubles
from quarterdeck.stores.port import Event


class SlowStore(MemoryStore):
    """A store that gives way to others before it records."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    async def record(self, event: Event) -> None:
        await asyncio.sleep(0)
        self.reasons.append(event.reason)


async def test_steps_that_fail_at_once_are_each_told_of_once() -> None:
    store = SlowStore()
    troubles = Troubles(store=store, plane="demo", clock=lambda: 0.0)
    reasons = (EventReason.NO_QUORUM, EventReason.NAME_INCONSISTENT, EventReason.NO_BACKENDS)
    await asyncio.gather(*(troubles.tell(Happening(reason, "it failed")) for reason in reasons))
    assert store.reasons == [*reasons]


async def test_a_lasting_fact_is_counted_once_by_successive_drivers() -> None:
    store, current = MemoryStore(), frozenset({Happening(EventReason.MEMBER_DOWN, "east-1 is down")})
    for _ in range(3):
        troubles = Troubles(store=store, plane="demo", clock=lambda: 5.0)
        for _ in range(2):
            await troubles.tell_now(current, since=1.0)
    assert [each.count for each in await store.events("demo")] == [1]
    await troubles.tell_now(frozenset(), since=1.0)
    await troubles.tell_now(current, since=1.0)
    assert [each.count for each in await store.events("demo")] == [2], "it was over, and is so again"


async def test_events_of_a_deleted_plane_do_not_suppress_those_of_its_successor() -> None:
    store, current = MemoryStore(), frozenset({Happening(EventReason.MEMBER_DOWN, "east-1 is down")})
    await Troubles(store=store, plane="demo", clock=lambda: 5.0).tell_now(current, since=1.0)
    await Troubles(store=store, plane="demo", clock=lambda: 9.0).tell_now(current, since=7.0)
    assert [each.count for each in await store.events("demo")] == [2]
