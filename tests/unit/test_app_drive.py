"""Following a plane: look on while another process drives it, drive it when none does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes.store import MemoryStore
from support.golden import Golden
from support.resources import with_spec, with_status

from quarterdeck.api.base import ConditionStatus, Metadata, with_condition
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.events import EventReason
from quarterdeck.api.operation import Operation, OperationPhase, OperationSpec, OperationStatus, OperationType
from quarterdeck.api.site import Isolation, Site, default_sites
from quarterdeck.app import Hand
from quarterdeck.app import drive as followers
from quarterdeck.app.drive import followed
from quarterdeck.engine.notices.conditions import stalled
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.leases import lease_name, manager_lease
from quarterdeck.engine.workspace.recorded import existing, manager_of
from quarterdeck.errors import Conflict, Gone, InvalidInput, Paused, Unavailable
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.stores.lease import hold_lease
from quarterdeck.stores.port import EntryOutcome, Event, EventType, JournalEntry, Lease, amend

OTHER = "elsewhere:1 (quarterdeck migrate alpha)"


class Seen:
    """An onlooker that remembers."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def begins_to(self, words: str) -> None:
        self.notices.append(f"begins to {words}")

    def did(self, words: str, seconds: float, error: str) -> None:
        self.notices.append(f"did {words} in {seconds:g} s" if not error else f"{words} failed: {error}")

    def waits(self, words: str) -> None:
        self.notices.append(words)

    def wants(self, wish: str) -> None:
        self.notices.append(f"wants {wish}")

    def notes(self, words: str) -> None:
        self.notices.append(f"notes: {words}")

    def warns(self, words: str) -> None:
        self.notices.append(f"warns: {words}")


class Following:
    """Somebody who follows plane ``alpha``."""

    def __init__(self, store: MemoryStore, timeout: float | None = None) -> None:
        self.store = store
        self.timeout = timeout
        self.hands: list[Hand] = []
        self.drove = asyncio.Event()
        self.informed = asyncio.Event()
        self.seen = Seen()

    def start(self, *, endless: bool = False) -> asyncio.Task[None]:
        async def drive() -> None:
            self.drove.set()
            if endless:
                await asyncio.Event().wait()

        def tell(hand: Hand) -> None:
            self.hands.append(hand)
            self.informed.set()

        home = Home(folder=Path("/proc/nowhere"), store=self.store)
        return asyncio.create_task(
            followed(home, "alpha", timeout=self.timeout, report=tell, drive=drive, onlooker=self.seen)
        )


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setattr(followers, "_LOOK", 0.001)
    made = MemoryStore()
    for site in default_sites():
        await made.create(site)
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
        await asyncio.wait_for(follower.informed.wait(), 5)
        assert (follower.hands, follower.drove.is_set()) == ([Hand(OTHER, "")], False)
    await asyncio.wait_for(following, 5)
    assert follower.hands == [Hand(OTHER, ""), Hand("", "", ours=True)]
    assert follower.drove.is_set()


async def test_a_plane_that_is_deleted_while_it_is_followed_needs_nothing_more(store: MemoryStore) -> None:
    follower = Following(store)
    async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
        following = follower.start()
        await asyncio.wait_for(follower.informed.wait(), 5)
        await store.delete(ControlPlane, "alpha")
        await asyncio.wait_for(following, 5)
    assert not follower.drove.is_set()
    with pytest.raises(Gone):
        await Following(store).start()


async def test_patience_ends_whoever_drives(store: MemoryStore, golden: Golden) -> None:
    with golden.raises(Unavailable):
        await Following(store, timeout=0.01).start(endless=True)
    async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
        with golden.raises(Unavailable):
            await Following(store, timeout=0.01).start()


@pytest.mark.parametrize("held", [True, False], ids=["driven elsewhere", "driven here"])
async def test_a_wait_whose_time_is_over_says_what_it_waited_for_and_what_to_do(
    store: MemoryStore, held: bool, golden: Golden
) -> None:
    await set_condition(
        store, ConditionType.RECONCILING, ConditionStatus.TRUE, "waiting for machine east-a1 of east-1 to answer"
    )
    if not held:
        with golden.raises(Unavailable):
            await Following(store, timeout=0.01).start(endless=True)
        return
    async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
        with golden.raises(Unavailable):
            await Following(store, timeout=0.01).start()


MANAGER = "elsewhere:2 (quarterdeck serve)"


async def set_condition(
    store: MemoryStore,
    kind: ConditionType,
    status: ConditionStatus,
    message: str = "",
    *,
    reason: ConditionReason = ConditionReason.PROGRESSING,
) -> None:
    def with_conditions(plane: ControlPlane) -> ControlPlane:
        conditions = with_condition(
            plane.status.conditions,
            kind,
            status,
            reason=reason,
            now=1.0,
            message=message,
            observed_generation=plane.metadata.generation,
        )
        return with_status(plane, conditions=conditions)

    await amend(store, ControlPlane, "alpha", with_conditions)


