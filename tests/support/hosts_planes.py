"""Homes with sites of hosts: planes that run on the machines of a lab, reached over ssh as a user reaches his own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

import yaml

from support.client_view import CLIENTS, PATIENCE, TAKEOVER, Watched
from support.conditions import until
from support.hosts_lab import HostsLab, LabHost
from support.plane_lab import Done, PlaneLab, plane_lab

_PROGRAMS = PurePosixPath("/var/lib/quarterdeck/programs")


@dataclass(frozen=True)
class HostsPlanes:
    """A home, and the machines of its sites. The process of the test is in their network meanwhile."""

    planes: PlaneLab
    hosts: HostsLab
    roles: dict[str, Sequence[str]]

    def add(self, host: LabHost, *roles: str) -> None:
        """One machine more, which is booted; no site has it yet."""
        self.hosts.add(host)
        self.roles[host.name] = roles

    def inventory(self, *names: str, **more: object) -> str:
        """An inventory of these machines. ``more``: what it says besides, as ``edge``."""
        listed = [
            {
                "name": name,
                "address": self.hosts.address(name),
                "zone": self.hosts.place(name).zone,
                "roles": [*self.roles[name]],
                "host": name,
                "user": "deck",
            }
            for name in names
        ]
        return yaml.safe_dump({"hosts": listed, **more})

    def add_site(self, name: str, **more: object) -> Done:
        """The site of all machines that the lab has there. ``more``: see ``inventory``."""
        there = [each for each in self.hosts.names if self.hosts.place(each).site == name]
        file = self.planes.file(self.inventory(*there, **more))
        return self.planes.run("site", "add", name, "--driver", "ssh", "--inventory", str(file))

    def on_the_wire_of(self, name: str, number: int) -> str:
        """An address that no machine has, of the network that a machine is on."""
        return f"{self.hosts.address(name).rpartition('.')[0]}.{number}"

    def holders(self, address: str) -> list[str]:
        """The machines that are on and have an address."""
        on = [each for each in self.roles if self.hosts.is_on(each)]
        return [each for each in on if f"inet {address}/32" in self.hosts.sh(each, "ip -o addr")]

    def share_programs(self) -> None:
        """Have all machines have the programs that any has, as if they had been sent there: that takes its time."""
        folders = [self.hosts.disk(name, _PROGRAMS) for name in self.hosts.names]
        for each in folders:
            each.mkdir(parents=True, exist_ok=True, mode=0o755)
            each.parent.chmod(0o755)
        known = {file.relative_to(folder): file for folder in folders for file in folder.glob("*/*")}
        for each in folders:
            for path, file in known.items():
                (each / path).parent.mkdir(exist_ok=True, mode=0o755)
                if not (each / path).exists():
                    (each / path).hardlink_to(file)


def edge_dies_and_comes_back(made: HostsPlanes, plane: str, address: str, clients: Watched) -> None:
    """The edge that has an address loses its power: another one has the address soon, and clients go on."""
    (edge,) = made.holders(address)
    since, before = time.time(), time.monotonic()
    made.hosts.power_off(edge)
    until(lambda: made.planes.client(plane).answers(), "a new client is served", seconds=30, pause=0.01)
    took = time.monotonic() - before
    assert took < TAKEOVER, f"it took {took:.1f} s"
    # Where the name has two addresses a new client is served at the other one meanwhile.
    assert until(lambda: made.holders(address), "another edge has the address", seconds=30) != [edge]
    # Its kernel has taken them, and nobody says that it is gone.
    clients.excuse(f"under way when {edge} fell silent", since=since, until=since + PATIENCE, most=CLIENTS)
    clients.goes_on("through the other edge", writes=20)
    made.hosts.power_on(edge)
    back = made.planes.run("wait", plane).seconds
    clients.goes_on("with both edges")
    print(f"\n{plane}: answers {took:.1f} s after {edge} fell silent; up to date {back:.1f} s after its boot")


@contextmanager
def hosts_planes(machines: Mapping[LabHost, Sequence[str]]) -> Iterator[HostsPlanes]:
    """A home and these machines, each with its roles. Nothing of them is left after the block."""
    before = os.environ.get("HOME")
    with HostsLab([*machines]) as hosts, hosts.inside():
        home = hosts.folder / "user"
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        (home / ".ssh/config").symlink_to(hosts.access.config)  # which hosts that come later are added to
        os.environ["HOME"] = str(home)  # as one's own commands find it
        try:
            with plane_lab() as planes:
                yield HostsPlanes(planes, hosts, {each.name: roles for each, roles in machines.items()})
        finally:
            if before is not None:
                os.environ["HOME"] = before
