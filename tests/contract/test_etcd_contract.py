"""What the etcd port promises: on the cluster in memory and on real etcd processes alike."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest
from support.etcd_cluster import (  # noqa: F401
    MAX_LEARNERS,
    QUOTA,
    Lab,
    MemberAddress,
    etcd_binary,
    eventually,
    fake_lab,
    leader,
    real_lab,
    real_labs,
    small_lab,
    small_labs,
    urls,
)
from support.tiers import smoke

from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, Unavailable
from quarterdeck.etcd.facts import (
    Alarm,
    AlarmKind,
    ListedMember,
    MemberProgress,
    MemberReport,
    RaftProgress,
    Replication,
)
from quarterdeck.etcd.faults import EtcdFault, EtcdRefused, Reason
from quarterdeck.etcd.kv import Get

UNKNOWN_ID = 0xDEAD


@pytest.fixture(params=smoke("fake_lab", "real_lab"))
def lab(request: pytest.FixtureRequest) -> Lab:
    return request.getfixturevalue(request.param)


async def member(lab: Lab, address: MemberAddress) -> ListedMember | None:
    members = await lab.etcd.members(urls(lab.founders))
    return next((each for each in members if address.peer_url in each.peer_urls), None)


async def added(lab: Lab, address: MemberAddress) -> int:
    """Add a learner; real etcd dares to only after 5 s of quiet."""
    return await eventually(lambda: lab.etcd.add_learner(urls(lab.founders), address.peer_url))


async def joined(lab: Lab, address: MemberAddress) -> int:
    """Add a learner, start it, and wait until it has applied what the leader has committed."""
    member_id = await added(lab, address)
    await lab.start(address)

    async def caught_up() -> None:
        goal = (await lab.etcd.status((await leader(lab)).client_url)).raft_index
        assert await lab.etcd.applied_index(address.metrics_url) >= goal

    await eventually(caught_up)
    return member_id


async def follower(lab: Lab) -> MemberAddress:
    chief = await leader(lab)
    return next(founder for founder in lab.founders if founder != chief)


async def test_the_founders_are_listed_as_started_voters(lab: Lab) -> None:
    members = await lab.etcd.members(urls(lab.founders))
    assert {each.name for each in members} == {founder.name for founder in lab.founders}
    assert {each.client_urls for each in members} == {(founder.client_url,) for founder in lab.founders}
    assert all(each.started and not each.is_learner for each in members)


async def test_statuses_agree_on_one_leader(lab: Lab) -> None:
    chief = await leader(lab)
    statuses = [await lab.etcd.status(founder.client_url) for founder in lab.founders]
    assert {status.leader_id for status in statuses} == {(await lab.etcd.status(chief.client_url)).member_id}
    assert [status.is_leader for status in statuses].count(True) == 1
    assert len({status.cluster_id for status in statuses}) == 1
    assert all(status.version.startswith("3.") and not status.errors for status in statuses)


async def test_writes_move_the_index(lab: Lab) -> None:
    url = (await leader(lab)).client_url
    before = await lab.etcd.status(url)
    await lab.write(5)
    after = await lab.etcd.status(url)
    assert after.raft_index >= before.raft_index + 5
    assert after.revision >= before.revision + 5


async def test_the_revision_that_a_quorum_confirms_is_that_of_the_newest_write(lab: Lab) -> None:
    before = await lab.etcd.revision(urls(lab.founders))
    await lab.write(5)
    after = await lab.etcd.revision(urls(lab.founders))
    assert after >= before + 5
    assert after == (await lab.etcd.status((await leader(lab)).client_url)).revision


async def standing(lab: Lab, address: MemberAddress) -> tuple[RaftProgress, MemberProgress]:
    """What the leader knows, and what it knows of one member."""
    chief = await leader(lab, [founder for founder in lab.founders if founder != address])
    progress = await lab.etcd.progress(chief.client_url)
    listed = await member(lab, address)
    assert listed is not None
    of = progress.of(listed.id)
    assert of is not None
    return progress, of


async def test_the_leader_tells_how_far_every_member_is(lab: Lab) -> None:
    await lab.write(3)

    async def all_have_all() -> None:
        progress = await lab.etcd.progress((await leader(lab)).client_url)
        assert {each.match for each in progress.members} == {progress.committed}

    await eventually(all_have_all)
    chief = await leader(lab)
    status, progress = await lab.etcd.status(chief.client_url), await lab.etcd.progress(chief.client_url)
    assert (progress.leader_id, progress.term) == (status.member_id, status.raft_term)
    assert progress.committed >= status.raft_index
    assert progress.transferee == 0
    assert {each.member_id for each in progress.members} == {
        each.id for each in await lab.etcd.members(urls(lab.founders))
    }
    assert all(each.next == each.match + 1 for each in progress.members)
    assert {each.state for each in progress.members} == {Replication.REPLICATE}
    assert progress.of(UNKNOWN_ID) is None


async def test_only_the_leader_tells_how_far_others_are(lab: Lab) -> None:
    with pytest.raises(Unavailable):
        await lab.etcd.progress((await follower(lab)).client_url)
    with pytest.raises(Unavailable):
        await lab.etcd.progress(lab.spares[0].client_url)


@pytest.mark.parametrize("frozen", [False, True])
async def test_in_the_leaders_eyes_a_member_that_is_down_stands_still_while_the_others_go_on(
    lab: Lab, frozen: bool
) -> None:
    down = await follower(lab)
    await (lab.freeze(down) if frozen else lab.kill(down))
    before, had = await standing(lab, down)
    await lab.write(3)
    after, has = await standing(lab, down)
    assert after.committed >= before.committed + 3
    assert has.match == had.match < after.committed
    others = [each for each in after.members if each.member_id != has.member_id]
    assert all(each.match > has.match for each in others)


@pytest.mark.parametrize("frozen", [False, True])
async def test_asking_for_the_alarms_is_an_entry_that_a_member_which_is_down_owes(lab: Lab, frozen: bool) -> None:
    """So whether a silent member is down can be told where nobody writes; and no key's revision moves."""
    down = await follower(lab)
    await (lab.freeze(down) if frozen else lab.kill(down))
    chief = await leader(lab, [founder for founder in lab.founders if founder != down])
    revision = (await lab.etcd.status(chief.client_url)).revision
    before, _ = await standing(lab, down)
    assert await lab.etcd.alarms(urls([chief])) == ()

    async def owed() -> None:
        after, has = await standing(lab, down)
        assert has.match <= before.committed < after.committed

    await eventually(owed)
    assert (await lab.etcd.status(chief.client_url)).revision == revision