async def operation(store: MemoryStore) -> Operation:
    spec = OperationSpec(plane="alpha", type=OperationType.APPLY)
    status = OperationStatus(phase=OperationPhase.PENDING)
    return await store.create(Operation(metadata=Metadata(name="alpha-apply-1"), spec=spec, status=status))


async def phase(store: MemoryStore, phase: OperationPhase, message: str = "", error: str = "") -> None:
    def changed(seen: Operation) -> Operation:
        return with_status(seen, phase=phase, message=message, error=error)

    await amend(store, Operation, "alpha-apply-1", changed)


@pytest.fixture
def leading() -> list[Leadership]:
    """Who leads each kind of controllers."""
    return []


@pytest.fixture(autouse=True)
def sees(monkeypatch: pytest.MonkeyPatch, leading: list[Leadership]) -> list[Plan]:
    """The plans of looks of one's own, the last one again and again."""
    plans = [Plan()]

    async def look(home: Home, name: str, *, sure: bool) -> SimpleNamespace:
        plan = plans.pop(0) if len(plans) > 1 else plans[0]
        unled = [each for each in leading if each.led is False]
        world = SimpleNamespace(unled=unled, controls=all(each.works for each in leading))
        return SimpleNamespace(plan=plan, plane=await existing(home.store, name), world=world)

    monkeypatch.setattr(followers.facts, "look", look)
    return plans


async def test_a_command_shows_what_a_manager_does_and_ends_when_it_is_done(
    store: MemoryStore, sees: list[Plan], golden: Golden
) -> None:
    await set_condition(store, ConditionType.READY, ConditionStatus.FALSE)
    await operation(store)
    follower = Following(store)
    async with hold_lease(store, manager_lease(Isolation.LOOPBACK), MANAGER):
        following = follower.start()
        await asyncio.wait_for(follower.informed.wait(), 5)
        async with hold_lease(store, lease_name("alpha"), MANAGER):
            for outcome, detail in (
                (EntryOutcome.STARTED, {}),
                (EntryOutcome.FAILED, {"error": "busy"}),
                (EntryOutcome.DONE, {"seconds": 2}),
            ):
                entry = JournalEntry(
                    plane="alpha", time=1.0, kind="Step", text="a step", outcome=outcome, operation="x", detail=detail
                )
                await store.append(entry)
            now = datetime.now(UTC).timestamp()
            sends = Event(
                plane="alpha",
                type=EventType.NORMAL,
                reason=EventReason.SENDS_PROGRAM,
                message="sending",
                first=now,
                last=now,
            )
            await store.record(sends)
            await set_condition(store, ConditionType.RECONCILING, ConditionStatus.TRUE, "waiting for rain")
            await asyncio.sleep(0.05)
            await phase(store, OperationPhase.SUCCEEDED)
            await asyncio.sleep(0.05)
            assert not following.done(), "the plane is not as wanted yet"
            await set_condition(store, ConditionType.READY, ConditionStatus.TRUE)
            await asyncio.wait_for(following, 5)
    assert follower.hands == [Hand(MANAGER, "alpha-apply-1")], "it is the manager's before it has taken it up"
    assert not follower.drove.is_set()
    notices = list(dict.fromkeys(follower.seen.notices))
    golden(notices)


async def test_what_a_manager_has_not_seen_yet_is_no_end(store: MemoryStore, sees: list[Plan]) -> None:
    sees[:] = [
        Plan(waiting=(Wait("an apiserver", "see to it"),)),
        Plan(waiting=(Wait("an apiserver", "see to it"),)),
        Plan(),
    ]
    await set_condition(store, ConditionType.READY, ConditionStatus.TRUE)
    async with hold_lease(store, lease_name("alpha"), MANAGER):
        await asyncio.wait_for(Following(store).start(), 5)
    assert len(sees) == 1


GHOST = Leadership(component=Component.SCHEDULER, lease="kube-scheduler", holder="ghost", expired=False, led=False)


async def test_a_plane_whose_controllers_nobody_leads_is_waited_for_in_vain(
    store: MemoryStore, leading: list[Leadership]
) -> None:
    leading.append(GHOST)
    with pytest.raises(Unavailable) as raised:
        await asyncio.wait_for(Following(store).start(), 5)
    assert GHOST.trouble in str(raised.value)


async def test_controllers_that_can_be_led_again_after_an_outage_are_waited_for(
    store: MemoryStore, leading: list[Leadership]
) -> None:
    leading.append(replace(GHOST, holder="alpha-1", expired=True))
    following = Following(store).start()
    await asyncio.sleep(0.1)
    assert not following.done(), "no program leads yet"
    leading.clear()
    await asyncio.wait_for(following, 5)


