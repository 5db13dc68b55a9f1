"""Backups are verified when it is due, and a damaged one is followed by a new full backup."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from fakes.objects import MemoryObjects
from support.backup_facts import VERIFIED
from support.recording_lab import PREFIX, RecordingLab, until

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.backup import BackupSettings
from quarterdeck.backup.chain import BackupMoment, Chain, KeyHash
from quarterdeck.backup.recording.policy import FullReason
from quarterdeck.backup.verifications import VerificationStore, VerifiedMoment, due_at
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.engine.background import backup_verification
from quarterdeck.engine.background.backup_verification import BackupVerifier
from quarterdeck.engine.workspace.backups import OpenBackups
from quarterdeck.errors import Corrupt, QuarterdeckError, Unavailable

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_the_first_one_is_due_soon_after_the_first_backup_and_others_after_the_interval() -> None:
    assert due_at((), NOW, DAY) == NOW + timedelta(minutes=10)
    assert due_at((), NOW, timedelta(minutes=2)) == NOW + timedelta(minutes=2)
    done = [VERIFIED.model_copy(update={"at": NOW + each * DAY}) for each in (2, 1)]
    assert due_at(done, NOW, DAY) == NOW + 3 * DAY


async def test_they_are_listed_in_order_and_only_the_newest_are_kept() -> None:
    objects = MemoryObjects()
    kept = VerificationStore(objects, PREFIX)
    for number in range(60):
        objects.now = NOW + timedelta(minutes=number)
        await kept.add(VERIFIED.model_copy(update={"revision": 1000 - number, "at": objects.now}))
    await objects.create(f"{PREFIX}/verifications/main-damaged.json", b"{")
    objects.now += DAY
    found = await kept.list()
    assert [each.revision for each in found] == [1000 - each for each in range(60)]
    await kept.prune()
    assert [each.revision for each in await kept.list()] == [1000 - each for each in range(11, 60)]


async def test_verifications_that_the_store_holds_are_deleted_later() -> None:
    objects = MemoryObjects()
    objects.held_for = DAY
    kept = VerificationStore(objects, PREFIX)
    for number in range(60):
        await kept.add(VERIFIED.model_copy(update={"revision": number}))
    await kept.prune()
    assert len(await kept.list()) == 60
    objects.now += DAY
    await kept.prune()
    assert len(await kept.list()) == 50


@dataclass
class Reported:
    """What a verifier reports."""

    counts: list[tuple[int, int]] = field(default_factory=list)
    moments: list[VerifiedMoment] = field(default_factory=list)
    damages: list[QuarterdeckError] = field(default_factory=list)
    failures: list[QuarterdeckError] = field(default_factory=list)

    def stored_now(self, fulls: int, size_bytes: int) -> None:
        self.counts.append((fulls, size_bytes))

    def verified(self, verification: VerifiedMoment) -> None:
        self.moments.append(verification)

    def damaged(self, error: QuarterdeckError) -> None:
        self.damages.append(error)

    def not_verified(self, error: QuarterdeckError) -> None:
        self.failures.append(error)


class VerifierLab:
    """A cluster that is recorded, and its verifier. ``outcomes`` are the first ones, in place of a real etcd's."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.recording = RecordingLab(folder)
        self.reported = Reported()
        self.outcomes: list[QuarterdeckError] = []
        self.now = datetime.now(UTC) + DAY
        self.plane = new_control_plane("alpha", site="east").with_spec(backup=BackupSettings(enabled=True))
        self.asked: list[tuple[BackupMoment, KeyHash | None]] = []
        self.listings = 0
        listed = VerificationStore.list

        async def counted(store: VerificationStore) -> tuple[VerifiedMoment, ...]:
            self.listings += 1
            return await listed(store)

        patch.setattr(VerificationStore, "list", counted)
        patch.setattr(backup_verification, "_COUNTING", 0.002)
        patch.setattr(backup_verification, "_RETRYING", 0.004)
        patch.setattr(backup_verification, "verify_moment", self.verify)

    async def verify(
        self,
        home: object,
        upstream: object,
        plane: ControlPlane,
        backups: OpenBackups,
        chain: Chain,
        moment: BackupMoment,
        live: KeyHash | None,
    ) -> VerifiedMoment:
        self.asked.append((moment, live))
        if self.outcomes:
            raise self.outcomes.pop(0)
        found = VERIFIED.model_copy(update={"revision": moment.revision, "at": self.now, "live": live is not None})
        await VerificationStore(backups.store, backups.folder).add(found)
        return found

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ChainWriter]:
        """A recorder and the verifier, for the block; one link of each process is written by one writer."""
        writer = self.recording.writer()
        recorder = self.recording.recorder(writer=writer)
        backups = OpenBackups(
            store=self.recording.store,
            url="memory://",
            folder=PREFIX,
            chains=cast("Any", None),
            deposit=self.recording.deposit,
            keys=cast("Any", None),
        )
        verifier = BackupVerifier(
            home=cast("Any", None),
            upstream=cast("Any", None),
            plane=lambda: self.plane,
            backups=backups,
            writer=writer,
            subject=self.recording.subject(),
            renew=recorder.renew,
            events=self.reported,
            now=lambda: self.now,
        )
        tasks = [asyncio.create_task(recorder.run()), asyncio.create_task(verifier.run())]
        try:
            await self.recording.all_stored(recorder)
            yield writer
            assert not any(each.done() for each in tasks), tasks
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VerifierLab:
    return VerifierLab(tmp_path, monkeypatch)