async def test_how_far_a_learner_is_the_leader_tells_before_it_has_started(lab: Lab) -> None:
    spare = lab.spares[0]
    await added(lab, spare)
    progress, new = await standing(lab, spare)
    assert new.match < progress.committed
    await lab.start(spare)

    async def caught_up() -> None:
        goal, has = await standing(lab, spare)
        assert has.match == goal.committed

    await eventually(caught_up)


async def test_adding_a_learner_twice_gives_one_member(lab: Lab) -> None:
    first = await added(lab, lab.spares[0])
    again = await lab.etcd.add_learner(urls(lab.founders), lab.spares[0].peer_url)
    assert again == first
    listed = await member(lab, lab.spares[0])
    assert listed is not None
    assert listed.id == first
    assert listed.is_learner
    assert not listed.started


async def test_learners_past_the_limit_are_refused(lab: Lab) -> None:
    for spare in lab.spares[:MAX_LEARNERS]:
        await added(lab, spare)
    with pytest.raises(PreconditionFailed) as refused:
        await lab.etcd.add_learner(urls(lab.founders), lab.spares[MAX_LEARNERS].peer_url)
    assert isinstance(refused.value, EtcdFault)
    assert refused.value.reason is Reason.TOO_MANY_LEARNERS


async def test_a_learner_that_never_started_is_not_promoted(lab: Lab) -> None:
    await lab.write(20)
    member_id = await added(lab, lab.spares[0])
    with pytest.raises(PreconditionFailed) as refused:
        await lab.etcd.promote(urls(lab.founders), member_id)
    assert isinstance(refused.value, EtcdFault)
    assert refused.value.reason is Reason.LEARNER_BEHIND


