"""An edge between which addresses float goes only where no plane needs it, as far as all planes there are seen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from model.worlds import empty, settled
from support.golden import Golden
from support.host_sites import HostSites, host, host_site

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.app import Quarterdeck, Requester
from quarterdeck.app.site import hosts as site_hosts
from quarterdeck.drivers.sites import OpenSites
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict
from quarterdeck.model.balancers import EdgeFact
from quarterdeck.model.world import World
from quarterdeck.planner.simulated import observe

ALL = ("one1", "two2", "three3")
FLOATS = {"floatingAddresses": ["192.0.2.100"]}
RACK = host_site(*(host(name, roles=["edge"]) for name in ALL), host("four4"), edge=FLOATS)


def served(*leads: str) -> World:
    """A plane that serves at east by three edges, of which these lead somewhere."""
    world = observe(settled(empty("east", 3)))
    edges = tuple(EdgeFact(name=each, leads=each in leads) for each in ALL)
    return replace(world, balancers=(replace(world.balancer("east"), edges=edges),))


class Looks:
    """What is seen of each plane of the site; of ``busy`` ones an operation is under way."""

    def __init__(self) -> None:
        self.worlds: dict[str, World] = {}
        self.busy: dict[str, str] = {}
        self.asked: list[str] = []

    async def __call__(self, _: Home, name: str) -> SimpleNamespace:
        self.asked.append(name)
        operation = SimpleNamespace(metadata=SimpleNamespace(name=self.busy[name])) if name in self.busy else None
        return SimpleNamespace(world=self.worlds[name], operation=operation)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    found = Looks()
    monkeypatch.setattr(site_hosts, "look", found)
    return found


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=Requester(name="ann@desk")) as made:
        made._home.sites = OpenSites(made._home.folder, {"ssh": lambda _, __: HostSites()})
        await made.sites.add(RACK)
        yield made


async def planes(face: Quarterdeck, looks: Looks, **worlds: World) -> None:
    for name, world in worlds.items():
        await face._home.store.create(new_control_plane(name, site="rack"))
        looks.worlds[name] = world


async def test_an_edge_goes_where_no_plane_uses_the_site(face: Quarterdeck, looks: Looks) -> None:
    await face._home.store.create(new_control_plane("away", site="east"))
    assert (await face.sites.require_spare("rack", "one1")).name == "one1"
    assert looks.asked == [], "a plane elsewhere is not asked"


async def test_an_edge_goes_where_every_plane_is_served_by_the_others(face: Quarterdeck, looks: Looks) -> None:
    await planes(face, looks, demo=served(*ALL), other=served("one1", "two2"))
    assert (await face.sites.require_spare("rack", "one1")).name == "one1"
    assert looks.asked == ["demo", "other"]


async def test_an_edge_stays_where_the_others_lead_nowhere_for_any_plane(
    face: Quarterdeck, looks: Looks, golden: Golden
) -> None:
    await planes(face, looks, demo=served(*ALL), other=served("one1"))
    with golden.raises(Conflict):
        await face.sites.require_spare("rack", "one1")
    assert (await face.sites.require_spare("rack", "two2")).name == "two2", "nobody is led there"


async def test_an_edge_stays_where_nobody_knows_what_the_others_do(
    face: Quarterdeck, looks: Looks, golden: Golden
) -> None:
    unseen = served(*ALL)
    dark = replace(unseen, balancers=(replace(unseen.balancer("east"), reachable=False),))
    await planes(face, looks, demo=dark)
    with golden.raises(Conflict):
        await face.sites.require_spare("rack", "one1")


async def test_an_edge_stays_while_a_plane_is_being_changed(face: Quarterdeck, looks: Looks, golden: Golden) -> None:
    await planes(face, looks, demo=served(*ALL), other=served(*ALL))
    looks.busy["other"] = "other-migrate-1"
    with golden.raises(Conflict):
        await face.sites.require_spare("rack", "one1")


async def test_no_plane_is_asked_for_a_host_that_is_no_edge(face: Quarterdeck, looks: Looks) -> None:
    other = host_site(*(host(name, roles=["edge"]) for name in ALL), host("four4"), host("five5"), edge=FLOATS)
    await face.sites.apply(other)
    await planes(face, looks, demo=served("one1"))
    assert (await face.sites.require_spare("rack", "five5")).name == "five5"
    assert looks.asked == []
