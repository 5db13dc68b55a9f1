"""Which replica fills which slot, and which machine a new one gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.planner.slots import fits, match, slots


def slot(zone: str, site: str = "east") -> Slot:
    return Slot(site=site, zone=zone)


def at(zone: str, number: int = 1, site: str = "east") -> Replica:
    return Replica(name=f"{zone}{number}", slot=slot(zone, site), machine=f"{site}-{zone}{number}")


def free(_: Replica) -> tuple[int, ...]:
    return ()


def dear(*names: str) -> Callable[[Replica], tuple[int, ...]]:
    """The later a replica is named, the dearer; those that are not named cost nothing."""
    return lambda record: (names.index(record.name) + 1 if record.name in names else 0,)


def filled(wanted: str, *replicas: Replica, cost: Callable[[Replica], tuple[int, ...]] = free) -> list[str]:
    """By whom slots are filled (``-``: any zone)."""
    places = tuple(slot("" if zone == "-" else zone) for zone in wanted)
    return [each.name for each in match(places, replicas, cost).filled]


@pytest.mark.parametrize(
    ("record", "place", "does"),
    [
        (at("a"), slot("a"), True),
        (at("a"), slot(""), True),
        (at("a"), slot("b"), False),
        (at("a"), slot("a", "west"), False),
        (at("a"), slot("", "west"), False),
    ],
)
def test_a_replica_fits_where_its_site_zone_and_role_are_wanted(record: Replica, place: Slot, does: bool) -> None:
    assert fits(record, place) is does


def test_each_slot_has_one_replica_and_no_replica_two() -> None:
    found = match((slot("a"), slot("a"), slot("b")), (at("a"), at("c")), free)
    assert ([each.name for each in found.filled], found.empty) == (["a1"], (slot("a"), slot("b")))


def test_the_cheapest_that_fits_is_taken_and_of_equal_ones_the_first() -> None:
    assert filled("a", at("a", 1), at("a", 2), cost=dear("a1")) == ["a2"]
    assert filled("a", at("a", 2), at("a", 1)) == ["a2"]
    assert filled("a", at("b"), at("a"), cost=dear("a1")) == ["a1"], "a cheap one that does not fit is none"


def test_a_slot_for_any_zone_takes_nobody_from_a_slot_for_one() -> None:
    assert filled("-a", at("a"), at("b"), cost=dear("b1")) == ["b1", "a1"]


def test_the_replicas_are_in_the_order_of_the_slots_that_they_fill() -> None:
    assert filled("cab", at("a"), at("b"), at("c")) == ["c1", "a1", "b1"]


# --- slots ----------------------------------------------------------------------------------------------------------


def zones(replicas: int, *present: Replica, of: str = "abc") -> str:
    return "".join(each.zone for each in slots(site="east", zones=tuple(of), replicas=replicas, present=present))


@pytest.mark.parametrize(("replicas", "spread"), [(1, "a"), (2, "ab"), (3, "abc"), (5, "abcab"), (7, "abcabca")])
def test_slots_are_spread_over_the_zones_in_turn(replicas: int, spread: str) -> None:
    assert zones(replicas) == spread


def test_zones_that_have_replicas_get_what_is_left_over() -> None:
    assert zones(1, at("b")) == "b"
    assert zones(1, at("b"), of="cba") == "b", "another order of the zones moves nothing"
    assert zones(5, at("c", 1), at("c", 2), at("b", 1), at("b", 2), at("a", 1)) == "abcbc"


def test_a_zone_that_is_not_wanted_any_more_gets_nothing() -> None:
    assert zones(3, at("c"), of="ab") == "aba"
    assert zones(1, at("c"), of="ab") == "a"


def test_replicas_elsewhere_count_for_nothing() -> None:
    assert zones(1, at("b", site="west")) == "a"


def test_no_zone_gets_two_more_than_another() -> None:
    assert zones(3, at("a", 1), at("a", 2), at("a", 3)) == "abc"