async def test_nobody_can_promote_an_unknown_member(lab: Lab) -> None:
    with pytest.raises(NotFound) as missing:
        await lab.etcd.promote(urls(lab.founders), UNKNOWN_ID)
    assert isinstance(missing.value, EtcdFault)
    assert missing.value.reason is Reason.MEMBER_NOT_FOUND


async def test_removing_a_learner_twice_is_fine(lab: Lab) -> None:
    member_id = await added(lab, lab.spares[0])
    await lab.etcd.remove(urls(lab.founders), member_id)
    assert await member(lab, lab.spares[0]) is None
    await lab.etcd.remove(urls(lab.founders), member_id)


async def test_each_member_tells_whether_it_lists_another(lab: Lab) -> None:
    member_id = await added(lab, lab.spares[0])
    everywhere = urls(lab.founders)

    async def all_say(listed: bool) -> None:
        assert [await lab.etcd.lists(url, member_id) for url in everywhere] == [listed] * len(everywhere)

    await eventually(lambda: all_say(True))
    await lab.etcd.remove(everywhere, member_id)
    await eventually(lambda: all_say(False))
    down = await follower(lab)
    await lab.kill(down)
    with pytest.raises(Unavailable):
        await lab.etcd.lists(down.client_url, member_id)


async def test_a_member_without_a_quorum_reports_its_progress_and_the_membership(lab: Lab) -> None:
    everybody = {each.peer_url for each in lab.founders}
    last, *others = lab.founders
    for each in others:
        await lab.kill(each)

    async def follows_nobody() -> None:
        status = await lab.etcd.status(last.client_url)
        assert status.leader_id == 0
        assert status.raft_applied_index > 0
        assert status.revision > 0

    await eventually(follows_nobody)
    known = await lab.etcd.known_members(last.client_url)
    assert {peer for each in known for peer in each.peer_urls} == everybody
    with pytest.raises(Unavailable):
        await lab.etcd.members(urls(lab.founders))
    with pytest.raises(Unavailable):
        await lab.etcd.known_members(others[0].client_url)


async def test_a_member_that_was_removed_comes_back_with_a_new_id(lab: Lab) -> None:
    first = await added(lab, lab.spares[0])
    await lab.etcd.remove(urls(lab.founders), first)
    assert await added(lab, lab.spares[0]) != first


async def test_a_running_learner_serves_its_status_but_confirms_nothing(lab: Lab) -> None:
    spare = lab.spares[0]
    member_id = await joined(lab, spare)
    status = await eventually(lambda: lab.etcd.status(spare.client_url))
    assert status.is_learner
    assert status.member_id == member_id
    assert status.leader_id == (await lab.etcd.status(lab.founders[0].client_url)).leader_id
    with pytest.raises(Unavailable) as refused:
        await lab.etcd.members(urls([spare]))
    assert isinstance(refused.value, EtcdFault)
    assert refused.value.reason is Reason.NOT_FOR_LEARNERS
    assert await lab.etcd.members(urls([spare, *lab.founders]))


async def test_a_caught_up_learner_is_promoted_and_again_is_fine(lab: Lab) -> None:
    member_id = await joined(lab, lab.spares[0])
    await lab.etcd.promote(urls([lab.spares[0], *lab.founders]), member_id)
    listed = await member(lab, lab.spares[0])
    assert listed is not None
    assert not listed.is_learner
    await lab.etcd.promote(urls(lab.founders), member_id)


async def test_the_peer_port_answers_only_while_the_member_runs(lab: Lab) -> None:
    assert await lab.etcd.peer_version_answers(lab.founders[0].peer_url)
    assert not await lab.etcd.peer_version_answers(lab.spares[0].peer_url)


async def test_the_metrics_tell_the_applied_index(lab: Lab) -> None:
    founder = await leader(lab)
    before = await lab.etcd.applied_index(founder.metrics_url)
    await lab.write(3)
    assert await lab.etcd.applied_index(founder.metrics_url) >= before + 3
    with pytest.raises(Unavailable):
        await lab.etcd.applied_index(lab.spares[0].metrics_url)


