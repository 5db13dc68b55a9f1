"""Planes on hosts whose clients connect to addresses that go over from edge to edge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.client_view import CLIENTS, PATIENCE, Watched, watched
from support.conditions import until
from support.hosts_lab import LabHost, why_not
from support.hosts_planes import HostsPlanes, edge_dies_and_comes_back, hosts_planes
from support.plane_lab import PlaneLab

# test_hosts.py has an edge that dies, with the address that it shares
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

NAME = "demo"


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
        return self.made.holders(address)

    def migrate(self, target: str) -> None:
        self.planes.run("migrate", NAME, "--to", target, "--yes")
        fact = self.planes.status(NAME, code=0)
        assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target


def floating(made: HostsPlanes, site: str) -> tuple[str, ...]:
    numbers = (200,) if site == "north" else (200, 201)
    return tuple(made.on_the_wire_of(f"{site}-edge-1", each) for each in numbers)


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


def dies_and_comes_back(well: Edges, clients: Watched) -> None:
    """The edge that has the first address of the plane's site."""
    edge_dies_and_comes_back(well.made, NAME, well.floating(well.site)[0], clients)


def test_addresses_go_over_when_their_edge_dies_and_clients_move_between_sites_and_see_no_failure(well: Edges) -> None:
    planes = well.planes
    with watched(planes, NAME, "floating") as clients:
        planes.run("scale", NAME, "--replicas", "3", "--yes")
        clients.goes_on("with three replicas")
        dies_and_comes_back(well, clients)
        well.migrate("south" if well.site == "north" else "north")
        clients.goes_on("at the other site")
        dies_and_comes_back(well, clients)


def listed(well: Edges, *hosts: str) -> str:
    """An inventory of these."""
    return str(well.planes.file(well.made.inventory(*hosts)))


def test_edges_come_and_go_and_clients_see_what_they_see_when_one_falls_silent(well: Edges) -> None:
    planes, site = well.planes, well.site
    address = well.floating(site)[0]
    new = f"{site}-edge-3"
    well.made.add(LabHost(new, site, "a"), "edge")
    with watched(planes, NAME, "come-and-go") as clients:
        before = well.holders(address)
        planes.run("site", "machines", "add", site, "--inventory", listed(well, new))
        planes.run("wait", NAME)
        assert well.holders(address) == before, "one that comes takes nothing from the others"
        clients.goes_on("with one more")
        (edge,) = before
        since = time.time()
        planes.run("site", "machines", "remove", site, edge, "--yes")
        until(lambda: well.holders(address) not in ([], [edge]), "another edge has the address", seconds=30)
        over = time.time() + PATIENCE
        clients.excuse(f"under way in {edge} when it was removed", since=since, until=over, most=CLIENTS)
        assert well.made.hosts.sh(edge, "systemctl list-units --all --plain --no-legend 'quarterdeck-*'") == ""
        clients.goes_on("without it")
        planes.run("site", "machines", "add", site, "--inventory", listed(well, edge))
        planes.run("wait", NAME)
        clients.goes_on("with it again")
        since = time.time()
        well.made.hosts.power_off(new)
        until(lambda: well.holders(address), "an edge that lives has the address", seconds=30)
        clients.excuse(f"under way when {new} died", since=since, until=time.time() + PATIENCE, most=CLIENTS)
        planes.refused("site", "machines", "remove", site, new, "--yes", code=6, says=[new, "--forget"])
        planes.run("site", "machines", "remove", site, new, "--forget", "--yes")
        planes.run("wait", NAME)
        clients.goes_on("without the one that died")
    assert len(well.holders(address)) == 1