async def test_a_lease_that_looks_young_enough_and_that_no_program_renews_is_waited_for(
    store: MemoryStore, leading: list[Leadership]
) -> None:
    held = replace(GHOST, holder="alpha-1", led=True, idle_s=20.0)
    leading.append(held)
    following = Following(store).start()
    await asyncio.sleep(0.1)
    assert not following.done(), "it is from before the outage"
    leading[0] = replace(held, idle_s=1.0)
    await asyncio.wait_for(following, 5)


async def test_controllers_that_are_not_led_in_time_are_waited_for_in_vain(
    store: MemoryStore, leading: list[Leadership], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "_LEADING_S", 0.05)
    leading.append(replace(GHOST, holder="alpha-1", expired=True))
    with pytest.raises(Unavailable, match="alpha-1"):
        await asyncio.wait_for(Following(store).start(), 5)


async def test_what_a_manager_says_of_controllers_that_nobody_leads_ends_who_follows(
    store: MemoryStore, leading: list[Leadership]
) -> None:
    leading.append(GHOST)
    await set_condition(
        store, ConditionType.READY, ConditionStatus.FALSE, GHOST.trouble, reason=ConditionReason.NO_LEADER
    )
    async with hold_lease(store, lease_name("alpha"), MANAGER):
        with pytest.raises(Unavailable) as raised:
            await asyncio.wait_for(Following(store).start(), 5)
    assert GHOST.trouble in str(raised.value)


async def test_an_operation_that_failed_elsewhere_ends_a_command_as_if_it_had_failed_here(
    store: MemoryStore, golden: Golden
) -> None:
    await operation(store)
    failed = "changing plane alpha: revision 2 does not run; take it back"
    await phase(store, OperationPhase.FAILED, failed, InvalidInput.kind)
    plane = await store.get(ControlPlane, "alpha")
    conditions = stalled(plane.status.conditions, failed, generation=plane.metadata.generation, now=1.0)
    await store.update(with_status(plane, conditions=conditions))
    async with hold_lease(store, lease_name("alpha"), MANAGER):
        with pytest.raises(InvalidInput) as raised:
            await asyncio.wait_for(Following(store).start(), 5)
    golden(raised.value)


async def test_who_follows_a_plane_that_is_paused_is_told_so(store: MemoryStore) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    plane = await store.get(ControlPlane, "alpha")
    await store.update(with_spec(plane, paused=True, paused_until=until))
    async with hold_lease(store, lease_name("alpha"), MANAGER):
        with pytest.raises(Paused, match="it is paused until"):
            await asyncio.wait_for(Following(store).start(), 5)


async def test_a_manager_that_does_not_take_a_plane_up_is_not_waited_for_long(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "_MANAGER", 0.05)
    follower = Following(store)
    async with hold_lease(store, manager_lease(Isolation.LOOPBACK), MANAGER):
        await asyncio.wait_for(follower.start(), 5)
    assert follower.hands == [Hand(MANAGER, ""), Hand("", "", ours=True)]


async def test_a_plane_whose_site_is_gone_is_left_to_the_manager_that_keeps_it(store: MemoryStore) -> None:
    await store.delete(Site, "east")
    async with hold_lease(store, manager_lease(Isolation.LOOPBACK), MANAGER):
        assert await manager_of(store, "alpha") == MANAGER


async def test_a_manager_has_its_time_from_when_the_one_before_it_is_seen_to_be_dead(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "_MANAGER", 0.3)
    follower = Following(store)
    async with hold_lease(store, manager_lease(Isolation.LOOPBACK), MANAGER):
        async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
            following = follower.start()
            await asyncio.sleep(0.4)  # longer than a manager is given
        follower.informed.clear()
        await asyncio.wait_for(follower.informed.wait(), 5)
        assert follower.hands == [Hand(OTHER, ""), Hand(MANAGER, "")]
        following.cancel()
        await asyncio.wait((following,))


async def test_who_finds_that_another_process_was_quicker_follows_that_one(store: MemoryStore) -> None:
    follower, taken, over = Following(store), asyncio.Event(), asyncio.Event()

    async def other() -> None:
        async with hold_lease(store, lease_name("alpha"), OTHER, wait=0.0):
            taken.set()
            await over.wait()

    holding = asyncio.create_task(other())

    async def drive() -> None:
        if not follower.drove.is_set():
            follower.drove.set()
            raise Conflict("driving plane alpha", f"{OTHER} holds its lease")

    async def unheld_at_first(name: str) -> Lease | None:
        return await held(name) if follower.drove.is_set() else None

    await asyncio.wait_for(taken.wait(), 5)
    held = store.lease
    store.lease = unheld_at_first  # type: ignore[method-assign]
    home = Home(folder=Path("/proc/nowhere"), store=store)

    def tell(hand: Hand) -> None:
        follower.hands.append(hand)
        if hand.holder == OTHER:
            over.set()

    await asyncio.wait_for(followed(home, "alpha", timeout=None, report=tell, drive=drive), 5)
    await holding
    assert follower.hands == [Hand("", "", ours=True), Hand(OTHER, ""), Hand("", "", ours=True)]