async def test_the_metrics_tell_how_many_writes_are_under_way(lab: Lab) -> None:
    founder = await leader(lab)
    await lab.write(3)
    assert await lab.etcd.pending_proposals(founder.metrics_url) == 0
    with pytest.raises(Unavailable):
        await lab.etcd.pending_proposals(lab.spares[0].metrics_url)


async def test_the_metrics_tell_how_long_the_disk_takes(lab: Lab) -> None:
    founder = await leader(lab)
    await lab.write(3)
    times = await lab.etcd.times(founder.metrics_url)
    for each in (times.fsync, times.commit):
        assert each.buckets[-1] == (math.inf, each.buckets[-1][1])
        took = each.quantile(0.99)
        assert took is not None
        assert 0 < took < 10
    with pytest.raises(Unavailable):
        await lab.etcd.times(lab.spares[0].metrics_url)


async def test_leadership_moves_and_moving_it_again_is_fine(lab: Lab) -> None:
    old, new = await leader(lab), await follower(lab)
    target = await member(lab, new)
    assert target is not None
    await lab.etcd.move_leader(old.client_url, target.id)
    assert (await lab.etcd.status(old.client_url)).leader_id == target.id
    assert await leader(lab) == new
    await lab.etcd.move_leader(old.client_url, target.id)


async def test_only_the_leader_hands_over(lab: Lab) -> None:
    chief, other = await leader(lab), await follower(lab)
    third = next(founder for founder in lab.founders if founder not in (chief, other))
    target = await member(lab, third)
    assert target is not None
    with pytest.raises(PreconditionFailed) as refused:
        await lab.etcd.move_leader(other.client_url, target.id)
    assert isinstance(refused.value, EtcdFault)
    assert refused.value.reason is Reason.NOT_LEADER


async def test_a_learner_cannot_lead(lab: Lab) -> None:
    member_id = await added(lab, lab.spares[0])
    with pytest.raises(PreconditionFailed) as refused:
        await lab.etcd.move_leader((await leader(lab)).client_url, member_id)
    assert isinstance(refused.value, EtcdFault)
    assert refused.value.reason is Reason.BAD_TRANSFEREE


async def test_alarms_are_seen_by_all_and_in_the_status(lab: Lab) -> None:
    assert await lab.etcd.alarms(urls(lab.founders)) == ()
    victim = await lab.etcd.status(lab.founders[1].client_url)
    alarm = Alarm(AlarmKind.NOSPACE, victim.member_id)
    await lab.raise_alarm(alarm)
    assert await lab.etcd.alarms(urls(lab.founders)) == (alarm,)
    status = await lab.etcd.status((await leader(lab)).client_url)
    assert any("alarm:NOSPACE" in error.replace(" ", "") for error in status.errors)


async def test_a_member_that_is_down_says_nothing_and_holds_nothing_up(lab: Lab) -> None:
    down = await leader(lab)
    await lab.kill(down)
    with pytest.raises(Unavailable) as silent:
        await lab.etcd.status(down.client_url)
    assert isinstance(silent.value, EtcdFault)
    assert silent.value.reason in {Reason.UNREACHABLE, Reason.DEADLINE}
    assert not await lab.etcd.peer_version_answers(down.peer_url)
    members = await eventually(lambda: lab.etcd.members(urls([down, *lab.founders])))
    assert len(members) == len(lab.founders)


async def test_a_frozen_member_does_not_hold_up_the_others(lab: Lab) -> None:
    frozen = await follower(lab)
    await lab.freeze(frozen)
    others = [founder for founder in lab.founders if founder != frozen]
    async with asyncio.timeout(2.0):
        assert len(await lab.etcd.members(urls([frozen, *others]))) == len(lab.founders)
    with pytest.raises(Unavailable):
        await lab.etcd.status(frozen.client_url)


