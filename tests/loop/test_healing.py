"""A machine dies for good, at any moment of a plane's life: it ends as wanted, with another replica in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest
from support.tiers import sized

from loop import mishaps
from loop.calls import Call
from loop.fake_world import Joined
from loop.faults import Kind, OneFault, Recorded
from loop.lives import EAST3, EAST3_APART, STORIES, Life, Story, many, spread
from quarterdeck.engine.observation import liveness
from quarterdeck.model.components import Component
from quarterdeck.stores.port import EntryOutcome

#: Of each story so many moments are tried, spread over all of its calls.
MOST = sized(smoke=1, full=2, soak=40)
#: In these three replicas are there from beginning to end: one of them can be missed.
OF_THREE = ("3 to 3", "a flag of 3", "3 others", "events back", "3 apart to 3")
#: Seconds for a program to get well that never was as far as its driver saw; lives end sooner than ten minutes.
STARTS = 60.0
STILL = Story("3 as they are", EAST3, EAST3)
APART = Story("3 apart as they are", EAST3_APART, EAST3_APART)


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
    for number in spread(points, MOST, f"{story} dies"):
        Life(story=story, faults=OneFault(number, Kind.LOST_MACHINE)).run()


def test_it_is_condemned_on_the_word_of_its_cluster_and_that_is_told() -> None:
    life = Life(story=STILL, faults=OneFault(5, Kind.LOST_MACHINE)).run()
    done = [
        entry.kind for entry in life.world.store._journal if entry.outcome in (EntryOutcome.NOTED, EntryOutcome.DONE)
    ]
    order = ["mark-for-replacement", "place-replica"]
    assert [each for each in done if each in order][-2:] == order
    assert done.count("mark-for-replacement") == 1
    reasons = [each.reason for each in life.world.store._events.values()]
    assert "MemberDown" in reasons
    assert reasons.count("ReplicaMarkedForReplacement") == 1


@pytest.mark.parametrize("story", (STILL, *(each for each in STORIES if each.name in OF_THREE)), ids=str)
def test_a_program_that_hangs_is_killed_and_started_again_whenever_that_is(story: Story) -> None:
    recorded = Recorded()
    Life(story=story, faults=recorded).run()
    points = sorted(recorded.points.values())
    for number in spread(points, MOST, f"{story} hangs"):
        Life(story=story, faults=OneFault(number, Kind.HANGS_UP)).run()


def test_what_hangs_is_told_and_killed_once() -> None:
    life = Life(story=STILL, faults=OneFault(5, Kind.HANGS_UP)).run()
    done = [entry.kind for entry in life.world.store._journal if entry.outcome is EntryOutcome.DONE]
    assert done.count("force-restart-unit") == 1
    assert "mark-for-replacement" not in done
    reasons = [each.reason for each in life.world.store._events.values()]
    assert reasons.count("UnitUnhealthy") == 1


@dataclass(slots=True)
class HangsOnItsData:
    """A member of the events' etcd hangs, and does so again until nothing of it is left; the driver dies after the
    first call of a name (``dies``).
    """

    dies: str = ""
    gone: bool = False

    def of(self, call: Call, number: int) -> Kind | None:
        events = any(str(getattr(each, "name", each)).endswith(Component.EVENTS_ETCD) for each in call.args)
        self.gone |= call.method == "remove_unit" and events
        if call.method == self.dies and number > 5 and (call.port == "etcd" or self.gone):
            self.dies = ""
            return Kind.DIES_AFTER
        return Kind.HANGS_UP if number >= 5 and not self.gone else None


def of_events(world: Joined, _: Random) -> str:
    world.settle()
    found = (each for each in world.processes.values() if each.component == Component.EVENTS_ETCD)
    process = next((each for each in found if each.replica == "east-2" and not each.frozen), None)
    if process is None:
        return ""
    process.stuck = True
    world.strikes += 1
    world.touch()
    return "etcd-events of east-2 hangs"


@pytest.mark.parametrize("dies", ["", "remove", "add_learner"], ids=lambda at: at or "nobody dies")
def test_a_replica_gets_another_member_of_the_events_etcd_whoever_drives(
    dies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mishaps, "_hangs", of_events)
    life = Life(story=APART, faults=HangsOnItsData(dies)).run()
    begun = [entry.kind for entry in life.world.store._journal]
    order = [
        "force-restart-unit",
        "mark-for-replacement",
        "remove-member",
        "release-member",
        "add-learner",
        "promote-learner",
    ]
    assert list(dict.fromkeys(each for each in begun if each in order)) == order
    wanted = life.truths.wanted()
    assert wanted is not None
    names = {each.name for each in wanted.memory.replicas}
    assert names == {"east-1", "east-2", "east-3"}, "nobody was exchanged"
