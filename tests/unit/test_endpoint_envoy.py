"""A load balancer whose address floats: whether what brings it there runs is seen with all else, and it is started."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import cast

import pytest
from fakes.site import FakeSite
from fakes.site_machines import Behaviour
from support.golden import Golden

from quarterdeck.components.credentials import KeyPair
from quarterdeck.components.traffic.envoy import BalancerSettings, BalancerTls
from quarterdeck.endpoint.balancers import envoy
from quarterdeck.endpoint.balancers.envoy import EnvoyBalancer, Floating
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.http import Answer, Http, NoAnswer
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.model.units import UnitFile, UnitSpec, UnitState, UnitStatus
from quarterdeck.sites.local.settings import LocalSiteSettings

EDGE, ROUTER = "east-edge", "keepalived"
OWN, FLOATS = "192.0.2.1", "192.0.2.100"
BACKENDS = {"r1": BackendAddress("192.0.2.11", 16443)}
TLS = BalancerTls(ca=b"", serving=KeyPair(certificate=b"", key=b""), manager="manager")


@dataclass
class Envoy:
    """What answers at the addresses of ``here``: it sends to what it was told last."""

    site: FakeSite
    here: set[str] = field(default_factory=lambda: {OWN, FLOATS})

    async def ask(self, method: str, origin: str, path: str, *, deadline: float, server: str | None = None) -> Answer:
        del method, deadline, server
        if origin.split("//")[1].split(":")[0] not in self.here:
            raise NoAnswer("nobody answers")
        if "stats" in path:
            return Answer(200, b'{"stats": []}')
        files = self.site._machines[EDGE].files
        document = next(json.loads(each.content) for path, each in files.items() if path.name == "backends.json")
        named = [each["endpoint"] for each in document["resources"][0]["endpoints"][0]["lb_endpoints"]]
        hosts = [{**each, "health_status": {}} for each in named]
        return Answer(200, json.dumps({"cluster_statuses": [{"name": "apiservers", "host_statuses": hosts}]}).encode())


@dataclass
class Edge:
    """An edge, with a file by which what has addresses there knows of it, and those of other planes."""

    site: FakeSite
    envoy: Envoy
    balancer: EnvoyBalancer
    floating: Floating

    async def router(self) -> UnitState:
        found = await self.site.units(EDGE)
        return next((each.state for each in found if each.name == ROUTER), UnitState.ABSENT)

    async def unrouted(self) -> str:
        return (await self.balancer.observe()).unrouted


class Behaves:
    """Whether what has addresses can run."""

    exits = False
    ending: tuple[str, ...] = (ROUTER,)

    def __call__(self, spec: UnitSpec) -> Behaviour:
        if self.exits and spec.name in self.ending:
            return Behaviour(exit_code=1, output="no address is left\n")
        return Behaviour()


@pytest.fixture
def behaves() -> Behaves:
    return Behaves()


@pytest.fixture
def edge(behaves: Behaves) -> Edge:
    site = FakeSite(LocalSiteSettings(name="east", zones=("a", "b"), edges=2), behave=behaves)
    folder = site.folder(EDGE, "demo-envoy")
    settings = BalancerSettings(
        unit="demo-envoy", binary=PurePosixPath("/envoy"), folder=folder, address=OWN, port=6443, status_port=26443
    )
    live = site.folder(EDGE, ROUTER) / "live"
    floating = Floating(
        own=FLOATS,
        unit=UnitSpec(name=ROUTER, argv=("/vrrp",)),
        watched=UnitFile(live / "demo", b"26443 6443\n"),
        named=EDGE,
        expected=(UnitFile(live / "other", b"26453 6453\n"),),
    )
    envoy = Envoy(site)
    balancer = EnvoyBalancer(
        site=site,
        machine=EDGE,
        settings=settings,
        tls=lambda: TLS,
        client=cast("Http", envoy),
        floating=floating,
        patience=0.3,
    )
    return Edge(site, envoy, balancer, floating)


async def test_whether_addresses_can_come_is_seen_in_the_look_at_the_site_and_asked_of_nobody(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    await edge.balancer.apply(BACKENDS)
    runs = await edge.site.facts()
    await edge.site.stop_unit(EDGE, ROUTER)
    stopped = await edge.site.facts()
    await edge.site.remove_unit(EDGE, ROUTER)
    absent = await edge.site.facts()

    async def units(_: FakeSite, machine: str) -> tuple[UnitStatus, ...]:
        raise AssertionError(f"{machine} is asked once more")

    monkeypatch.setattr(FakeSite, "units", units)
    for facts, why in (
        (runs, ""),
        (stopped, "keepalived does not run there"),
        (absent, "keepalived does not run there"),
    ):
        seen = await edge.balancer.observe(facts)
        assert (seen.running, seen.unrouted, set(seen.backends)) == (True, why, {"r1"})


def with_router(facts: SiteFacts, router: UnitStatus) -> SiteFacts:
    """The same look, but for that."""
    machines = tuple(
        replace(each, units=(*(unit for unit in each.units or () if unit.name != ROUTER), router))
        for each in facts.machines
    )
    return replace(facts, machines=machines)


async def test_what_is_just_being_stopped_may_be_on_its_way_out_and_what_is_refused_says_why(
    edge: Edge, golden: Golden
) -> None:
    await edge.balancer.apply(BACKENDS)
    facts = await edge.site.facts()
    stopping = with_router(facts, UnitStatus(name=ROUTER, state=UnitState.STOPPING))
    assert (await edge.balancer.observe(stopping)).unrouted == "", "whoever removes it is not done yet"
    refused = "192.0.2.100 is not allowed to be here"
    failed = with_router(facts, UnitStatus(name=ROUTER, state=UnitState.FAILED, refused=refused))
    golden((await edge.balancer.observe(failed)).unrouted)


async def test_nothing_is_missed_where_no_address_floats_or_no_load_balancer_runs(edge: Edge, golden: Golden) -> None:
    assert await edge.unrouted() == ""
    await edge.balancer.apply(BACKENDS)
    await edge.site.stop_unit(EDGE, ROUTER)
    assert await edge.unrouted()
    plain = replace(edge.balancer, floating=None)
    assert (await plain.observe()).unrouted == ""
    facts = await edge.site.facts()
    unheard = replace(facts, machines=tuple(replace(each, units=None) for each in facts.machines))
    with golden.raises(Unavailable):
        await edge.balancer.observe(unheard)


async def test_what_somebody_stopped_is_started_while_another_edge_keeps_the_address(edge: Edge) -> None:
    await edge.balancer.apply(BACKENDS)
    pid = next(each.pid for each in await edge.site.units(EDGE) if each.name == "demo-envoy")
    await edge.site.stop_unit(EDGE, ROUTER)
    await edge.site.remove_files(EDGE, tuple(each.path for each in edge.floating.expected))
    edge.envoy.here = {OWN}
    await edge.balancer.apply(BACKENDS)
    assert (await edge.router(), await edge.unrouted()) == (UnitState.RUNNING, "")
    assert not (await edge.balancer.observe()).at_home, "nobody waits for those who are connected elsewhere"
    files = {path.name for path in edge.site._machines[EDGE].files}
    assert {"demo", "other"} <= files, "it is told of the load balancers of all planes"
    assert pid == next(each.pid for each in await edge.site.units(EDGE) if each.name == "demo-envoy"), (
        "no client is cut"
    )


async def test_where_it_comes_for_the_first_time_its_address_is_waited_for(edge: Edge, golden: Golden) -> None:
    edge.envoy.here = {OWN}
    with golden.raises(TimedOut):
        await edge.balancer.apply(BACKENDS)


async def test_what_does_not_start_is_told_and_not_taken_for_started(
    edge: Edge, behaves: Behaves, golden: Golden
) -> None:
    await edge.balancer.apply(BACKENDS)
    await edge.site.stop_unit(EDGE, ROUTER)
    behaves.exits = True
    for _ in range(2):  # the machine itself goes on trying
        with golden.raises(TimedOut):
            await edge.balancer.apply(BACKENDS)
    golden(await edge.unrouted())


async def test_a_load_balancer_is_there_as_long_as_its_machine_knows_of_it(
    edge: Edge, behaves: Behaves, golden: Golden
) -> None:
    """It may run again at any moment, whatever state it is in: only what is not there is gone."""
    behaves.ending, behaves.exits = ("demo-envoy",), True
    edge.envoy.here = set()
    with golden.raises(TimedOut):
        await edge.balancer.apply(BACKENDS)
    seen = await edge.balancer.observe()
    assert (seen.running, seen.left) == (False, True)
    await edge.site.stop_unit(EDGE, "demo-envoy")
    assert (await edge.balancer.observe()).left
    await edge.balancer.remove()
    assert not (await edge.balancer.observe()).left


async def test_what_moves_an_address_counts_as_left_unless_all_planes_share_it(edge: Edge) -> None:
    await edge.site.start_unit(EDGE, edge.floating.unit)
    assert not (await edge.balancer.observe()).left
    alone = replace(edge.balancer, floating=None, promoted="demo-keepalived")
    await edge.site.start_unit(EDGE, UnitSpec(name="demo-keepalived", argv=("/vrrp",)))
    await edge.site.stop_unit(EDGE, "demo-keepalived")
    assert (await alone.observe()).left
    await alone.remove()
    assert not (await alone.observe()).left


async def test_clients_of_a_promoted_address_wait_before_their_load_balancer_goes(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who are not connected yet first: whoever has just connected sends its request, and has the answer. The
    others are told by the end of their connections.
    """
    calls: list[str] = []
    plain = replace(edge.balancer, floating=None)
    await plain.apply(BACKENDS)
    await edge.site.start_unit(EDGE, UnitSpec(name="demo-keepalived", argv=("/vrrp",)))

    async def waits(_: object, machine: str, unit: str, seconds: float) -> None:
        there = {each.name for each in await edge.site.units(EDGE) if each.state is UnitState.RUNNING}
        assert {"demo-envoy", "demo-keepalived"} <= there
        assert (machine, unit, seconds > 5.0) == (EDGE, "demo-keepalived", True)
        calls.append("all wait")

    async def new_wait(*_: object) -> None:
        calls.append("new ones wait")

    async def goes(site: FakeSite, machine: str, unit: str) -> None:
        calls.append(unit)

    monkeypatch.setattr(envoy, "pause_clients", waits)
    monkeypatch.setattr(envoy, "pause_new_clients", new_wait)
    monkeypatch.setattr(envoy, "_REQUEST", 0.0)
    monkeypatch.setattr(FakeSite, "remove_unit", goes)
    await replace(plain, promoted="demo-keepalived").remove()
    assert calls == ["new ones wait", "all wait", "demo-envoy", "demo-keepalived"]


@pytest.mark.parametrize("last", ["install", "start_unit"])
async def test_files_of_a_load_balancer_that_was_never_started_are_seen_and_removed(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """Its driver died between writing them and that call, or the call failed."""

    async def fails(*_: object) -> None:
        raise Unavailable(last, "the machine is gone")

    monkeypatch.setattr(edge.site, last, fails)
    with pytest.raises(Unavailable):
        await edge.balancer.apply(BACKENDS)
    monkeypatch.undo()
    keys = [path for path in edge.site._machines[EDGE].files if path.suffix == ".json"]
    assert keys
    for seen in (await edge.balancer.observe(), await edge.balancer.observe(await edge.site.facts())):
        assert (seen.running, seen.left) == (False, True)
    await edge.balancer.remove()
    assert edge.site._machines[EDGE].files == {}
    assert (await edge.balancer.observe()).left is False