async def test_with_a_voter_down_etcd_adds_nobody_until_that_one_is_removed(lab: Lab) -> None:
    """The new member is counted as a voter that is down: 2 of 3 would become 2 of 4 (since 3.6.x)."""
    down = await follower(lab)
    listed = await member(lab, down)
    assert listed is not None
    await lab.kill(down)
    others = urls([founder for founder in lab.founders if founder != down])
    with pytest.raises(Unavailable) as refused:
        await lab.etcd.add_learner(others, lab.spares[0].peer_url)
    assert isinstance(refused.value, EtcdFault)
    assert refused.value.reason is Reason.UNHEALTHY
    await eventually(lambda: lab.etcd.remove(others, listed.id))
    assert await eventually(lambda: lab.etcd.add_learner(others, lab.spares[0].peer_url))


async def test_with_a_voter_down_no_live_one_is_removed(lab: Lab) -> None:
    down = await follower(lab)
    await lab.kill(down)
    left = [founder for founder in lab.founders if founder != down]
    victim = await member(lab, left[0])
    assert victim is not None
    with pytest.raises(Unavailable) as refused:
        await lab.etcd.remove(urls(left), victim.id)
    assert isinstance(refused.value, EtcdFault)
    assert refused.value.reason is Reason.UNHEALTHY
    assert await member(lab, left[0]) is not None


async def test_without_a_quorum_nothing_is_confirmed_and_nothing_changes(lab: Lab) -> None:
    left, *lost = lab.founders
    ids = {each.name: each.id for each in await lab.etcd.members(urls(lab.founders))}
    for founder in lost:
        await lab.kill(founder)

    async def leaderless() -> None:
        assert (await lab.etcd.status(left.client_url)).leader_id == 0

    await eventually(leaderless)
    with pytest.raises(Unavailable):
        await lab.etcd.members(urls(lab.founders))
    with pytest.raises(Unavailable):
        await lab.etcd.revision(urls(lab.founders))
    with pytest.raises(Unavailable):
        await lab.etcd.add_learner(urls(lab.founders), lab.spares[0].peer_url)
    with pytest.raises(Unavailable):
        await lab.etcd.remove(urls(lab.founders), ids[lost[0].name])
    with pytest.raises(Unavailable):
        await lab.etcd.alarms(urls(lab.founders))


def elsewhere(founder: MemberAddress, spare: MemberAddress) -> MemberAddress:
    """A founder with the address of a spare one."""
    return replace(spare, name=founder.name)


async def follows(lab: Lab, address: MemberAddress) -> int:
    """The id of a member that answers at an address, and follows a leader."""

    async def look() -> int:
        status = await lab.etcd.status(address.client_url)
        assert status.leader_id
        assert not status.is_learner
        return status.member_id

    return await eventually(look)


async def test_a_member_that_moved_with_its_data_is_found_at_its_new_address_and_is_who_it_was(lab: Lab) -> None:
    moved = await follower(lab)
    listed = await member(lab, moved)
    assert listed is not None
    await lab.kill(moved)
    there, others = elsewhere(moved, lab.spares[0]), [each for each in lab.founders if each != moved]
    await eventually(lambda: lab.etcd.readdress(urls(others), listed.id, there.peer_url))
    await lab.etcd.readdress(urls(others), listed.id, there.peer_url)
    again = await member(lab, there)
    assert again is not None
    assert (again.id, again.peer_urls) == (listed.id, (there.peer_url,))
    with pytest.raises(Conflict):
        await lab.etcd.readdress(urls(others), listed.id, others[0].peer_url)
    with pytest.raises(NotFound):
        await lab.etcd.readdress(urls(others), UNKNOWN_ID, lab.spares[1].peer_url)
    await lab.come_back(there)
    assert await follows(lab, there) == listed.id


async def test_a_quorum_is_back_when_a_member_of_it_is_back_where_nobody_looks_for_it(lab: Lab) -> None:
    """It finds the others, and they talk with it over the connections that it makes."""
    ids = {each.name: each.id for each in await lab.etcd.members(urls(lab.founders))}
    left, dead, moved = lab.founders
    await lab.kill(dead)
    await lab.kill(moved)
    there = elsewhere(moved, lab.spares[0])
    await lab.come_back(there)
    assert await follows(lab, there) == ids[moved.name]
    listed = await eventually(lambda: lab.etcd.members(urls((left, there))))
    assert {each.name: each.id for each in listed} == ids
    await eventually(lambda: lab.etcd.readdress(urls((left, there)), ids[moved.name], there.peer_url))


