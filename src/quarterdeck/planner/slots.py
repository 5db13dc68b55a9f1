"""Slots: the places that replicas fill, from what the user wants, and which replica fills which: the cheapest way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot


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


@dataclass(frozen=True, slots=True)
class Match:
    """``filled`` has the replicas in the order of the slots that they fill, ``empty`` the slots that nobody does."""

    filled: tuple[Replica, ...]
    empty: tuple[Slot, ...]


def match(slots: tuple[Slot, ...], replicas: Iterable[Replica], cost: Callable[[Replica], tuple[int, ...]]) -> Match:
    """Fill as many slots as can be, by the replicas that cost least.

    A slot is for one zone or for any of its site: so those for one zone are filled first, each by the cheapest that is
    there, and no other way is cheaper. Equal ones are taken in the order in which they are given.
    """
    left = sorted(replicas, key=cost)
    chosen: dict[int, Replica] = {}
    for number, slot in sorted(enumerate(slots), key=lambda each: each[1].zone == ""):
        found = next((each for each in left if fits(each, slot)), None)
        if found is not None:
            left.remove(found)
            chosen[number] = found
    return Match(
        filled=tuple(chosen[number] for number in sorted(chosen)),
        empty=tuple(slot for number, slot in enumerate(slots) if number not in chosen),
    )


def fits(record: Replica, slot: Slot) -> bool:
    """Whether a replica is where a slot wants one."""
    place = record.slot
    return place.site == slot.site and slot.zone in ("", place.zone)
