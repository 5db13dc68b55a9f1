"""Slots: from what the user wants to the places that replicas fill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quarterdeck.model.memory import Replica
from quarterdeck.model.slots import Slot


def slots(*, site: str, zones: tuple[str, ...], replicas: int, present: Iterable[Replica] = ()) -> tuple[Slot, ...]:
    """``replicas`` slots at ``site``, spread evenly over ``zones``.

    Where they cannot all get the same number, those get one more where more replicas are ``present`` already: another
    order of the zones moves nothing.
    """
    there = Counter(record.slot.zone for record in present if record.site == site)
    fullest = sorted(zones, key=lambda zone: (-there[zone], zones.index(zone)))
    each, more = divmod(replicas, len(zones))
    numbers = {zone: each + (zone in fullest[:more]) for zone in zones}
    rounds = range(max(numbers.values()))
    return tuple(Slot(site=site, zone=zone) for number in rounds for zone in zones if number < numbers[zone])


def lent(slot: Slot) -> Slot:
    """The second slot that a move from one replica to one replica lends at the target, as long as it takes.

    Two voters need each other, and an apiserver cannot start on a learner. With a second voter at the target,
    the target holds a quorum by itself from the moment it has two, and the source's one is never needed again.
    """
    return Slot(site=slot.site, zone="")
