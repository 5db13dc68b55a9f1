"""Whether somebody leads, by what is read of a lease again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.golden import Golden

from quarterdeck.engine.observation.lead_watch import GAP_S, SURE_S, WatchedLease
from quarterdeck.kube.port import SeenLease
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import UNLED_S, Leadership

NAME = "kube-scheduler"
WALL = 1_800_000_000.0
NOBODY_SAYS = {"east-1": False, "east-2": False}


def lease(
    *,
    holder: str = "host_1",
    renewed: float = 0.0,
    age_s: float | None = None,
    duration: float = 15.0,
    acquired: float = 0.0,
) -> SeenLease:
    """As read at any moment, ``age_s`` after it was written by the apiserver's clock (None: it does not tell)."""
    return SeenLease(
        name=NAME,
        holder=holder,
        renewed=renewed,
        acquired=acquired,
        duration=duration,
        resource_version="1",
        written_at=None if age_s is None else WALL,
        answered_at=None if age_s is None else WALL + age_s,
    )


def read(*readings: tuple[float, SeenLease | None], once: bool = False) -> Leadership:
    """What is concluded from readings of a lease, each at a time."""
    (first, seen), *rest = readings
    watched = WatchedLease.begun(seen, first)
    for at, each in rest:
        watched = watched.after(each, at)
    return watched.judged(Component.SCHEDULER, NAME, once=once)


def unchanged(seen: SeenLease | None, seconds: float, *, every: float = 10.0) -> Leadership:
    """What is concluded from a lease that is always the same."""
    times = [0.0, *(every * number for number in range(1, int(seconds / every) + 1)), seconds]
    return read(*((at, seen) for at in times))


@pytest.mark.parametrize("renewed_at", [0.0, WALL, WALL + 86_400.0, -WALL], ids=["old", "now", "future", "past"])
@pytest.mark.parametrize("duration", [1.0, 15.0, 86_400.0, 2.0**31])
def test_a_holder_that_does_not_renew_does_not_lead_whatever_it_wrote(renewed_at: float, duration: float) -> None:
    ghost = lease(renewed=renewed_at, duration=duration)
    assert unchanged(ghost, UNLED_S - 1.0).led is True
    assert unchanged(ghost, UNLED_S + 1.0).led is False


@pytest.mark.parametrize("skew", [-3600.0, 0.0, 3600.0])
def test_a_holder_that_renews_leads_whatever_its_clock_says_and_the_apiserver_s(skew: float) -> None:
    """Its lease was written by an apiserver whose clock is an hour apart from that of the one that is read."""
    readings = [(10.0 * turn, lease(renewed=skew + 10.0 * turn, age_s=skew)) for turn in range(20)]
    for upto in range(2, 20):
        assert read(*readings[:upto]).led is True


def test_who_looks_for_the_first_time_goes_by_when_it_was_written() -> None:
    assert read((0.0, lease(age_s=3.0))).led is True
    old = lease(age_s=500.0)
    assert read((0.0, old)).led is None, "the clocks of two apiservers may differ: it is watched for a moment"
    assert read((0.0, old), (SURE_S, old)).led is False
    assert read((0.0, old), (2.0, lease(age_s=500.0, renewed=2.0))).led is True


def test_nothing_is_concluded_from_what_was_not_read_for_a_while() -> None:
    """The apiserver was down meanwhile, or this process stood still: whoever leads gets time to renew it."""
    same = lease()
    assert read((0.0, same), (100.0, same)).led is None
    assert read((0.0, same), (100.0, same), (100.0 + SURE_S, same)).led is False
    assert read((0.0, same), (GAP_S, same), (2 * GAP_S, same)).led is False


@pytest.mark.parametrize("seen", [None, lease(holder="")], ids=["there is none", "it was released"])
def test_a_lease_that_nobody_has_is_between_two_holders_only_for_so_long(seen: SeenLease | None) -> None:
    assert unchanged(seen, UNLED_S - 1.0).led is None
    assert unchanged(seen, UNLED_S + 1.0).led is False
    assert read((0.0, lease()), (10.0, seen), (20.0, lease(holder="host_2"))).led is True


def test_who_looks_once_takes_a_lease_that_does_not_come_for_missing() -> None:
    assert read((0.0, None), (1.0, None), once=True).led is None
    assert read((0.0, None), (SURE_S, None), once=True).led is False
    assert read((0.0, None), (SURE_S, lease()), once=True).led is True


def test_a_label_is_no_renewal() -> None:
    same = lease()
    labelled = [(10.0 * turn, replace(same, resource_version=str(turn))) for turn in range(5)]
    assert read(*labelled).led is False


def test_a_lease_that_somebody_else_renews_is_led_by_nobody_of_ours(golden: Golden) -> None:
    watched = WatchedLease.begun(lease(acquired=-500.0), 0.0).claimed(NOBODY_SAYS)
    assert watched.judged(Component.SCHEDULER, NAME).led is True, "it may be one of ours that has just died"
    watched = watched.after(lease(acquired=-500.0, renewed=2.0), 2.0).claimed(NOBODY_SAYS)
    judged = watched.judged(Component.SCHEDULER, NAME)
    assert (judged.led, judged.foreign) == (False, True)
    golden(judged.trouble)


def test_one_of_ours_that_has_just_taken_it_and_does_not_yet_say_so_leads() -> None:
    watched = WatchedLease.begun(lease(acquired=-1.0), 0.0).claimed(NOBODY_SAYS)
    watched = watched.after(lease(acquired=-1.0, renewed=2.0), 2.0)
    assert watched.judged(Component.SCHEDULER, NAME).led is True
    watched = watched.claimed({"east-1": False, "east-2": True})
    judged = watched.judged(Component.SCHEDULER, NAME)
    assert (judged.led, judged.replica, judged.foreign) == (True, "east-2", False)


@pytest.mark.parametrize("answers", [{}, {"east-1": False, "east-2": None}])
def test_nobody_is_foreign_while_a_program_of_ours_does_not_answer(answers: dict[str, bool | None]) -> None:
    watched = WatchedLease.begun(lease(acquired=-500.0), 0.0).claimed(answers)
    watched = watched.after(lease(acquired=-500.0, renewed=2.0), 2.0).claimed(answers)
    assert watched.judged(Component.SCHEDULER, NAME).led is True


@pytest.mark.parametrize(
    "seen",
    [
        lease(holder="ghost", age_s=40.0, duration=86_400.0),
        lease(holder="host_1", age_s=40.0),
        None,
        lease(holder="ghost", age_s=40.0, duration=1e15),
    ],
)
def test_people_are_told_who_holds_it_until_when_and_what_to_do(seen: SeenLease | None, golden: Golden) -> None:
    golden(unchanged(seen, 40.0).trouble)
    golden(unchanged(seen, 300.0).trouble)  # it is one event, however long it lasts
