"""What the etcd port promises to a backup: on the cluster in memory and on real etcd processes alike."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path, PurePosixPath

import pytest
from support.etcd_cluster import (  # noqa: F401
    Lab,
    MemberAddress,
    RealLab,
    etcd_binary,
    eventually,
    fake_lab,
    leader,
    real_lab,
    real_labs,
    urls,
)
from support.etcd_history import etcdutl  # noqa: F401
from support.tiers import smoke

from quarterdeck.backup.database import cut_checksum, newest_revision
from quarterdeck.components.etcd import BUMP, restored_revision, restoring
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import KeyEvent, WatchKind
from quarterdeck.etcd.faults import EtcdCompacted, EtcdFault, Reason


@pytest.fixture(params=smoke("fake_lab", "real_lab"))
def lab(request: pytest.FixtureRequest) -> Lab:
    return request.getfixturevalue(request.param)


async def follower(lab: Lab) -> MemberAddress:
    chief = await leader(lab)
    return next(founder for founder in lab.founders if founder != chief)


async def collected(lab: Lab, url: str, start: int, until: int) -> list[tuple[KeyEvent, ...]]:
    """What the revisions from ``start`` to ``until`` changed."""
    found = []
    async with asyncio.timeout(30), aclosing(lab.etcd.changes(url, start)) as changes:
        async for events in changes:
            found.append(events)
            if events[0].revision >= until:
                break
    return found


async def refused(parts: AsyncGenerator[object, None]) -> EtcdFault:
    """How a stream ends before its first part."""
    async with asyncio.timeout(30), aclosing(parts):
        with pytest.raises(EtcdFault) as error:
            await anext(parts)
    return error.value


async def test_changes_are_those_of_each_revision_in_order_and_go_on(lab: Lab) -> None:
    everywhere = urls(lab.founders)
    begins = await lab.etcd.revision(everywhere)
    await lab.write(3)
    await lab.etcd.keep_for(everywhere, b"/leased", b"value", 60)
    await lab.etcd.forget(everywhere, b"/leased")
    ends = await lab.etcd.revision(everywhere)
    for url in (await follower(lab), await leader(lab)):
        found = await collected(lab, url.client_url, begins + 1, ends)
        assert [each[0].revision for each in found] == [*range(begins + 1, ends + 1)]
        (put,), (deleted,) = found[-2:]
        assert (put.kind, put.now.key, put.now.value) == (WatchKind.PUT, b"/leased", b"value")
        assert put.now.lease != 0
        assert (deleted.kind, deleted.now.key) == (WatchKind.DELETE, b"/leased")

    async with asyncio.timeout(30), aclosing(lab.etcd.changes(everywhere[0], ends + 1)) as changes:
        coming = asyncio.ensure_future(anext(changes))
        await lab.write(1)
        assert (await coming)[0].revision == ends + 1


async def test_changes_that_were_compacted_are_said_to_be_gone(lab: Lab) -> None:
    everywhere = urls(lab.founders)
    await lab.write(5)
    newest = await lab.etcd.revision(everywhere)
    await lab.etcd.compact(everywhere, newest - 1)

    async def compacted() -> None:
        assert isinstance(await refused(lab.etcd.changes(everywhere[0], newest - 3)), EtcdCompacted)

    await eventually(compacted)
    assert len(await collected(lab, everywhere[0], newest, newest)) == 1


async def test_the_leases_are_told_with_their_times(lab: Lab) -> None:
    everywhere = urls(lab.founders)
    begins = await lab.etcd.revision(everywhere)
    await lab.etcd.keep_for(everywhere, b"/leased", b"value", 600)
    ((event,),) = await collected(lab, everywhere[0], begins + 1, begins + 1)
    for only in (None, {event.now.lease, 4711}):
        found = {each.id: each for each in await lab.etcd.lease_times(everywhere, only)}
        assert found[event.now.lease].granted_ttl == 600
        assert 0 < found[event.now.lease].ttl <= 600
        assert 4711 not in found
    assert await lab.etcd.lease_times(everywhere, ()) == ()
    with pytest.raises(Unavailable):
        await lab.etcd.lease_times(())


async def test_a_snapshot_has_all_that_was_acknowledged_and_says_its_own_hash(lab: Lab, tmp_path: Path) -> None:
    await lab.write(5)
    newest = await lab.etcd.revision(urls(lab.founders))
    for address in (await follower(lab), await leader(lab)):
        async with aclosing(lab.etcd.snapshot(address.client_url)) as parts:
            content = b"".join([part async for part in parts])
        assert hashlib.sha256(content[:-32]).digest() == content[-32:]
        path = tmp_path / address.name
        path.write_bytes(content)
        cut_checksum(path)
        assert newest_revision(path) == newest


async def test_a_member_that_is_down_gives_nothing_and_ends_what_it_gave(lab: Lab) -> None:
    down = await follower(lab)
    newest = await lab.etcd.revision(urls(lab.founders))
    async with asyncio.timeout(60), aclosing(lab.etcd.changes(down.client_url, newest + 1)) as changes:
        coming = asyncio.ensure_future(anext(changes))
        await lab.write(1)
        await coming
        await lab.kill(down)
        with pytest.raises(Unavailable):
            await anext(changes)
    assert isinstance(await refused(lab.etcd.snapshot(down.client_url)), Unavailable)


async def learner(lab: Lab) -> MemberAddress:
    """A learner that has started."""
    spare = lab.spares[0]
    await eventually(lambda: lab.etcd.add_learner(urls(lab.founders), spare.peer_url))
    await lab.start(spare)

    async def serves() -> None:
        assert (await lab.etcd.status(spare.client_url)).is_learner

    await eventually(serves)
    return spare


async def applied(lab: Lab, address: MemberAddress, revision: int) -> None:
    """Return once a member has applied a revision."""

    async def has_it() -> None:
        assert (await lab.etcd.status(address.client_url)).revision >= revision

    await eventually(has_it)


async def snapshot_revision(lab: Lab, address: MemberAddress, path: Path) -> int:
    """The newest revision in a snapshot of one member."""
    async with aclosing(lab.etcd.snapshot(address.client_url)) as parts:
        path.write_bytes(b"".join([part async for part in parts]))
    cut_checksum(path)
    return newest_revision(path)


async def test_a_learner_gives_a_snapshot_of_what_it_has_applied_and_no_changes(lab: Lab, tmp_path: Path) -> None:
    spare = await learner(lab)
    error = await refused(lab.etcd.changes(spare.client_url, 1))
    assert isinstance(error, Unavailable)
    assert error.reason is Reason.NOT_FOR_LEARNERS
    await lab.write(5)
    newest = await lab.etcd.revision(urls(lab.founders))
    await applied(lab, spare, newest)
    assert await snapshot_revision(lab, spare, tmp_path / "db") == newest


async def test_without_a_quorum_a_member_gives_a_snapshot_of_what_it_has_applied(lab: Lab, tmp_path: Path) -> None:
    left, *lost = lab.founders
    await lab.write(5)
    newest = await lab.etcd.revision(urls(lab.founders))
    await applied(lab, left, newest)
    for each in lost:
        await lab.kill(each)

    async def leaderless() -> None:
        assert (await lab.etcd.status(left.client_url)).leader_id == 0

    await eventually(leaderless)
    await lab.etcd.flush(left.client_url)
    assert await snapshot_revision(lab, left, tmp_path / "db") == newest


async def test_a_learner_and_a_follower_write_what_they_have_to_their_disks_and_one_that_is_down_does_not(
    lab: Lab,
) -> None:
    spare, down = await learner(lab), await follower(lab)
    await lab.etcd.flush(spare.client_url)
    await lab.etcd.flush(down.client_url)
    await lab.kill(down)
    with pytest.raises(Unavailable):
        await lab.etcd.flush(down.client_url)


@asynccontextmanager
async def written_to(lab: Lab) -> AsyncIterator[None]:
    """Write for as long as this is entered."""

    async def write() -> None:
        while True:
            await lab.write(10)

    writing = asyncio.ensure_future(write())
    try:
        yield
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
async def test_what_a_learner_reports_once_it_is_flushed_is_in_its_database_however_it_ends(
    real_lab: RealLab,  # noqa: F811
    etcdutl: Path,  # noqa: F811
    tmp_path: Path,
    killed: bool,
) -> None:
    """A failover promises the revision that the standby reported, and begins with a copy of its database."""
    spare = await learner(real_lab)
    begins = await real_lab.etcd.revision(urls(real_lab.founders))
    async with written_to(real_lab):
        await applied(real_lab, spare, begins + 50)
        reported = (await real_lab.etcd.status(spare.client_url)).revision
        await real_lab.etcd.flush(spare.client_url)
        await (real_lab.kill(spare) if killed else real_lab.stop(spare))
    database = real_lab.database(spare)
    newest = newest_revision(database)
    assert newest >= reported > begins
    target = PurePosixPath(tmp_path / "restored")
    argv = restoring(
        PurePosixPath(etcdutl), PurePosixPath(database), target, name="m", peer="https://127.0.0.1:2380", token="t"
    )
    done = await asyncio.to_thread(
        subprocess.run, argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    assert restored_revision(done.stdout) == newest
    assert newest_revision(tmp_path / "restored/member/snap/db") == newest + BUMP
