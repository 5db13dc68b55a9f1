"""Which replica fills which slot: the cheapest way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quarterdeck.model.memory import Replica
from quarterdeck.model.slots import Slot


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
