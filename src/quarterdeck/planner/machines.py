"""The choice of a machine for a replica."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import IDLE, MachineState
from quarterdeck.model.world import MachineFact, World
from quarterdeck.planner.members import listed

#: A machine whose replicas were condemned so often within the window gets no other one.
_FLAPS = 2


def is_there(world: World, record: Replica) -> bool:
    """Whether a replica is, or may be, a member, or runs any program."""
    if world.membership is None or listed(world.membership, record):
        return True
    return any(world.replica(record.name).unit(component) not in IDLE for component in world.programs.every)


def busy(world: World, record: Replica) -> bool:
    """Whether a replica still needs its machine: also one that is about to become a member."""
    return not record.listed or is_there(world, record)


def flapping(world: World) -> frozenset[str]:
    """The machines whose replicas were condemned repeatedly within the window: another one there would be the next."""
    window = world.settings.healing.window
    lately = Counter(machine for machine, _ in world.memory.healed_within(window, world.now) if machine)
    return frozenset(machine for machine, times in lately.items() if times >= _FLAPS)


def machine_for(
    world: World, slot: Slot, taken: Collection[str], leaving: Iterable[Replica] = ()
) -> MachineFact | None:
    """A machine for a slot that is not ``taken``; else one whose only replica is ``leaving``: the new one gets a seat
    of its own there. Machines that never had a replica come first: others may still hold data that is kept. None when
    there is none; a cordoned machine is never chosen.
    """
    condemned = world.memory.given_up | world.memory.leaving
    avoided = flapping(world) | {each.machine for each in world.memory.replicas if each.name in condemned}

    def fits(machine: MachineFact) -> bool:
        here = machine.site == slot.site and slot.zone in ("", machine.zone)
        usable = machine.state is MachineState.UP and not machine.cordoned
        return here and usable and machine.name not in avoided

    used = [record.machine for record in world.memory.replicas]
    here = sorted(filter(fits, world.machines), key=lambda each: (each.name in used, each.name))
    free = next((each for each in here if each.name not in taken), None)
    if free is not None:
        return free
    beside = {record.machine for record in leaving}
    crowd = [record.machine for record in world.memory.replicas if busy(world, record)]
    return next((each for each in here if each.name in beside and crowd.count(each.name) == 1), None)


def no_machine(world: World, slot: Slot, purpose: str = "") -> Wait:
    """The wait when there is no machine: each candidate, with the reason why it is not used."""
    here = [each for each in world.machines if each.site == slot.site and slot.zone in ("", each.zone)]
    where = f"{f'zone {slot.zone} of ' if slot.zone else ''}site {slot.site}"
    each_why = "; ".join(f"{each.name} {_why_not(world, each)}" for each in sorted(here, key=lambda each: each.name))
    what = f"a free machine in {where}{purpose}: {each_why or 'it has none'}"
    return Wait(what, f"free one of them, or add one with 'quarterdeck site machines add {slot.site}'")


def why_silent(world: World, site: str, machine: str) -> str:
    """Why a machine does not answer, as the end of a sentence: "" where that is not known."""
    here = [each.why for each in world.machines if (each.site, each.name) == (site, machine)]
    here += [
        world.replica(each.name).why for each in world.memory.replicas if (each.site, each.machine) == (site, machine)
    ]
    why = next(filter(None, here), "")
    return f": {why}" if why else ""


def _why_not(world: World, machine: MachineFact) -> str:
    """Why a machine gets no further replica of the plane."""
    if machine.state is MachineState.DOWN:
        return "is off"
    if machine.state is not MachineState.UP:
        return f"does not answer{why_silent(world, machine.site, machine.name)}"
    if machine.cordoned:
        return machine.why or f"is cordoned ('site uncordon {machine.site}' undoes that)"
    here = [each.name for each in world.memory.replicas if each.machine == machine.name]
    if machine.name in flapping(world):
        return "lost its replicas repeatedly"
    return f"has {', '.join(here)}" if here else "is about to receive another replica"
