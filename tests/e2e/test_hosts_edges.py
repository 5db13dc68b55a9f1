"""Planes on hosts whose clients connect to addresses that go over from edge to edge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from support.conditions import until
from support.hosts_lab import LabHost, why_not
from support.hosts_planes import HostsPlanes, hosts_planes
from support.plane_lab import PlaneLab
from support.watched import CLIENTS, Watched, watched

pytestmark = pytest.mark.timeout(1800)

NAME = "demo"
#: Seconds after which whoever had a request under way through an edge that fell silent has given it up: clients here do
#: after 10 s.
PATIENCE = 12.0
#: Seconds within which a client who connects anew is answered by the other edge, on a busy machine.
TAKEOVER = 5.0


@dataclass(frozen=True)
class Edges:
    """A home with a plane at two sites: north's edges share one address, each of south's has one of its own."""

    made: HostsPlanes

    @property
    def planes(self) -> PlaneLab:
        return self.made.planes

    @property
    def site(self) -> str:
        return self.planes.plane(NAME).spec.placement.site

    def floating(self, site: str) -> tuple[str, ...]:
        """The addresses that go from edge to edge at a site."""
        return floating(self.made, site)

    def edges(self, site: str) -> tuple[str, ...]:
        return tuple(each for each in self.made.roles if each.startswith(f"{site}-edge"))

    def holders(self, address: str) -> list[str]:
        """The edges that have an address."""
        on = [each for each in self.made.roles if "edge" in each and self.made.hosts.is_on(each)]
        return [each for each in on if f"inet {address}/32" in self.made.hosts.sh(each, "ip -o addr")]

    def active(self, edge: str, *units: str) -> bool:
        """Whether these units run on an edge."""
        return self.made.hosts.run(edge, ("systemctl", "is-active", *units)).returncode == 0

    def migrate(self, target: str) -> None:
        self.planes.run("migrate", NAME, "--to", target, "--yes")
        fact = self.planes.status(NAME, code=0)
        assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target

    def answers(self) -> bool:
        """Whether a new client is served at once."""
        return self.planes.client(NAME).answers()


def floating(made: HostsPlanes, site: str) -> tuple[str, ...]:
    wire = made.hosts.address(f"{site}-edge-1").rpartition(".")[0]
    return tuple(f"{wire}.{number}" for number in ((200,) if site == "north" else (200, 201)))


def machines() -> dict[LabHost, tuple[str, ...]]:
    """Two sites of three zones, and two edges on one wire at each."""
    found: dict[LabHost, tuple[str, ...]] = {}
    for site in ("north", "south"):
        found |= {LabHost(f"{site}-{zone}", site, zone): ("control",) for zone in "abc"}
        found |= {LabHost(f"{site}-edge-{number}", site, "a"): ("edge", "dns") for number in (1, 2)}
    return found


@pytest.fixture(scope="module")
def made() -> Iterator[Edges]:
    """The plane, of one replica, at site north."""
    if why := why_not():
        pytest.skip(why)
    with hosts_planes(machines()) as hosts:
        for site in ("north", "south"):
            hosts.add_site(site, edge={"floatingAddresses": [*floating(hosts, site)]})
        hosts.planes.run("create", NAME, "--site", "north", "--replicas", "1")
        hosts.share_programs()
        yield Edges(hosts)


@pytest.fixture
def well(made: Edges) -> Edges:
    """The same, as it is wanted, with all machines on."""
    hosts = made.made.hosts
    hosts.power_on(*(each for each in hosts.names if not hosts.is_on(each)))
    made.planes.run("wait", NAME, "--timeout", "120")
    return made


def serves_on(clients: Watched, what: str, seconds: float) -> None:
    """For so long that whoever were to fail would have."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        clients.goes_on(what)


