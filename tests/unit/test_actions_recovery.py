"""The main cluster begins again: what is made of the survivor's data, and what of the epoch before is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.fake_plane import FakePlane
from support.golden import Golden
from support.new_epoch import A1, Jobs, begun
from support.resources import with_spec
from support.small_plane import NAME, small_plane

from quarterdeck.actions.addresses import candidates, peer_url
from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.status import write_memory
from quarterdeck.actions.units import _begins_without_data, token_of
from quarterdeck.api.plane.epochs import NewEpoch
from quarterdeck.components.etcd import BUMP
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.epochs import SurvivorOrigin
from quarterdeck.model.memory import KeptData
from quarterdeck.model.steps.clusters import DeleteKept, RestoreMember, WithdrawConsent
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import UnitState

RESTORE = RestoreMember(site="east", why="", replica="east-4", origin=SurvivorOrigin(replica="east-1"))


async def test_the_founders_data_is_made_of_the_survivors_database_with_revisions_that_nobody_has_seen() -> None:
    jobs = Jobs()
    small = await begun(jobs)
    await carry_out(small.plane, RESTORE, small.world)
    (argv,) = jobs.argv
    paths = {each.name: each.path for each in await small.sites["east"].volumes(A1)}
    source, target = paths[f"{NAME}-east-1"], paths[f"{NAME}-east-4"]
    assert argv[:4] == ("/programs/etcdutl", "snapshot", "restore", f"{source}/etcd/member/snap/db")
    uid = small.plane.resource.metadata.uid
    assert {
        f"--bump-revision={BUMP}",
        "--mark-compacted",
        f"--data-dir={target}/etcd",
        f"--initial-cluster=east-4={peer_url(small.record('east-4'))}",
        f"--initial-cluster-token={NAME}-{uid}-epoch-1",
    } <= set(argv)
    assert small.plane.memory.seeding is None


async def test_what_a_try_that_broke_off_left_is_made_again_and_the_survivors_data_is_as_it_was() -> None:
    small = await begun()
    site = small.sites["east"]
    await site.create_volume(A1, f"{NAME}-east-4", "standard")
    site.put_file(A1, f"{NAME}-east-4", "etcd/member/wal/half.wal", 1)
    await carry_out(small.plane, RESTORE, small.world)
    assert await site.list_volume(A1, f"{NAME}-east-4", "etcd/member/wal") == ()
    assert await site.list_volume(A1, f"{NAME}-east-1", "etcd/member/wal") == ("0.wal",)


async def test_a_restore_that_fails_is_told_in_its_own_words_and_is_not_taken_for_done(golden: Golden) -> None:
    small = await begun(Jobs(exit_code=1, output="Error: database is corrupt\n"))
    with golden.raises(Unavailable):
        await carry_out(small.plane, RESTORE, small.world)
    assert small.plane.memory.seeding is not None


@pytest.mark.parametrize(("latest", "restored"), [(4, False), (5, True), (6, True)])
async def test_a_database_that_ends_before_the_promised_revision_is_not_taken(
    latest: int, restored: bool, golden: Golden
) -> None:
    logged = f'info\tbumping latest revision\t{{"latest-revision": {latest}, "bump-amount": {BUMP}}}\n'
    small = await begun(Jobs(output=logged))
    if restored:
        await carry_out(small.plane, RESTORE, small.world)
    else:
        with golden.raises(Unavailable):
            await carry_out(small.plane, RESTORE, small.world)
    assert (small.plane.memory.seeding is None) is restored


async def test_a_member_that_cannot_write_to_its_disk_what_it_has_reports_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakePlane()
    plane = await fake.open()
    for name in ("east-2", "west-1"):
        fake.etcd.cluster.stop(fake.url(name))
    observer = EtcdObserver(plane=plane)
    fake.etcd.cluster.authenticates = True
    await observer.observe(plane.memory)
    assert len(observer.words) == 1, "one that refuses because of etcd's authentication has written all"

    async def flush(url: str) -> None:
        raise Unavailable(f"writing the database at {url}", "it does not answer")

    monkeypatch.setattr(fake.etcd, "flush", flush)
    await observer.observe(plane.memory)
    assert observer.words == ()


async def test_without_the_survivors_volume_or_room_for_a_copy_nothing_is_made(golden: Golden) -> None:
    small = await begun()
    site = small.sites["east"]
    site.put_file(A1, f"{NAME}-east-1", "etcd/member/snap/db", 1 << 50)
    with golden.raises(Unavailable):
        await carry_out(small.plane, RESTORE, small.world)
    await site.delete_volume(A1, f"{NAME}-east-1")
    with golden.raises(Unavailable):
        await carry_out(small.plane, RESTORE, small.world)


async def test_the_data_of_a_member_that_has_started_is_never_made_again(golden: Golden) -> None:
    small = await begun()
    memory = small.plane.memory.with_replica("east-4", lambda each: replace(each, started=True))
    await write_memory(small.plane, memory)
    with golden.raises(PreconditionFailed):
        await carry_out(small.plane, RESTORE, small.world)


async def test_a_founder_that_has_lost_its_copy_does_not_found_an_empty_cluster() -> None:
    """Any other founder that never was healthy begins without data."""
    small = await begun(restored=True)
    plane, founder = small.plane, small.record("east-4")
    assert not _begins_without_data(plane, founder, Cluster.MAIN)
    assert _begins_without_data(plane, founder, Cluster.EVENTS)
    await write_memory(plane, replace(plane.memory, seed=None))
    assert _begins_without_data(plane, founder, Cluster.MAIN)


async def test_nobody_asks_members_of_an_epoch_that_is_over_and_its_token_is_no_longer_used() -> None:
    small = await begun()
    assert [each.name for each in candidates(small.plane)] == ["east-4"]
    assert token_of(small.plane, Cluster.MAIN).endswith("-epoch-1")
    first = await small_plane()
    assert token_of(first.plane, Cluster.MAIN) == f"{NAME}-{first.plane.resource.metadata.uid}"


@pytest.mark.parametrize(
    ("replica", "component", "kills"),
    [
        ("east-1", Component.APISERVER, True),
        ("east-1", Component.CONTROLLER_MANAGER, True),
        ("east-1", Component.ETCD, False),
        ("east-2", Component.ETCD, False),
        ("east-3", Component.ETCD, True),
    ],
)
async def test_what_is_of_an_epoch_that_is_over_is_killed_but_for_etcd_which_writes_what_may_be_copied(
    replica: str, component: Component, kills: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = await begun()
    killed: list[bool] = []

    async def stop_unit(machine: str, unit: str, *, kill: bool = False) -> None:
        assert unit == f"{NAME}-{replica}-{component}"
        killed.append(kill)

    monkeypatch.setattr(small.sites["east"], "stop_unit", stop_unit)
    await carry_out(small.plane, StopUnit(site="east", why="", replica=replica, component=component), small.world)
    assert killed == [kills]


async def test_the_data_of_a_former_epoch_outlives_its_replica_and_goes_with_the_plane() -> None:
    small = await begun(restored=True)
    site = small.sites["east"]
    await carry_out(small.plane, ReleaseReplica(site="east", why="", replica="east-1", keep=True), small.world)
    assert await site.list_volume(A1, f"{NAME}-east-1", "etcd/member/wal") == ("0.wal",)
    assert small.plane.memory.kept == (KeptData(site="east", machine=A1, replica="east-1"),)
    assert all(unit.state is UnitState.STOPPED for unit in await site.units(A1))
    await carry_out(small.plane, DeleteKept(site="east", why="", replica="east-1", machine=A1), small.world)
    assert f"{NAME}-east-1" not in {each.name for each in await site.volumes(A1)}
    assert small.plane.memory.kept == ()


async def test_members_that_are_left_without_a_quorum_speak_for_themselves() -> None:
    fake = FakePlane()
    plane = await fake.open()
    observer = EtcdObserver(plane=plane)
    await observer.observe(plane.memory)
    assert observer.words == ()
    for name in ("east-2", "west-1"):
        fake.etcd.cluster.stop(fake.url(name))
    assert await observer.observe(plane.memory) is None
    (word,) = observer.words
    assert (word.replica, word.follows, set(word.voters)) == ("east-1", False, {"east-1", "east-2", "west-1"})
    assert word.applied == word.committed > 0


async def test_a_learner_that_is_left_speaks_for_itself_and_does_not_say_who_votes() -> None:
    fake = FakePlane()
    plane = await fake.open()
    for node in fake.etcd.cluster.nodes:
        node.learner = node.address is not None and node.address.name == "west-1"
    for name in ("east-1", "east-2"):
        fake.etcd.cluster.stop(fake.url(name))
    observer = EtcdObserver(plane=plane)
    assert await observer.observe(plane.memory) is None
    (word,) = observer.words
    assert (word.replica, word.learner, word.voters) == ("west-1", True, ())


async def test_the_word_for_an_epoch_goes_and_one_for_another_stays() -> None:
    small = await begun()
    small.plane.resource = await small.plane.store.update(with_spec(small.plane.resource, new_epoch=NewEpoch(epoch=3)))
    await carry_out(small.plane, WithdrawConsent(site="", why="", epoch=2), small.world)
    assert small.plane.resource.spec.new_epoch == NewEpoch(epoch=3)
    await carry_out(small.plane, WithdrawConsent(site="", why="", epoch=3), small.world)
    assert small.plane.resource.spec.new_epoch is None
