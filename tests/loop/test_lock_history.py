"""The history of locks, of a plane that a manager keeps: each tenure once, whoever watches, and by whom."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from support.resources import with_spec

from loop.lives import EAST3, PLANE, WEST3
from loop.session import Books, Session
from loop.test_manager import Kept, cheap, kept
from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.engine.workspace import operations
from quarterdeck.handover.tenures import LEFT, TAKEN
from quarterdeck.model.components import Component
from quarterdeck.stores.port import JournalEntry

__all__ = ["cheap"]

MAIN = ControllerProgram.KUBE.value
SET = ControllerSetSpec(
    name="ipam", lock="migration", controllers=("node-ipam-controller",), owner=ControllerProgram.KUBE
)


async def _declare(life: Kept) -> None:
    user = Session(name="the user", world=life.world, truths=life.truths, books=Books(), happens=life._happens)
    engine, plane = user.engine(), await life.plane()
    wanted = with_spec(plane, controller_sets=(SET,))
    await operations.change(engine.home, wanted, OperationType.APPLY, engine.requester)


async def _history(life: Kept) -> list[JournalEntry]:
    return [each for each in await life.world.store.journal(PLANE) if each.kind in (TAKEN, LEFT)]


async def _stop_leader(life: Kept) -> None:
    """Somebody stops the controller manager that leads; it is put back, and by then another one leads."""
    (leader,) = (
        each
        for each in life.world.of(Component.CONTROLLER_MANAGER)
        if MAIN in life.world.kube.leaders.get(each.listens, ())
    )
    site = life.world.sites[leader.site]
    for machine in await site.machines():
        for unit in await site.units(machine.name):
            if unit.name == leader.seen.spec.name:
                await site.stop_unit(machine.name, unit.name)
    life.world.touch()
    before = life.world.kube.leases[MAIN].transitions

    async def taken() -> bool:
        life.world.settle()
        return life.world.kube.leases[MAIN].transitions > before

    await life.until(taken, 60)


def _tokens(entries: Sequence[JournalEntry], kind: str) -> list[int]:
    return [int(str(each.detail["token"])) for each in entries if each.kind == kind]


def test_each_tenure_is_recorded_once_across_managers_and_unobserved_ones_are_counted() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        assert not await _history(life), "without sets nobody watches"
        await _declare(life)
        await asyncio.sleep(60)
        await _stop_leader(life)
        await asyncio.sleep(30)
        life.sessions[0].kill()
        await asyncio.sleep(0.1)
        first, unseen = life.world.kube.leases[MAIN].transitions, 2
        for _ in range(unseen):
            # It is another process's each time, without a manager: nobody starts what was stopped.
            await _stop_leader(life)
        life.start("manager 2")
        await asyncio.sleep(30)
        await _stop_leader(life)
        await asyncio.sleep(20)
        life.sessions[-1].stop()

        history = await _history(life)
        assert {str(each.detail["lock"]) for each in history} == {MAIN}
        taken = _tokens(history, TAKEN)
        assert taken == sorted({*taken}), "each once, in their order"
        last = life.world.kube.leases[MAIN]
        missed = [int(str(each.detail.get("missed", 0))) for each in history if each.kind == TAKEN]
        assert len(taken) + sum(missed) == taken[-1] - taken[0] + 1, "and those that nobody saw are counted"
        assert sum(missed) == unseen - 1
        assert taken[-1] == last.transitions
        assert {*_tokens(history, LEFT)} == {*taken} - {first, taken[-1]}, "how that one ended nobody saw"
        for each in history:
            assert str(each.detail["holder"]).startswith(f"{each.replica}_"), "the replica is the one whose it is"
            assert each.detail.get("component", MAIN) == MAIN

    kept(lived)


def test_in_a_migration_the_history_goes_on_by_other_apiservers_and_holds_nothing_up() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        await _declare(life)
        await asyncio.sleep(60)
        began = await _history(life)
        await life.ask(WEST3)

        async def over() -> bool:
            return life.operations()[-1].status.phase is OperationPhase.SUCCEEDED

        await life.until(over, 240)
        await asyncio.sleep(10)
        history = await _history(life)
        taken = [each for each in history if each.kind == TAKEN]
        tokens = _tokens(history, TAKEN)
        assert tokens == [*range(tokens[0], life.world.kube.leases[MAIN].transitions + 1)], "none is missed"
        assert taken[-1].site == "west"
        operation = life.operations()[-1].metadata.name
        assert operation in {each.operation for each in history[len(began) :]}

    kept(lived)


def test_a_plane_without_sets_of_controllers_is_not_watched() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(30)
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("locks of")]
        assert life.world.kube.leases[MAIN].holder
        assert not await _history(life)

    kept(lived, EAST3)