def dies_and_comes_back(well: Edges, clients: Watched) -> None:
    """An edge that has an address loses its power: another one has that soon, and clients go on."""
    hosts, site = well.made.hosts, well.site
    address = well.floating(site)[0]
    (edge,) = well.holders(address)
    since, before = time.time(), time.monotonic()
    hosts.power_off(edge)
    until(well.answers, "a new client is served", seconds=30, pause=0.01)
    took = time.monotonic() - before
    assert well.holders(address)
    assert took < TAKEOVER, f"it took {took:.1f} s"
    # Its kernel has taken them, and nobody says that it is gone.
    clients.excuse(f"under way when {edge} fell silent", since=since, until=since + PATIENCE, most=CLIENTS)
    clients.goes_on("through the other edge", writes=20)
    hosts.power_on(edge)
    back = well.planes.run("wait", NAME).seconds
    clients.goes_on("with both edges")
    print(f"\n{site}: answers {took:.1f} s after {edge} fell silent; as wanted {back:.1f} s after its boot")


def test_addresses_go_over_when_their_edge_dies_and_clients_move_between_sites_and_see_no_failure(well: Edges) -> None:
    planes = well.planes
    with watched(planes, NAME, "floating") as clients:
        planes.run("scale", NAME, "--replicas", "3", "--yes")
        clients.goes_on("with three replicas")
        dies_and_comes_back(well, clients)
        well.migrate("south" if well.site == "north" else "north")
        clients.goes_on("at the other site")
        dies_and_comes_back(well, clients)


def goes(well: Edges, edge: str, clients: Watched, *arguments: str) -> None:
    """An edge that has an address is taken out of the site of the plane."""
    since = time.time()
    well.planes.run("site", "machines", "remove", well.site, edge, "--yes", *arguments)
    ended = time.time()
    until(well.answers, "a new client is served", seconds=30, pause=0.01)
    clients.excuse(f"under way when {edge} went", since=since, until=ended + PATIENCE, most=CLIENTS)
    serves_on(clients, "without that edge", ended + PATIENCE - time.time())
    well.planes.run("wait", NAME)


def comes(well: Edges, edge: str, clients: Watched) -> None:
    """A host comes to the site of the plane as an edge, has all that it needs, and stands by."""
    before = {each: well.holders(each) for each in well.floating(well.site)}
    file = well.planes.file(well.made.inventory(edge))
    well.planes.run("site", "machines", "add", well.site, "--inventory", str(file))
    well.planes.run("wait", NAME)
    clients.goes_on("with one edge more")
    units = [f"quarterdeck-{each}" for each in (f"{NAME}-envoy", "keepalived")]
    until(lambda: well.active(edge, *units), "what leads clients there runs there")
    assert {each: well.holders(each) for each in before} == before, "each address is at one edge, and stays there"


@pytest.mark.soak  # tests/contract has keepalived take in one more, and unit tests the order of it all
def test_edges_of_floating_addresses_come_and_go_while_clients_go_on(well: Edges) -> None:
    planes, hosts, site = well.planes, well.made.hosts, well.site
    needed = ["give two hosts or more the role edge"]
    planes.refused("site", "machines", "remove", site, f"{site}-edge-1", "--yes", code=2, says=needed)
    third = f"{site}-edge-3"
    hosts.add(LabHost(third, site, "a"))
    more = Edges(replace(well.made, roles={**well.made.roles, third: ("edge",)}))
    more.made.share_programs()
    address = more.floating(site)[0]
    with watched(planes, NAME, "edges") as clients:
        comes(more, third, clients)
        (edge,) = more.holders(address)
        goes(more, edge, clients)
        assert more.holders(address) != [edge]
        comes(more, edge, clients)
        (dead,) = more.holders(address)
        since = time.time()
        hosts.power_off(dead)
        clients.excuse(f"under way when {dead} fell silent", since=since, until=since + PATIENCE, most=CLIENTS)
        serves_on(clients, "by the others", since + PATIENCE - time.time())
        goes(more, dead, clients, "--forget")
        assert len(more.holders(address)) == 1
        assert planes.status(NAME, code=0)["nameLeadsTo"] == site