async def test_the_newest_moment_is_verified_with_the_hash_of_a_member_and_again_after_the_interval(
    lab: VerifierLab,
) -> None:
    async with lab.running():
        await until(lambda: lab.reported.moments, "one is verified")
        (moment, live) = lab.asked[0]
        assert live is not None
        assert live.revision == moment.revision == lab.reported.moments[0].revision
        looks = len(lab.reported.counts)
        await until(lambda: len(lab.reported.counts) > looks + 5, "it looked again")
        assert len(lab.asked) == 1, "the next one is not due"
        assert lab.listings == 1, "each is an object of its own, which costs a request"
        lab.now += DAY
        await until(lambda: len(lab.asked) == 2, "the next one is due")
    assert lab.reported.counts[-1][0] == 1
    assert lab.reported.counts[-1][1] > 0
    assert lab.reported.damages == lab.reported.failures == []


async def test_none_is_verified_where_the_spec_says_so(lab: VerifierLab) -> None:
    lab.plane = lab.plane.with_spec(backup=BackupSettings(enabled=True, verify_every=None))
    async with lab.running():
        await until(lambda: len(lab.reported.counts) > 5, "it looked")
    assert lab.asked == []


async def test_a_damaged_backup_is_followed_by_a_new_full_one_which_is_verified(lab: VerifierLab) -> None:
    lab.outcomes = [Corrupt("checking", "the hash differs"), Corrupt("checking", "the hash differs again")]
    async with lab.running() as writer:
        lab.recording.cluster.write(3)
        await until(lambda: len(lab.reported.damages) == 1, "it is found")
        lab.recording.cluster.write(3)
        await until(lambda: lab.reported.moments, "another one passes")
        last = writer.chain.fulls[-1]
    assert [reason for _, reason in lab.recording.events.fulls[1:]] == [FullReason.DAMAGED] * 2
    assert len(lab.reported.damages) == 2
    assert lab.asked[-1][0].full == last


async def test_what_cannot_be_verified_is_reported_and_tried_again(lab: VerifierLab) -> None:
    lab.outcomes = [QuarterdeckError("verifying", "no etcdutl"), Unavailable("verifying", "no answer")]
    async with lab.running():
        await until(lambda: lab.reported.moments, "it is verified at last")
    assert [str(each) for each in lab.reported.failures] == ["verifying: no etcdutl"], "the recorder reports the store"
    assert lab.reported.damages == []
