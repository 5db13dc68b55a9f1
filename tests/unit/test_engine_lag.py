"""When a member that is far behind comes no nearer: pure, and told on what time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quarterdeck.engine.observation.silence import AWAY, MORE, STUCK, Distance, Pursuit

FAR = Distance(leader=(1, 2), entries=5_000)
COPIES = replace(FAR, sending=True, size=MORE)
EVERY = 5.0


def begun(at: Distance = FAR) -> Pursuit:
    return Pursuit.begun(at, 100.0, moved=False)


def looked(pursuit: Pursuit, seconds: float, at: Distance = FAR) -> Pursuit:
    """Looks that all say the same, for that long."""
    for _ in range(round(seconds / EVERY)):
        pursuit = pursuit.after(at, pursuit.until + EVERY)
    return pursuit


def test_it_is_not_known_before_it_has_come_no_nearer_for_long_enough() -> None:
    assert begun().lagging is None
    assert looked(begun(), STUCK - EVERY).lagging is None
    assert looked(begun(), STUCK).lagging is True
    assert looked(begun(), STUCK, replace(FAR, entries=6_000)).lagging is True


def test_one_that_came_nearer_than_ever_is_on_its_way() -> None:
    stuck = looked(begun(), STUCK)
    nearer = stuck.after(replace(FAR, entries=4_999), stuck.until + EVERY)
    assert nearer.lagging is False
    assert looked(nearer, STUCK - EVERY, replace(FAR, entries=4_999)).lagging is False
    assert looked(nearer, STUCK, replace(FAR, entries=4_999)).lagging is True


def test_one_that_is_as_near_as_it_was_before_and_falls_back_again_comes_no_nearer() -> None:
    """It copies again and again, and each copy is old when it is there."""
    pursuit = begun(replace(FAR, entries=2_000))
    for _ in range(10):
        pursuit = pursuit.after(replace(FAR, entries=9_000), pursuit.until + EVERY)
        pursuit = pursuit.after(replace(FAR, entries=2_000), pursuit.until + EVERY)
    assert pursuit.lagging is True
    assert pursuit.nearest == 2_000


@pytest.mark.parametrize("leader", [(3, 2), (1, 3)], ids=["another leader", "the same one, which leads again"])
def test_with_a_new_leader_it_begins_again(leader: tuple[int, int]) -> None:
    stuck = looked(begun(), STUCK)
    restarted = stuck.after(replace(FAR, leader=leader), stuck.until + EVERY)
    assert restarted.lagging is False
    assert looked(restarted, STUCK, replace(FAR, leader=leader)).lagging is True


def test_after_we_were_away_nothing_is_known() -> None:
    stuck = looked(begun(), STUCK)
    assert stuck.after(FAR, stuck.until + AWAY).lagging is True
    assert stuck.after(FAR, stuck.until + AWAY + 0.5).lagging is None


def test_a_big_copy_over_a_slow_link_is_on_its_way_as_long_as_more_of_it_comes() -> None:
    pursuit = begun(COPIES)
    for step in range(1, 200):
        pursuit = looked(pursuit, STUCK - EVERY, replace(COPIES, size=MORE * step))
        pursuit = pursuit.after(replace(COPIES, size=MORE * (step + 1)), pursuit.until + EVERY)
        assert pursuit.lagging is False
    assert looked(pursuit, STUCK, replace(COPIES, size=MORE * 200)).lagging is True


def test_a_copy_that_is_begun_again_brings_no_more_than_the_one_before() -> None:
    pursuit = begun(replace(COPIES, size=20 * MORE))
    for _ in range(3):
        for part in range(10, 21):
            pursuit = pursuit.after(replace(COPIES, size=part * MORE), pursuit.until + EVERY)
    assert pursuit.lagging is True


@pytest.mark.parametrize(("more", "lagging"), [(MORE - 1, True), (MORE, False)])
def test_a_little_more_is_only_that_the_data_grows(more: int, lagging: bool) -> None:
    stuck = looked(begun(COPIES), STUCK, COPIES)
    assert stuck.after(replace(COPIES, size=MORE + more), stuck.until + EVERY).lagging is lagging


def test_what_a_volume_holds_counts_only_while_a_copy_comes() -> None:
    stuck = looked(begun(), STUCK)
    assert stuck.after(replace(FAR, size=100 * MORE), stuck.until + EVERY).lagging is True
    assert Pursuit.begun(replace(FAR, size=MORE), 100.0, moved=False).most == 0
    assert begun(COPIES).most == MORE


def test_while_a_copy_comes_of_which_nothing_is_known_nothing_is_said() -> None:
    unseen = replace(FAR, sending=True)
    pursuit = looked(begun(unseen), 2 * STUCK, unseen)
    assert pursuit.lagging is None
    assert pursuit.after(FAR, pursuit.until + EVERY).lagging is True
