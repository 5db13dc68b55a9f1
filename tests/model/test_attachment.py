"""Volumes that move: machines die, come back and stand still at any moment, drivers with them; no volume is ever open
for writing on two machines, no member loses its data or its vote, and the plane is as wanted in the end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.components import having

from model.explorer import Explorer, Sample
from model.faulty_truth import FaultyTruth
from model.invariants import Broken
from model.kinds import Kind
from model.searches import DEATHS, HEALED, UNSEEN
from model.walk import Planner, State, Walker
from model.worlds import empty, settled
from quarterdeck.model.epochs import Consent
from quarterdeck.model.steps.placement import AttachVolumes
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import EFFECTS, placement, tick
from quarterdeck.planner.simulated.parts import Power

pytestmark = pytest.mark.timeout(600)

#: What may come between: a driver that dies, freezes or is slow, whatever it does is refused, or a program ends.
BETWEEN = frozenset(
    {Kind.TAKEOVER, Kind.SOME_STEPS, Kind.REPLY_LOST, Kind.LATE, Kind.SLOW, Kind.REFUSED, Kind.CRASH, Kind.OLD_LOOK}
)


def plane(*, apart: bool = False) -> FaultyTruth:
    """Three replicas as they are wanted, each with a spare machine in its zone; ``apart``: they keep events apart."""
    separate = frozenset({""}) if apart else frozenset[str]()
    truth = replace(empty("east", 3, sites=("east",)), reattachable=True, programs=having(events=separate))
    return settled(replace(truth, settings=replace(truth.settings, healing=HEALED)))


def lost(power: Power, consent: Consent) -> FaultyTruth:
    """The machines of all but the first are in that state, and the user has said what is to be done."""
    truth = plane()
    gone = {truth.machine_of(each.name).name for each in truth.memory.replicas[1:]}
    machines = tuple(replace(each, power=power) if each.name in gone else each for each in truth.machines)
    return tick(replace(truth, machines=machines, consent=consent))


def searched(
    truth: FaultyTruth,
    *,
    faults: int,
    kinds: frozenset[Kind],
    planner: Planner = plan,
    mended: bool = True,
    calm: bool = True,
    sample: Sample | None = None,
) -> Explorer:
    explorer = Explorer(Walker(planner=planner, kinds=kinds, mended=mended), sample)
    explorer.explore(State(truth, faults=faults, calm=calm))
    print(f"{explorer.states:,} states, {explorer.walker.steps:,} steps")
    return explorer


@pytest.mark.parametrize("mended", [True, False], ids=["may come back", "for good"])
@pytest.mark.smoke
def test_a_machine_dies_or_stands_still(mended: bool) -> None:
    assert searched(plane(), faults=1, kinds=DEATHS, mended=mended).states > 8


def test_a_machine_dies_whose_replica_keeps_events_apart() -> None:
    assert searched(plane(apart=True), faults=1, kinds=DEATHS, mended=False).states > 8


def test_something_else_goes_wrong_meanwhile() -> None:
    some = Sample(1, at=1.0, of=0.1, most=1_000)
    assert searched(plane(), faults=2, kinds=DEATHS | BETWEEN | UNSEEN, sample=some).states > 100


@pytest.mark.parametrize("faults", [0, 1])
def test_two_of_three_die_and_may_come_back_at_any_moment(faults: int) -> None:
    assert searched(lost(Power.OFF, Consent()), faults=faults, kinds=BETWEEN, calm=False).states > 8


def test_a_majority_that_stands_still_and_is_said_to_be_gone() -> None:
    sure = Consent(epoch=1, even_if_others_live=True)
    assert searched(lost(Power.FROZEN, sure), faults=0, kinds=BETWEEN, calm=False).states > 8


def from_whoever_is_silent(world: World) -> Plan:
    """Volumes are taken from machines that only we do not see."""
    now = plan(world)
    silent = [each for each in world.replicas if each.machine is MachineState.UNREACHABLE]
    if world.membership is None or not silent or now.now:
        return now
    record = world.memory.replica(silent[0].name)
    to = next(each for each in world.machines if each.zone == record.slot.zone and each.name != record.machine)
    step = AttachVolumes(
        site=record.site, why="", replica=record.name, machine=to.name, source=record.machine, window=1.0
    )
    return replace(now, now=(step,))


def test_a_planner_that_takes_volumes_from_whoever_is_silent_is_found() -> None:
    with pytest.raises(Broken, match=r"^20:"):
        searched(plane(), faults=1, kinds=UNSEEN, planner=from_whoever_is_silent)


def test_a_site_that_lets_the_former_machine_write_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfenced(truth: FaultyTruth, step: AttachVolumes) -> FaultyTruth:
        frozen = any(each.name == step.source and each.power is Power.FROZEN for each in truth.machines)
        haunted = truth.haunted | ({(step.source, step.replica)} if frozen else set())
        return replace(placement.attached(truth, step), haunted=haunted)

    monkeypatch.setitem(EFFECTS, AttachVolumes, unfenced)
    with pytest.raises(Broken, match=r"^20: two machines write"):
        searched(plane(), faults=1, kinds=DEATHS)
