"""A machine dies for good, at any moment of a plane's life: it ends as wanted, with another replica in its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loop.faults import Kind, OneFault, Recorded
from loop.lives import EAST3, STORIES, Life, Story, many
from quarterdeck.engine import liveness
from quarterdeck.stores.port import Outcome

#: Of each story so many moments are tried, spread over all of its calls.
MOST = 4
#: In these three replicas are there from beginning to end: one of them can be missed.
OF_THREE = ("3 to 3", "a flag of 3", "3 others", "events back", "3 apart to 3")
#: Seconds for a program to get well that never was as far as its driver saw; lives end sooner than ten minutes.
STARTS = 60.0
STILL = Story("3 as they are", EAST3, EAST3)


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(liveness, "STARTS", STARTS)
        yield


@pytest.mark.parametrize("story", (STILL, *(each for each in STORIES if each.name in OF_THREE)), ids=str)
def test_a_machine_that_dies_for_good_is_replaced_whenever_that_is(story: Story) -> None:
    recorded = Recorded()
    Life(story=story, faults=recorded).run()
    points = sorted(recorded.points.values())
    for number in points[:: max(1, len(points) // MOST)]:
        Life(story=story, faults=OneFault(number, Kind.LOST_MACHINE)).run()


def test_it_is_condemned_on_the_word_of_its_cluster_and_that_is_told() -> None:
    life = Life(story=STILL, faults=OneFault(5, Kind.LOST_MACHINE)).run()
    done = [entry.kind for entry in life.world.store._journal if entry.outcome in (Outcome.NOTED, Outcome.DONE)]
    assert [each for each in done if each in ("Condemn", "PlaceReplica")][-2:] == ["Condemn", "PlaceReplica"]
    assert done.count("Condemn") == 1
    told = [each.reason for each in life.world.store._events.values()]
    assert "MemberDown" in told
    assert told.count("ReplicaCondemned") == 1


@pytest.mark.parametrize("story", (STILL, *(each for each in STORIES if each.name in OF_THREE)), ids=str)
def test_a_program_that_hangs_is_killed_and_started_again_whenever_that_is(story: Story) -> None:
    recorded = Recorded()
    Life(story=story, faults=recorded).run()
    points = sorted(recorded.points.values())
    for number in points[:: max(1, len(points) // MOST)]:
        Life(story=story, faults=OneFault(number, Kind.HANGS_UP)).run()


def test_what_hangs_is_told_and_killed_once() -> None:
    life = Life(story=STILL, faults=OneFault(5, Kind.HANGS_UP)).run()
    done = [entry.kind for entry in life.world.store._journal if entry.outcome is Outcome.DONE]
    assert done.count("ReviveUnit") == 1
    assert "Condemn" not in done
    told = [each.reason for each in life.world.store._events.values()]
    assert told.count("UnitAiling") == 1