async def knows_that_it_votes(lab: Lab, address: MemberAddress) -> None:
    assert not (await lab.etcd.status(address.client_url)).is_learner


async def test_voters_are_exchanged_one_for_one(lab: Lab) -> None:
    """The swap: promote the new one, move leadership to it, remove an old one; all still serve."""
    new = lab.spares[0]
    new_id = await joined(lab, new)
    old = await leader(lab)
    old_id = (await lab.etcd.status(old.client_url)).member_id
    await lab.etcd.promote(urls(lab.founders), new_id)
    await eventually(lambda: knows_that_it_votes(lab, new))
    await lab.etcd.move_leader(old.client_url, new_id)
    everybody = urls([*lab.founders, new])
    await eventually(lambda: lab.etcd.remove(everybody, old_id))
    await lab.etcd.remove(everybody, old_id)
    members = await lab.etcd.members(everybody)
    assert {each.id for each in members} >= {new_id}
    assert old_id not in {each.id for each in members}
    assert (await leader(lab, [new])) == new


# --- room in the database, and its data ------------------------------------------------------------------------------


async def test_history_that_is_forgotten_leaves_room_that_a_member_gives_back_when_it_is_defragmented(lab: Lab) -> None:
    await lab.overwrite(8 << 20)
    one, other = await leader(lab), await follower(lab)

    async def filled() -> MemberReport:
        found = await lab.etcd.status(one.client_url)
        assert found.db_size >= found.db_size_in_use >= 8 << 20
        return found

    full = await eventually(filled)  # a member tells its sizes as of its last commit to the disk
    newest = await lab.etcd.revision(urls(lab.founders))
    await lab.etcd.compact(urls(lab.founders), newest)
    await lab.etcd.compact(urls(lab.founders), newest)  # again is fine
    before = await lab.etcd.status(other.client_url)
    await lab.etcd.defragment(one.client_url)  # only this tells what is in use, where nothing is written any more
    found = await lab.etcd.status(one.client_url)
    assert found.db_size < full.db_size - (4 << 20)
    assert found.db_size_in_use < 4 << 20
    assert (await lab.etcd.status(other.client_url)).db_size >= before.db_size, "only the one that was asked"
    with pytest.raises(NotFound) as future:
        await lab.etcd.compact(urls(lab.founders), newest + 1_000)
    assert isinstance(future.value, EtcdFault)
    assert future.value.reason is Reason.FUTURE_REVISION


async def test_all_alarms_of_a_kind_are_disarmed_and_none_of_another(lab: Lab) -> None:
    ids = [(await lab.etcd.status(url)).member_id for url in urls(lab.founders)]
    corrupt = Alarm(AlarmKind.CORRUPT, ids[0])
    for alarm in (corrupt, *(Alarm(AlarmKind.NOSPACE, each) for each in ids)):
        await lab.raise_alarm(alarm)
    await lab.etcd.disarm(urls(lab.founders), AlarmKind.NOSPACE)
    await lab.etcd.disarm(urls(lab.founders), AlarmKind.NOSPACE)  # again is fine
    assert await lab.etcd.alarms(urls(lab.founders)) == (corrupt,)


async def test_members_that_disagree_can_be_compared(lab: Lab) -> None:
    await lab.raise_alarm(Alarm(AlarmKind.CORRUPT, (await lab.etcd.status(lab.founders[0].client_url)).member_id))
    newest = await lab.etcd.revision(urls(lab.founders))
    assert len({(await lab.etcd.hash_keys(url, newest)).hash for url in urls(lab.founders)}) == 1


async def test_a_key_is_forgotten_and_again_is_fine(lab: Lab) -> None:
    for _ in range(2):
        await lab.etcd.forget(urls(lab.founders), b"/some/key")
    with pytest.raises(Unavailable):
        await lab.etcd.forget((), b"/some/key")


async def test_a_key_is_written_again_and_again_and_forgotten(lab: Lab) -> None:
    before = await lab.etcd.revision(urls(lab.founders))
    for value in (b"one", b"two"):
        await lab.etcd.keep_for(urls(lab.founders), b"/some/key", value, 60)
    assert await lab.etcd.revision(urls(lab.founders)) == before + 2
    await lab.etcd.forget(urls(lab.founders), b"/some/key")
    assert await lab.etcd.revision(urls(lab.founders)) == before + 3
    with pytest.raises(Unavailable):
        await lab.etcd.keep_for((), b"/some/key", b"", 60)


