"""The founder of an epoch gets the data of a backup: over a volume of its own, which never stays."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from fakes.site import FakeSite
from fakes.site_machines import Behaviour
from support.golden import Golden
from support.new_epoch import A1, Jobs, begun
from support.small_plane import NAME, SmallPlane

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.status import write_memory
from quarterdeck.actions.units import _begins_without_data
from quarterdeck.components.etcd import BUMP
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.clusters import Cluster, ClusterMemory, MemberMemory
from quarterdeck.model.epochs import BackupOrigin, Seed
from quarterdeck.model.steps.clusters import RestoreMember

ORIGIN = BackupOrigin(store="s3://planes", folder="alpha/1", epoch=0)
RESTORE = RestoreMember(site="east", why="", replica="east-4", origin=ORIGIN)
SCRATCH = f"{NAME}-east-4-restore"


async def from_backup(folder: Path, jobs: Jobs | None = None) -> SmallPlane:
    """A plane whose second epoch is about to begin with east-4, from revision 5 of a backup."""
    small = await begun(jobs)
    database = folder / "db"

    async def built(origin: BackupOrigin, revision: int, cluster: Cluster) -> Path:
        assert (origin, revision, cluster) == (ORIGIN, 5, Cluster.MAIN)
        database.write_bytes(b"the database")
        return database

    small.plane.database = built
    await write_memory(small.plane, replace(small.plane.memory, seed=Seed(**SEED)))
    return replace(small, world=replace(small.world, memory=small.plane.memory))


SEED: dict[str, Any] = {"origin": ORIGIN, "founder": "east-4", "revision": 5, "seen": 7}


async def volumes(site: FakeSite) -> set[str]:
    return {each.name for each in await site.volumes(A1)}


async def test_the_founders_data_is_made_of_the_copied_database_and_the_copy_is_deleted(tmp_path: Path) -> None:
    jobs = Jobs()
    small = await from_backup(tmp_path, jobs)
    site = small.sites["east"]
    await carry_out(small.plane, RESTORE, small.world)
    (argv,) = jobs.argv
    target = {each.name: each.path for each in await site.volumes(A1)}[f"{NAME}-east-4"]
    source = PurePosixPath(argv[3])
    assert (source.parent.name, source.name) == (SCRATCH, "db")
    assert not (tmp_path / "db").exists(), "it holds the plane's secrets"
    assert {f"--bump-revision={BUMP}", "--mark-compacted", f"--data-dir={target}/etcd"} <= set(argv)
    assert SCRATCH not in await volumes(site)
    assert small.plane.memory.seeding is None
    assert await site.list_volume(A1, f"{NAME}-east-1", "etcd/member/wal") == ("0.wal",), "former data stays"


async def test_the_events_of_the_founder_get_a_volume_of_their_own_and_another_token(tmp_path: Path) -> None:
    jobs = Jobs()
    small = await from_backup(tmp_path, jobs)
    site, plane = small.sites["east"], small.plane
    origin, database = replace(ORIGIN, epoch=2), tmp_path / "events.db"

    async def built(asked: BackupOrigin, revision: int, cluster: Cluster) -> Path:
        assert (asked, revision, cluster) == (origin, 9, Cluster.EVENTS)
        database.write_bytes(b"the events")
        return database

    plane.database = built
    memory = plane.memory
    member = MemberMemory(epoch=3, storage_class="standard")
    seed = Seed(origin=origin, founder="east-4", revision=9, seen=0)
    replicas = tuple(replace(each, events=member) if each.name == "east-4" else each for each in memory.replicas)
    events = ClusterMemory(epoch=3, bootstrap=("east-4",), seed=seed)
    await write_memory(plane, replace(memory, replicas=replicas, events=events, seed=Seed(**SEED, restored=True)))
    await settle_seats(plane)
    await carry_out(plane, replace(RESTORE, origin=origin, cluster=Cluster.EVENTS), small.world)
    (argv,) = jobs.argv
    target = {each.name: each.path for each in await site.volumes(A1)}[f"{NAME}-east-4-events-3"]
    uid = plane.resource.metadata.uid
    assert {f"--data-dir={target}/etcd", f"--initial-cluster-token={NAME}-{uid}-events-3"} <= set(argv)
    assert plane.memory.of(Cluster.EVENTS).seeding is None
    assert not database.exists()
    assert not _begins_without_data(plane, plane.memory.replica("east-4"), Cluster.EVENTS)
    created = replace(plane.memory, events=replace(plane.memory.events, created=True))
    await write_memory(plane, created)
    assert _begins_without_data(plane, plane.memory.replica("east-4"), Cluster.EVENTS), "another member is new"


async def test_what_an_interrupted_attempt_left_is_deleted_first(tmp_path: Path) -> None:
    small = await from_backup(tmp_path)
    site = small.sites["east"]
    for volume, file in ((SCRATCH, "half"), (f"{NAME}-east-4", "etcd/member/wal/half.wal")):
        await site.create_volume(A1, volume, "standard")
        site.put_file(A1, volume, file, 1)
    await carry_out(small.plane, RESTORE, small.world)
    assert SCRATCH not in await volumes(site)
    assert await site.list_volume(A1, f"{NAME}-east-4", "etcd/member/wal") == ()


async def test_a_restore_that_fails_is_not_taken_for_done_and_leaves_no_copy(tmp_path: Path, golden: Golden) -> None:
    jobs = Jobs(exit_code=1, output="Error: snapshot file is corrupt\n")
    small = await from_backup(tmp_path, jobs)
    with golden.raises(Unavailable):
        await carry_out(small.plane, RESTORE, small.world)
    assert SCRATCH not in await volumes(small.sites["east"])
    assert small.plane.memory.seeding is not None
    jobs.ends = Behaviour(exit_code=0)
    await carry_out(small.plane, RESTORE, small.world)
    assert small.plane.memory.seeding is None


async def test_without_room_for_the_copy_and_the_data_nothing_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    small = await from_backup(tmp_path)
    site = small.sites["east"]

    async def free_bytes(*_: object) -> int:
        return 2 * len(b"the database") - 1

    monkeypatch.setattr(site, "free_bytes", free_bytes)
    with golden.raises(Unavailable):
        await carry_out(small.plane, RESTORE, small.world)
    assert await volumes(site) == {f"{NAME}-east-1"}
    assert small.plane.memory.seeding is not None


async def test_a_backup_that_does_not_answer_touches_nothing(tmp_path: Path, golden: Golden) -> None:
    small = await from_backup(tmp_path)

    async def away(*_: object) -> Path:
        raise Unavailable("reading link 1 at s3://planes", "it does not answer", "quarterdeck retries")

    small.plane.database = away
    before = await volumes(small.sites["east"])
    with golden.raises(Unavailable):
        await carry_out(small.plane, RESTORE, small.world)
    assert await volumes(small.sites["east"]) == before


async def test_a_restore_that_is_interrupted_deletes_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = await from_backup(tmp_path)
    site, runs = small.sites["east"], asyncio.Event()

    async def run_job(*_: object) -> None:
        runs.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(site, "run_job", run_job)
    task = asyncio.create_task(carry_out(small.plane, RESTORE, small.world))
    await runs.wait()
    assert SCRATCH in await volumes(site)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert SCRATCH not in await volumes(site)
    assert small.plane.memory.seeding is not None


async def test_the_same_step_twice_gives_the_same_data_and_none_to_a_member_that_has_started(
    tmp_path: Path, golden: Golden
) -> None:
    jobs = Jobs()
    small = await from_backup(tmp_path, jobs)
    for _ in range(2):
        await write_memory(small.plane, replace(small.plane.memory, seed=Seed(**SEED)))
        await carry_out(small.plane, RESTORE, small.world)
    assert jobs.argv[0] == jobs.argv[1]
    memory = small.plane.memory.with_replica("east-4", lambda each: replace(each, started=True))
    await write_memory(small.plane, memory)
    with golden.raises(PreconditionFailed):
        await carry_out(small.plane, RESTORE, small.world)
    assert len(jobs.argv) == 2
