"""What ``etcd remove-member`` prints, asks and refuses."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from fakes.etcd_cluster import Member
from support.cli_lab import Cli
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.app.etcd import strays
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.world import World

ID = "8e9e05c52164694d"
URL = "https://10.99.0.9:2380"


@dataclass(frozen=True)
class Lab:
    """Plane ``demo``, whose etcd a person has added a voter to."""

    cli: Cli
    fake: FakePlane

    @property
    def members(self) -> list[str]:
        return [f"{node.id:x}" for node in self.fake.etcd.cluster.nodes]


@pytest.fixture
def lab(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab(cli, FakePlane())
    made.fake.etcd.cluster.nodes.append(Member(id=int(ID, 16), peer_url=URL, learner=False))
    made.cli.plane()

    async def plane(*_: object) -> Plane:
        return await made.fake.open()

    async def observer_of(plane: Plane) -> object:
        async def observe() -> World:
            membership = await EtcdObserver(plane=plane).observe(plane.memory)
            return World(slots=(), memory=plane.memory, now=0.0, plane_name=plane.name, membership=membership)

        return SimpleNamespace(observe=observe)

    monkeypatch.setattr(Home, "plane", plane)
    monkeypatch.setattr(strays, "observer_of", observer_of)
    return made


def test_it_says_what_is_removed_and_how_many_voters_are_left(lab: Lab, golden: Golden) -> None:
    result = lab.cli("etcd", "remove-member", "demo", ID, "--yes")
    assert (result.code, result.err) == (0, ""), result
    golden(result.out.splitlines())
    assert ID not in lab.members


def test_it_asks_and_without_an_answer_nothing_is_removed(lab: Lab, golden: Golden) -> None:
    result = lab.cli("etcd", "remove-member", "demo", ID)
    assert result.code != 0
    golden(result.err.splitlines())
    assert ID in lab.members


def test_a_replicas_member_is_refused_with_what_to_do_instead(lab: Lab, golden: Golden) -> None:
    result = lab.cli("etcd", "remove-member", "demo", "1001", "--yes")
    assert (result.code, result.out) == (5, ""), result
    golden(result.err.splitlines())
    assert len(lab.members) == 4


def test_an_id_that_is_not_listed_is_refused_with_those_that_may_be_meant(lab: Lab, golden: Golden) -> None:
    result = lab.cli("etcd", "remove-member", "demo", "99", "--yes")
    assert result.code != 0
    golden(result.err.splitlines())


def test_where_the_others_would_be_no_quorum_it_is_refused(lab: Lab, golden: Golden) -> None:
    other = Member(id=0x77, peer_url="https://10.99.0.8:2380", learner=False, up=True, settled=True)
    lab.fake.etcd.cluster.nodes.append(other)
    lab.fake.etcd.cluster.stop(lab.fake.url("west-1"))
    result = lab.cli("etcd", "remove-member", "demo", "77", "--yes")
    assert result.code == 5, result
    golden(result.err.splitlines())
    assert len(lab.members) == 5