async def test_members_with_the_same_data_have_the_same_hash_at_a_revision(lab: Lab) -> None:
    await lab.write(5)
    newest = await lab.etcd.revision(urls(lab.founders))

    async def all_have_it() -> None:
        hashes = [await lab.etcd.hash_keys(url, newest) for url in urls(lab.founders)]
        assert len({(each.hash, each.compact_revision) for each in hashes}) == 1

    await eventually(all_have_it)
    with pytest.raises(NotFound):
        await lab.etcd.hash_keys(lab.founders[0].client_url, newest + 1_000)


async def test_learners_are_neither_defragmented_nor_compared(lab: Lab) -> None:
    await joined(lab, lab.spares[0])
    newest = await lab.etcd.revision(urls(lab.founders))
    for asked in (
        lab.etcd.defragment(lab.spares[0].client_url),
        lab.etcd.hash_keys(lab.spares[0].client_url, newest),
    ):
        with pytest.raises(Unavailable) as refused:
            await asked
        assert isinstance(refused.value, EtcdFault)
        assert refused.value.reason in (Reason.NOT_FOR_LEARNERS, Reason.UNREACHABLE)


async def test_a_cluster_over_its_quota_takes_writes_again_once_it_was_compacted_defragmented_and_disarmed(
    small_lab: Lab,  # noqa: F811
) -> None:
    lab = small_lab
    everywhere = urls(lab.founders)
    with pytest.raises(PreconditionFailed) as full:
        await lab.overwrite(QUOTA * 2)
    assert isinstance(full.value, EtcdFault)
    assert full.value.reason is Reason.NO_SPACE
    assert {alarm.kind for alarm in await lab.etcd.alarms(everywhere)} == {AlarmKind.NOSPACE}
    await lab.etcd.compact(everywhere, (await lab.etcd.status(everywhere[0])).revision)
    for url in everywhere:

        async def has_room(url: str = url) -> None:
            # One member has said that its history is gone; the others apply that a moment later. What is in use is
            # known as of the last write, and none come: only defragmenting tells.
            await lab.etcd.defragment(url)
            status = await lab.etcd.status(url)
            assert status.db_size < status.db_size_quota // 2

        await eventually(has_room)
    await lab.etcd.disarm(everywhere, AlarmKind.NOSPACE)
    await lab.overwrite(1 << 20)
    assert await lab.etcd.alarms(everywhere) == ()


async def test_authentication_keeps_quarterdeck_out_until_the_user_root_turns_it_off(lab: Lab) -> None:
    etcd, all_of = lab.etcd, urls(lab.founders)
    assert await etcd.admits(all_of[0])
    root = await lab.enable_authentication()

    async def kept_out() -> None:
        for each in all_of:
            assert not await etcd.admits(each)

    await eventually(kept_out)
    assert len(await etcd.members(all_of)) == len(lab.founders), "who is a member is told to everybody"
    assert await etcd.alarms(all_of) == ()
    refused = (
        etcd.revision(all_of),
        etcd.add_learner(all_of, lab.spares[0].peer_url),
        etcd.remove(all_of, (await etcd.members(all_of))[0].id),
        etcd.compact(all_of, 2),
        etcd.defragment(all_of[0]),
        etcd.hash_keys(all_of[0], 1),
        etcd.read(all_of[0], Get(key=b"/key")),
        etcd.keep_for(all_of, b"/key", b"value", 60),
        etcd.forget(all_of, b"/key"),
    )
    for each in refused:
        with pytest.raises(EtcdRefused, match="disable its authentication") as error:
            await each
        assert error.value.reason is Reason.DENIED
    for _ in range(2):
        await etcd.disable_authentication(all_of, root)

    async def let_in() -> None:
        for each in all_of:
            assert await etcd.admits(each)

    await eventually(let_in)
    await etcd.keep_for(all_of, b"/key", b"value", 60)
