"""What somebody else changes in etcd's membership is told, and what the driver did itself is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.observations import learner, seen, voters_at
from model.stories import with_membership
from support.golden import Golden

from quarterdeck.engine.observation.membership_watch import MembershipWatch
from quarterdeck.model.membership import Health, MemberFact, Space
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import AddLearner, Promote, ReaddressMember, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.world import World
from quarterdeck.stores.port import EventType

WELL = seen(*voters_at("east", 3), learner("east-4"), to="east", count=3)
STRAY = MemberFact(
    id=0x90, replica="", name="", peer_urls=("https://10.0.0.9:2380",), learner=False, health=Health.DOWN
)


def members(*changed: MemberFact) -> World:
    return with_membership(WELL, members=changed)


def messages(watch: MembershipWatch, world: World) -> list[str]:
    news = watch.news(world)
    assert {each.reason for each in news} <= {"MembershipChanged"}
    return [each.message for each in news]


def watching() -> tuple[MembershipWatch, tuple[MemberFact, ...]]:
    watch = MembershipWatch()
    assert not messages(watch, WELL), "nothing is known of before the first look"
    assert WELL.membership is not None
    return watch, WELL.membership.members


def test_what_somebody_adds_removes_promotes_or_updates_is_told_once(golden: Golden) -> None:
    watch, (one, two, three, learns) = watching()
    moved = replace(one, peer_urls=("https://10.0.0.8:2380",))
    after = members(moved, two, replace(learns, learner=False), STRAY)
    golden(messages(watch, after))
    assert not messages(watch, after)
    assert three not in after.membership.members  # type: ignore[union-attr]


@pytest.mark.parametrize("in_swap", [False, True])
def test_what_its_own_steps_do_is_not(in_swap: bool) -> None:
    watch, (one, two, three, learns) = watching()
    promote = Promote(site="", why="", replica="east-4", member=learns.id)
    remove = RemoveMember(site="", why="", replica="east-3", member=three.id)
    steps: tuple[Step, ...] = (promote, remove)
    if in_swap:
        steps = (Swap(site="", why="", changes=(promote, remove)),)
    for step in (
        *steps,
        AddLearner(site="", why="", replica="east-5"),
        ReaddressMember(site="", why="", replica="east-1", member=one.id),
    ):
        watch.tried(step)
    new = MemberFact(id=0x91, replica="east-5", learner=True, health=Health.SUSPECT)
    after = members(replace(one, peer_urls=("https://10.0.0.8:2380",)), two, replace(learns, learner=False), new)
    assert not messages(watch, after)
    back = members(one, two, replace(learns, learner=False), new)
    assert len(messages(watch, back)) == 1, "each of its steps accounts for one change"


def led_by(leader: str | None, *changed: MemberFact) -> World:
    return with_membership(WELL, leader=leader, members=changed)


def test_a_leader_that_moved_though_it_is_healthy_is_told_and_nobody_is_said_to_have_done_it() -> None:
    watch, (one, two, *rest) = watching()
    assert not watch.news(led_by("east-1", one, two, *rest)), "nobody was known to lead before"
    news = watch.news(led_by("east-2", one, two, *rest))
    assert [(each.reason, each.type, each.message) for each in news] == [
        (
            "LeaderMoved",
            EventType.NORMAL,
            "east-2 leads etcd instead of east-1, which is healthy",
        )
    ]
    assert not watch.news(led_by("east-2", one, two, *rest))
    watch.tried(TransferLeadership(site="", why="", to="east-1", member=one.id))
    assert not watch.news(led_by("east-1", one, two, *rest)), "its own step did it"
    assert not watch.news(led_by("east-2", replace(one, health=Health.DOWN), two, *rest)), "the former leader is down"
    assert not watch.news(led_by(None, one, two, *rest))
    assert not watch.news(led_by("east-1", one, two, *rest)), "who led before is not known"
    assert {each.reason for each in watch.news(led_by("east-2", two, *rest))} == {"MembershipChanged"}


def test_an_alarm_for_want_of_room_is_told_where_every_member_has_room() -> None:
    def full(size: int | None, *alarms: str) -> World:
        assert WELL.membership is not None
        space = Space(size=size, in_use=size, quota=100) if size is not None else None
        members = tuple(replace(each, space=space) for each in WELL.membership.members)
        return with_membership(WELL, members=members, alarms=alarms)

    on = "memberID:1 alarm:NOSPACE "
    for size, says in ((50, ["etcd has raised NOSPACE, although every member has room"]), (95, []), (None, [])):
        watch = MembershipWatch()
        watch.news(full(size))
        assert [each.message for each in watch.news(full(size, on))] == says
        assert not watch.news(full(50, on)), "it is told when it is raised"


def test_what_changed_while_no_quorum_answered_is_told_afterwards() -> None:
    watch, (one, two, three, learns) = watching()
    assert not messages(watch, replace(WELL, membership=None))
    assert len(messages(watch, members(one, two, three, learns, STRAY))) == 1


def test_another_cluster_is_not_compared_with_the_one_before() -> None:
    watch, (one, *_) = watching()
    assert one.replica == "east-1"
    other = members(replace(one, id=0x77))
    assert not messages(watch, with_membership(other, cluster_id=7))


def test_the_events_cluster_is_watched_by_itself() -> None:
    memory = replace(WELL.memory, events=replace(WELL.memory.events, epoch=1, bootstrap=("east-1",)))
    world = replace(WELL, events_membership=WELL.membership, memory=memory)
    watch = MembershipWatch()
    watch.news(world)
    watch.tried(RemoveMember(site="", why="", replica="east-3", member=3))
    assert world.events_membership is not None
    fewer = replace(world.events_membership, members=world.events_membership.members[:2])
    found = messages(watch, replace(world, events_membership=fewer))
    assert len(found) == 2
    assert all("in the events' etcd" in each for each in found), "its step was of the main cluster"
