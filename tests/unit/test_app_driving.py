"""Following a plane: look on while another process drives it, drive it when none does."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.app import Hand
from quarterdeck.app import driving as followers
from quarterdeck.app.driving import followed
from quarterdeck.engine.home import Home
from quarterdeck.engine.operations import lease_name
from quarterdeck.errors import Gone, Unavailable
from quarterdeck.stores.lease import hold_lease
from quarterdeck.stores.memory import MemoryStore

OTHER = "elsewhere:1 (quarterdeck migrate alpha)"


class Following:
    """Somebody who follows plane ``alpha``."""

    def __init__(self, store: MemoryStore, timeout: float | None = None) -> None:
        self.store = store
        self.timeout = timeout
        self.hands: list[Hand] = []
        self.drove = asyncio.Event()
        self.told = asyncio.Event()

    def start(self, *, endless: bool = False) -> asyncio.Task[None]:
        async def drive() -> None:
            self.drove.set()
            if endless:
                await asyncio.Event().wait()

        def tell(hand: Hand) -> None:
            self.hands.append(hand)
            self.told.set()

        home = cast("Home", SimpleNamespace(store=self.store))
        return asyncio.create_task(followed(home, "alpha", timeout=self.timeout, told=tell, drive=drive))


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setattr(followers, "_LOOK", 0.001)
    made = MemoryStore()
    await made.create(new_control_plane("alpha", site="east"))
    return made


async def test_a_plane_that_nobody_drives_is_driven_at_once(store: MemoryStore) -> None:
    follower = Following(store)
    await follower.start()
    assert (follower.hands, follower.drove.is_set()) == ([Hand("", "", ours=True)], True)


async def test_it_is_driven_when_the_other_process_has_let_go_and_not_before(store: MemoryStore) -> None:
    follower = Following(store)
    async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
        following = follower.start()
        await asyncio.wait_for(follower.told.wait(), 5)
        assert (follower.hands, follower.drove.is_set()) == ([Hand(OTHER, "")], False)
    await asyncio.wait_for(following, 5)
    assert follower.hands == [Hand(OTHER, ""), Hand("", "", ours=True)]
    assert follower.drove.is_set()


async def test_a_plane_that_is_deleted_while_it_is_followed_needs_nothing_more(store: MemoryStore) -> None:
    follower = Following(store)
    async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
        following = follower.start()
        await asyncio.wait_for(follower.told.wait(), 5)
        await store.delete(ControlPlane, "alpha")
        await asyncio.wait_for(following, 5)
    assert not follower.drove.is_set()
    with pytest.raises(Gone):
        await Following(store).start()


async def test_patience_ends_whoever_drives(store: MemoryStore) -> None:
    with pytest.raises(Unavailable, match="it is not yet as wanted; wait again"):
        await Following(store, timeout=0.01).start(endless=True)
    async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
        with pytest.raises(Unavailable, match=r"quarterdeck migrate alpha.* is still at it"):
            await Following(store, timeout=0.01).start()
