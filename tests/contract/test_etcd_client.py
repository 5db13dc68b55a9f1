"""The client of one member, on a real cluster: what etcd does is what the facts and errors say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from support.etcd_cluster import (  # noqa: F401
    RealLab,
    etcd_binary,
    eventually,
    leader,
    real_lab,
    real_labs,
    urls,
)

from quarterdeck.errors import Corrupt, NotFound, PreconditionFailed, Unavailable
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.facts import Alarm, AlarmKind, WatchKind
from quarterdeck.etcd.faults import EtcdCompacted, EtcdFault, Reason
from quarterdeck.etcd.kv import Compare, CompareValue, DeleteRange, Field, Get, Put, Relation, prefix_end
from quarterdeck.etcd.watch import WatchRequest


@pytest.fixture
async def member(real_lab: RealLab) -> AsyncIterator[EtcdMember]:  # noqa: F811
    async with EtcdMember(real_lab.founders[0].client_url, real_lab.tls) as one:
        yield one


@asynccontextmanager
async def all_members(lab: RealLab) -> AsyncIterator[list[EtcdMember]]:
    members = [EtcdMember(url, lab.tls) for url in urls(lab.founders)]
    yield members
    for one in members:
        await one.close()


def everything_under(prefix: bytes) -> Get:
    return Get(key=prefix, range_end=prefix_end(prefix))


async def test_what_is_written_is_read_and_deleted(member: EtcdMember) -> None:
    revision = await member.kv.put(Put(b"/rw/a", b"1"))
    await member.kv.put(Put(b"/rw/a", b"2"))
    await member.kv.put(Put(b"/rw/b", b"3"))
    found = await member.kv.get(everything_under(b"/rw/"))
    assert [(item.key, item.value, item.version) for item in found.items] == [
        (b"/rw/a", b"2", 2),
        (b"/rw/b", b"3", 1),
    ]
    assert found.items[0].create_revision == revision
    assert found.items[0].mod_revision == revision + 1
    old = await member.kv.get(Get(key=b"/rw/a", revision=revision))
    assert old.items[0].value == b"1"
    limited = await member.kv.get(Get(key=b"/rw/", range_end=prefix_end(b"/rw/"), limit=1, keys_only=True))
    assert (limited.count, limited.more, len(limited.items), limited.items[0].value) == (2, True, 1, b"")
    assert await member.kv.delete(DeleteRange(b"/rw/", prefix_end(b"/rw/"))) == 2
    assert (await member.kv.get(Get(key=b"/rw/", range_end=prefix_end(b"/rw/"), count_only=True))).count == 0


async def test_a_transaction_takes_the_branch_of_its_conditions(member: EtcdMember) -> None:
    missing = Compare(b"/txn/a", Field.CREATE_REVISION, Relation.EQUAL, 0)
    create = await member.kv.txn([missing], [Put(b"/txn/a", b"1")], [Get(key=b"/txn/a")])
    assert create.succeeded
    assert create.answers == (None,)
    again = await member.kv.txn([missing], [Put(b"/txn/a", b"2")], [Get(key=b"/txn/a"), DeleteRange(b"/txn/none")])
    assert not again.succeeded
    read, deleted = again.answers
    assert read is not None
    assert not isinstance(read, int)
    assert read.items[0].value == b"1"
    assert deleted == 0
    for field, number in ((Field.VERSION, 1), (Field.MOD_REVISION, create.revision), (Field.LEASE, 0)):
        assert (await member.kv.txn([Compare(b"/txn/a", field, Relation.EQUAL, number)], [])).succeeded
    assert (await member.kv.txn([CompareValue(b"/txn/a", Relation.NOT_EQUAL, b"2")], [])).succeeded
    assert not (await member.kv.txn([Compare(b"/txn/a", Field.VERSION, Relation.GREATER, 1)], [])).succeeded


async def test_compacted_history_is_recognised_by_reads_compactions_and_watches(member: EtcdMember) -> None:
    old = await member.kv.put(Put(b"/compact", b"1"))
    new = await member.kv.put(Put(b"/compact", b"2"))
    await member.kv.compact(new, physical=True)
    with pytest.raises(EtcdCompacted):
        await member.kv.get(Get(key=b"/compact", revision=old))
    with pytest.raises(EtcdCompacted):
        await member.kv.compact(old)
    async with aclosing(member.watch.revisions(WatchRequest(key=b"/compact", start_revision=old))) as revisions:
        with pytest.raises(EtcdCompacted) as gone:
            await anext(revisions)
    assert gone.value.compact_revision == new
    with pytest.raises(EtcdFault) as ahead:
        await member.kv.get(Get(key=b"/compact", revision=new + 1_000_000))
    assert ahead.value.reason is Reason.FUTURE_REVISION


async def test_a_lease_lives_is_refreshed_and_takes_its_keys_along(member: EtcdMember) -> None:
    granted = await member.lease.grant(60, lease_id=4711)
    assert (granted.id, granted.ttl) == (4711, 60)
    with pytest.raises(EtcdFault) as twice:
        await member.lease.grant(60, lease_id=4711)
    assert twice.value.reason is Reason.LEASE_EXISTS
    await member.kv.put(Put(b"/lease/a", b"1", lease=4711))
    life = await member.lease.life(4711, keys=True)
    assert life.granted_ttl == 60
    assert 0 < life.ttl <= 60
    assert life.keys == (b"/lease/a",)
    assert await member.lease.keep_alive(4711) == 60
    await member.lease.revoke(4711)
    assert (await member.kv.get(Get(key=b"/lease/a"))).items == ()
    for gone in (member.lease.life, member.lease.keep_alive, member.lease.revoke):
        with pytest.raises(NotFound):
            await gone(4711)


async def test_a_watch_tells_changes_in_order_with_what_was_before(member: EtcdMember) -> None:
    start = await member.kv.put(Put(b"/watch/a", b"1"))
    await member.kv.txn([], [Put(b"/watch/a", b"2"), Put(b"/watch/b", b"3")])
    await member.kv.delete(DeleteRange(b"/watch/a"))
    what = WatchRequest(key=b"/watch/", range_end=prefix_end(b"/watch/"), start_revision=start, before=True)
    async with aclosing(member.watch.revisions(what)) as revisions:
        first, second, third = [await anext(revisions) for _ in range(3)]
    assert [event.revision for event in (*first, *second, *third)] == [start, start + 1, start + 1, start + 2]
    assert sorted(event.now.key for event in second) == [b"/watch/a", b"/watch/b"]
    assert third[0].kind is WatchKind.DELETE
    assert third[0].before is not None
    assert third[0].before.value == b"2"


async def test_a_watch_outlives_the_restart_of_its_member(real_lab: RealLab) -> None:  # noqa: F811
    watched, other = real_lab.founders[0], real_lab.founders[1]
    wanted = [b"%d" % number for number in range(30)]
    seen: list[bytes] = []
    opened = asyncio.Event()

    async def watch() -> None:
        async with EtcdMember(watched.client_url, real_lab.tls) as one:
            start = (await one.maintenance.status()).revision + 1
            what = WatchRequest(key=b"/restart", start_revision=start)
            async with aclosing(one.watch.revisions(what, patience=20.0)) as revisions:
                opened.set()
                async for events in revisions:
                    seen.extend(event.now.value for event in events)
                    if len(seen) >= len(wanted):
                        return

    async with asyncio.timeout(60), asyncio.TaskGroup() as group, EtcdMember(other.client_url, real_lab.tls) as writer:
        group.create_task(watch())
        await opened.wait()
        for value in wanted[:10]:
            await writer.kv.put(Put(b"/restart", value))

        async def half_way() -> None:
            assert len(seen) == 10

        await eventually(half_way)
        await real_lab.kill(watched)
        for value in wanted[10:20]:
            await eventually(lambda value=value: writer.kv.put(Put(b"/restart", value)))
        await real_lab.start(watched)
        for value in wanted[20:]:
            await writer.kv.put(Put(b"/restart", value))
    assert seen == wanted


async def test_hashes_are_equal_on_all_members(real_lab: RealLab) -> None:  # noqa: F811
    async with all_members(real_lab) as members:
        revision = await members[0].kv.put(Put(b"/hash", b"1"))
        for one in members:
            await one.kv.get(Get(key=b"/hash"))  # linearizable: afterwards it has applied the write
        hashes = [await one.maintenance.hash_keys(revision=revision) for one in members]
    assert len({(each.hash, each.compact_revision) for each in hashes}) == 1
    assert all(each.hash_revision == revision for each in hashes)


async def test_a_snapshot_comes_whole_and_defragmenting_gives_space_back(member: EtcdMember) -> None:
    for number in range(40):
        await member.kv.put(Put(b"/big/%d" % number, bytes(50_000)))
    newest = (await member.kv.get(Get(key=b"/big/0"))).revision
    snapshot = b"".join([part async for part in member.maintenance.snapshot()])
    before = await member.maintenance.status()
    assert len(snapshot) == before.db_size + 32
    await member.kv.delete(DeleteRange(b"/big/", prefix_end(b"/big/")))
    await member.kv.compact(newest + 1, physical=True)
    await member.maintenance.defragment()
    after = await member.maintenance.status()
    assert after.db_size < before.db_size - 1_000_000
    assert after.db_size_in_use <= after.db_size
    assert after.db_size_quota == 2 * 1024**3


async def test_a_nospace_alarm_stops_writes_until_it_is_disarmed(member: EtcdMember) -> None:
    alarm = Alarm(AlarmKind.NOSPACE, (await member.maintenance.status()).member_id)
    await member.maintenance.raise_alarm(alarm)
    assert await member.maintenance.alarms() == (alarm,)
    with pytest.raises(PreconditionFailed) as full:
        await member.kv.put(Put(b"/full", b"1"))
    assert isinstance(full.value, EtcdFault)
    assert full.value.reason is Reason.NO_SPACE
    await member.maintenance.disarm(alarm)
    assert await member.maintenance.alarms() == ()
    await member.kv.put(Put(b"/full", b"1"))


async def test_a_corrupt_alarm_is_recognised(member: EtcdMember) -> None:
    alarm = Alarm(AlarmKind.CORRUPT, (await member.maintenance.status()).member_id)
    await member.maintenance.raise_alarm(alarm)
    assert await member.maintenance.alarms() == (alarm,)
    with pytest.raises(Corrupt) as corrupt:
        await member.kv.put(Put(b"/corrupt", b"1"))
    assert isinstance(corrupt.value, EtcdFault)
    assert corrupt.value.reason is Reason.CORRUPT
    await member.maintenance.disarm(alarm)


async def test_a_learner_serves_status_and_stale_reads_only(
    real_lab: RealLab,  # noqa: F811
) -> None:
    founders, spare = urls(real_lab.founders), real_lab.spares[0]
    await real_lab.write(1)
    await eventually(lambda: real_lab.etcd.add_learner(founders, spare.peer_url))
    await real_lab.start(spare)
    await eventually(lambda: real_lab.etcd.status(spare.client_url))
    async with EtcdMember(spare.client_url, real_lab.tls) as learner:
        assert (await learner.maintenance.status()).is_learner
        assert (await learner.kv.get(Get(key=b"/written", serializable=True))).items
        for refused in (
            learner.kv.get(Get(key=b"/written")),
            learner.kv.put(Put(b"/written", b"x")),
            learner.cluster.members(),
            learner.maintenance.hash_keys(),
            learner.lease.keep_alive(1),
            anext(learner.watch.revisions(WatchRequest(key=b"/written"), patience=2.0)),
        ):
            with pytest.raises(Unavailable) as caught:
                await refused
            assert isinstance(caught.value, EtcdFault)
            assert caught.value.reason is Reason.NOT_FOR_LEARNERS


async def test_a_member_that_comes_back_is_reached_again_soon(real_lab: RealLab) -> None:  # noqa: F811
    down = real_lab.founders[0]
    async with EtcdMember(down.client_url, real_lab.tls) as one:
        await one.maintenance.status()
        await real_lab.kill(down)
        with pytest.raises(Unavailable):
            await one.maintenance.status()
        await real_lab.start(down)
        assert (await eventually(one.maintenance.status)).member_id
