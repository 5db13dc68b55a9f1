"""What a driver tells of what it met."""

from __future__ import annotations

import asyncio

from quarterdeck.engine.events import Happening
from quarterdeck.engine.troubles import Troubles
from quarterdeck.stores.memory import MemoryStore
from quarterdeck.stores.port import Event


class SlowStore(MemoryStore):
    """A store that gives way to others before it records."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    async def record(self, event: Event) -> None:
        await asyncio.sleep(0)
        self.told.append(event.reason)


async def test_steps_that_fail_at_once_are_each_told_of_once() -> None:
    store = SlowStore()
    troubles = Troubles(store=store, plane="demo", clock=lambda: 0.0)
    await asyncio.gather(*(troubles.tell(Happening(reason, "it failed")) for reason in ("One", "Two", "Three")))
    assert store.told == ["One", "Two", "Three"]
