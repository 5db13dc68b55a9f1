"""Full backups come from the standby of a plane where that has every acknowledged write, and else from a voter."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster
from support.recording_lab import QUICK, RecordingLab, address, until
from typing_extensions import override

from quarterdeck.backup.recording.policy import FullReason
from quarterdeck.etcd.facts import KeyEvent, MemberReport

STANDBY = address("standby")


class Asked(FakeEtcd):
    """An etcd that notes which members gave a snapshot and changes. ``lacks``: how many of the newest revisions are
    missing from the snapshots of the standby.
    """

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(cluster)
        self.snapshots: list[str] = []
        self.watched: list[str] = []
        self.looks = 0
        self.lacks = 0

    @override
    async def status(self, url: str, *, within: float | None = None) -> MemberReport:
        self.looks += url == STANDBY.client_url
        return await super().status(url, within=within)

    @override
    async def snapshot(self, url: str) -> AsyncGenerator[bytes, None]:
        self.snapshots.append(url)
        if url == STANDBY.client_url and self.lacks:
            self.cluster.lag(url, self.lacks)
        async for part in super().snapshot(url):
            yield part

    @override
    async def changes(self, url: str, start_revision: int) -> AsyncGenerator[tuple[KeyEvent, ...], None]:
        self.watched.append(url)
        async for events in super().changes(url, start_revision):
            yield events


@pytest.fixture
async def lab(tmp_path: Path) -> RecordingLab:
    """A cluster with a standby that has all data."""
    made = RecordingLab(tmp_path)
    made.etcd = asked = Asked(made.cluster)
    await asked.add_learner(made.urls, STANDBY.peer_url)
    made.cluster.start(STANDBY)
    made.addresses.append(STANDBY)
    made.standbys.append(STANDBY.client_url)
    return made


def asked(lab: RecordingLab) -> Asked:
    assert isinstance(lab.etcd, Asked)
    return lab.etcd


async def test_a_full_backup_comes_from_the_standby_and_increments_come_from_a_voter(lab: RecordingLab) -> None:
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.cluster.write(3)
        await lab.all_stored(recorder)
        recorder.renew(FullReason.DUE)
        await until(lambda: len(lab.events.fulls) == 2)
        lab.cluster.write(3)
        await lab.all_stored(recorder)
    assert asked(lab).snapshots == [STANDBY.client_url] * 2
    assert asked(lab).watched
    assert STANDBY.client_url not in asked(lab).watched
    assert lab.events.gaps == []
    fulls = (await lab.chain()).fulls
    assert all(each.hash is not None for each in fulls), "a voter has reported it: learners do not"
    for revision in (begins, lab.cluster.revision):
        rows, _ = await lab.restored(revision)
        assert rows == lab.rows(revision)


async def test_a_standby_that_catches_up_in_time_is_waited_for(lab: RecordingLab) -> None:
    lab.cluster.lag(STANDBY.client_url, 2)
    async with lab.recording() as recorder:
        await until(lambda: asked(lab).looks >= 2)
        lab.cluster.lag(STANDBY.client_url, 0)
        await lab.all_stored(recorder)
    assert asked(lab).snapshots == [STANDBY.client_url]


@pytest.mark.parametrize("how", ["behind", "down", "a snapshot without the newest writes"])
async def test_where_the_standby_lacks_an_acknowledged_write_a_follower_is_asked(lab: RecordingLab, how: str) -> None:
    lab.pace = replace(QUICK, apply_seconds=0.01)
    match how:
        case "behind":
            lab.cluster.lag(STANDBY.client_url, 2)
        case "down":
            lab.cluster.stop(STANDBY.client_url)
        case _:
            asked(lab).lacks = 2
    newest = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
    voters = [each for each in asked(lab).snapshots if each != STANDBY.client_url]
    assert len(voters) == 1
    assert not (await lab.etcd.status(voters[0])).is_leader
    ((revision, reason),) = lab.events.fulls
    assert revision >= newest
    assert reason is FullReason.FIRST
