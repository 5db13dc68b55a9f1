"""Members whose data differs: who is named, and where nobody can say whose data is right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from fakes.etcd import FakeEtcd
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.app import MemberHash
from quarterdeck.cli.commands.etcd import _advice
from quarterdeck.engine.observation import data_comparison
from quarterdeck.engine.observation.data_comparison import Compared, compare, compare_all, same_data
from quarterdeck.engine.observation.move import Move
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import KeySpaceHash
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.findings import Verdict
from quarterdeck.model.memory import Memory


def of(**hashes: int | None) -> Compared:
    return Compared(cluster=Cluster.MAIN, revision=7, hashes=hashes)


@pytest.mark.parametrize(
    ("found", "differ", "torn"),
    [
        pytest.param(of(a=1, b=1, c=1), (), False, id="all the same"),
        pytest.param(of(a=1, b=1, c=2), ("c",), False, id="one of three"),
        pytest.param(of(a=1, b=2, c=3), (), True, id="each another"),
        pytest.param(of(a=1, b=2), (), True, id="one to one"),
        pytest.param(of(a=1, b=2, c=None), (), True, id="one to one, and the third does not say"),
        pytest.param(of(a=1, b=1, c=None), (), False, id="one does not say"),
        pytest.param(of(a=1, b=1, c=2, d=None, e=None), (), True, id="two of five are no majority"),
        pytest.param(of(a=1, b=1, c=1, d=2, e=3), ("d", "e"), False, id="two of five"),
        pytest.param(of(a=1), (), False, id="alone"),
        pytest.param(of(a=None), (), False, id="nobody says"),
    ],
)
def test_who_differs_from_most_of_all_voters_is_named_and_nobody_where_there_is_no_majority(
    found: Compared, differ: tuple[str, ...], torn: bool
) -> None:
    assert (found.differ, found.torn) == (differ, torn)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePlane:
    monkeypatch.setattr(data_comparison, "_BETWEEN", 0.0)
    return FakePlane()


async def test_a_member_with_other_data_is_found(fake: FakePlane) -> None:
    plane = await fake.open()
    assert not (await compare(plane)).differ
    fake.etcd.cluster.at(fake.url("east-2")).hash = 2
    found = await compare(plane)
    assert (found.differ, found.torn) == (("east-2",), False)
    assert found.hashes == {"east-1": 1, "east-2": 2, "west-1": 1}


async def test_a_learner_has_no_say_and_a_voter_that_is_down_counts(fake: FakePlane) -> None:
    plane = await fake.open()
    fake.etcd.cluster.nodes[0].learner = True
    fake.etcd.cluster._elect()
    fake.etcd.cluster.at(fake.url("east-2")).hash = 2
    assert (await compare(plane)).torn
    fake.etcd.cluster.nodes[0].learner = False
    fake.etcd.cluster.stop(fake.url("west-1"))
    found = await compare(plane)
    assert found.hashes == {"east-1": 1, "east-2": 2, "west-1": None}
    assert found.torn


async def test_one_that_has_forgotten_more_history_or_lags_for_a_moment_does_not_differ(
    fake: FakePlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane, asked = await fake.open(), 0
    real = FakeEtcd.hash_keys

    async def hash_keys(etcd: FakeEtcd, url: str, revision: int) -> KeySpaceHash:
        nonlocal asked
        asked += 1
        answer = await real(etcd, url, revision)
        forgets = url == fake.url("east-2") and asked < 6
        return KeySpaceHash(hash=9, hash_revision=0, compact_revision=5, revision=7) if forgets else answer

    monkeypatch.setattr(FakeEtcd, "hash_keys", hash_keys)
    assert (await compare(plane)).hashes == {"east-1": 1, "east-2": 1, "west-1": 1}
    monkeypatch.setattr(FakeEtcd, "hash_keys", real)
    fake.etcd.cluster.lag(fake.url("east-2"), 4)
    assert (await compare(plane)).hashes == {"east-1": 1, "east-2": None, "west-1": 1}


async def test_who_differs_once_and_not_again_does_not_differ(fake: FakePlane, monkeypatch: pytest.MonkeyPatch) -> None:
    plane, asked = await fake.open(), 0
    real = FakeEtcd.hash_keys

    async def hash_keys(etcd: FakeEtcd, url: str, revision: int) -> KeySpaceHash:
        nonlocal asked
        asked += 1
        fake.etcd.cluster.at(fake.url("east-2")).hash = 2 if asked <= 3 else 1
        return await real(etcd, url, revision)

    monkeypatch.setattr(FakeEtcd, "hash_keys", hash_keys)
    assert not (await compare(plane)).differ
    assert asked > 3


async def test_without_a_quorum_nothing_is_compared(fake: FakePlane) -> None:
    plane = await fake.open()
    for name in ("east-1", "east-2"):
        fake.etcd.cluster.stop(fake.url(name))
    with pytest.raises(Unavailable):
        await compare_all(plane)


async def test_a_plane_that_was_not_founded_yet_is_not_compared(golden: Golden) -> None:
    fake = FakePlane()
    fake.memory = Memory()
    with golden.raises(Unavailable):
        await compare_all(await fake.open())


def test_a_check_says_what_to_do_about_each_member(golden: Golden) -> None:
    def row(name: str, has: int | None, *, same: bool | None) -> MemberHash:
        return MemberHash(cluster="etcd", replica=name, revision=7, hash=has, same=same)

    well = (row("east-1", 1, same=True), row("east-2", 1, same=True))
    assert _advice("demo", well) == []
    (advice,) = _advice("demo", (*well, row("east-3", 2, same=False)))
    golden(advice)
    (torn,) = _advice("demo", (row("east-1", 1, same=None), row("east-2", 2, same=None)))
    golden(torn)


async def test_nobody_moves_to_copies_of_data_that_members_do_not_agree_on(fake: FakePlane, golden: Golden) -> None:
    plane, spec = await fake.open(), SimpleNamespace(replace_replicas=("east-1",))
    move = cast("Move", SimpleNamespace(plane=plane, wanted=SimpleNamespace(spec=spec)))
    east_1, east_2, west_1 = fake.etcd.cluster.nodes
    assert (await same_data(move)).verdict is Verdict.OK
    east_1.hash = 2
    assert (await same_data(move)).verdict is Verdict.OK, "it is to be exchanged anyway"
    east_1.hash, east_2.hash = 1, 2
    refused = await same_data(move)
    assert refused.verdict == Verdict.REFUSE
    golden(refused.next_step)
    west_1.hash = 3
    refused = await same_data(move)
    assert refused.verdict == Verdict.REFUSE
    golden(refused.next_step)
    east_2.hash = west_1.hash = 1
    fake.etcd.cluster.stop(fake.url("west-1"))
    golden((await same_data(move)).seen)
