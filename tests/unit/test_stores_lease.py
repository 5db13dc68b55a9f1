"""A lease guard lets its holder act only while nobody else can hold the lease."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

import pytest
from fakes.store import MemoryStore
from support.golden import Golden

from quarterdeck.errors import Conflict, Corrupt, Unavailable
from quarterdeck.stores.lease import Clocks, LeaseGuard, hold_lease, process_named, this_process
from quarterdeck.stores.port import Lease


@dataclass
class Time:
    """Both clocks, moved by hand."""

    monotonic: float = 50.0
    wall: float = 1_800_000_000.0

    def passes(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.monotonic, lambda: self.wall)


class DeafStore(MemoryStore):
    """A store whose renewals fail as long as there is a ``failure``, and are counted."""

    failure: Exception | None = None
    renewals = 0

    async def renew(self, lease: Lease) -> Lease:
        self.renewals += 1
        if self.failure is not None:
            raise self.failure
        return await super().renew(lease)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store(time: Time) -> DeafStore:
    return DeafStore(clock=lambda: time.wall)


async def guarded(store: DeafStore, time: Time, ttl: float = 9.0) -> LeaseGuard:
    asked = (time.monotonic, time.wall)
    return LeaseGuard(store, await store.acquire("l", "me", ttl), asked, time.clocks)


async def test_a_fresh_lease_is_checked_without_asking_the_store(store: DeafStore, time: Time) -> None:
    guard = await guarded(store, time)
    time.passes(5)
    await guard.check()
    assert store.renewals == 0


async def test_a_lease_about_to_run_out_is_renewed_before_a_step(store: DeafStore, time: Time) -> None:
    guard = await guarded(store, time)
    time.passes(7)
    await guard.check()
    assert store.renewals == 1
    assert guard.lease.expires == time.wall + 9


async def test_a_process_woken_after_its_lease_passed_on_refuses_to_act(
    store: DeafStore, time: Time, golden: Golden
) -> None:
    guard = await guarded(store, time)
    time.passes(60)
    await store.acquire("l", "other", 9.0)
    with golden.raises(Conflict):
        await guard.check()
    time.passes(60)
    with golden.raises(Conflict):
        await guard.check()  # also when the other's has run out as well


async def test_a_process_woken_before_anybody_took_its_lease_goes_on(
    store: DeafStore, time: Time, golden: Golden
) -> None:
    guard = await guarded(store, time)
    time.passes(60)
    await guard.check()
    with golden.raises(Conflict):
        await store.acquire("l", "other", 9.0)


async def test_a_host_that_slept_is_noticed_by_the_wall_clock_alone(
    store: DeafStore, time: Time, golden: Golden
) -> None:
    guard = await guarded(store, time)
    time.wall += 3_600  # the monotonic clock stands while the host sleeps
    await store.acquire("l", "other", 9.0)
    with golden.raises(Conflict):
        await guard.check()


async def test_a_wall_clock_set_back_cannot_stretch_a_lease(store: DeafStore, time: Time, golden: Golden) -> None:
    guard = await guarded(store, time)
    time.wall -= 3_600
    store.failure = Unavailable("writing", "busy")
    with golden.raises(Conflict):
        await guard.check()


async def test_a_silent_store_is_good_for_as_long_as_the_lease_lasts(
    store: DeafStore, time: Time, golden: Golden
) -> None:
    guard = await guarded(store, time)
    store.failure = Unavailable("writing", "the disk is full", "make room")
    time.passes(8.9)
    await guard.check()
    time.passes(0.2)
    with golden.raises(Conflict):
        await guard.check()
    store.failure = None
    await guard.check()


async def test_a_damaged_store_is_told_by_every_check(store: DeafStore, time: Time) -> None:
    guard = await guarded(store, time)
    store.failure = Corrupt("writing", "damaged")
    time.passes(8)
    for _ in range(2):
        with pytest.raises(Corrupt):
            await guard.check()
    assert store.renewals == 1


async def test_a_lease_is_held_renewed_and_released(store: DeafStore, golden: Golden) -> None:
    store = DeafStore()  # by the real clocks
    async with hold_lease(store, "l", "me", ttl=0.06), asyncio.timeout(5):
        while store.renewals < 4:  # noqa: ASYNC110 - the fake has no event for it
            await asyncio.sleep(0.005)
        held = await store.lease("l")
        assert held is not None
        store._clock = lambda: held.expires - 0.06  # so that the sentence does not depend on how quick this is
        with golden.raises(Conflict):
            await store.acquire("l", "other", 1.0)
    assert await store.lease("l") is None


async def test_a_lease_is_released_when_the_block_fails(store: DeafStore) -> None:
    with pytest.raises(ZeroDivisionError):
        async with hold_lease(store, "l", "me"):
            raise ZeroDivisionError
    assert await store.lease("l") is None


async def test_the_end_of_the_block_is_no_error_when_the_lease_is_lost(store: DeafStore, time: Time) -> None:
    async with hold_lease(store, "l", "me", ttl=9.0, clocks=time.clocks):
        time.passes(10)
        newer = await store.acquire("l", "other", 9.0)
    assert await store.lease("l") == newer


async def test_one_waits_for_another_holder_to_end(store: DeafStore) -> None:
    other = await store.acquire("l", "other", 60.0)
    ended = asyncio.get_running_loop().call_later(0.05, asyncio.ensure_future, store.release(other))
    async with hold_lease(store, "l", "me", wait=5.0) as guard:
        assert guard.lease.token > other.token
    ended.cancel()


async def test_one_waits_no_longer_than_asked(store: DeafStore, golden: Golden) -> None:
    await store.acquire("l", "other", 60.0)
    with golden.raises(Conflict):
        async with hold_lease(store, "l", "me", wait=0.05):
            pytest.fail("two holders")


def test_a_holder_is_told_by_host_process_and_command() -> None:
    assert this_process("quarterdeck migrate alpha").endswith(f":{os.getpid()} (quarterdeck migrate alpha)")


def test_a_holder_s_process_is_known_by_what_it_says_on_its_own_host_alone() -> None:
    own = this_process("quarterdeck serve")
    assert process_named(own) == process_named(f"me@{own}") == process_named(f"me@work@{own}") == os.getpid()
    for other in (f"x{own}", "elsewhere:12 (quarterdeck serve)", "somebody", "", own.partition(" ")[0]):
        assert process_named(other) is None
