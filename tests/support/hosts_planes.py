"""Homes with sites of hosts: planes that run on the machines of a lab, reached over ssh as a user reaches his own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from support.hosts_lab import HostsLab, LabHost
from support.plane_lab import Done, PlaneLab, plane_lab

PROGRAMS = "quarterdeck/programs"


@dataclass(frozen=True)
class HostsPlanes:
    """A home, and the machines of its sites. The process of the test is in their network meanwhile."""

    planes: PlaneLab
    hosts: HostsLab
    roles: Mapping[str, Sequence[str]]

    def inventory(self, *names: str) -> str:
        """An inventory of these machines."""
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
        return yaml.safe_dump({"hosts": listed})

    def add_site(self, name: str) -> Done:
        """The site of all machines that the lab has there."""
        there = [each for each in self.hosts.names if self.hosts.place(each).site == name]
        file = self.planes.file(self.inventory(*there))
        return self.planes.run("site", "add", name, "--driver", "ssh", "--inventory", str(file))

    def share_programs(self, source: str) -> None:
        """Have all machines have the programs that one has, as if they had been sent there: that takes its time."""
        programs = self.hosts.disk(source, "/var/lib/quarterdeck/programs")
        for name in self.hosts.names:
            folder = self.hosts.disk(name, "/var/lib/quarterdeck/programs")
            folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            folder.parent.chmod(0o755)
            subprocess.run(["cp", "-al", "--update=none", f"{programs}/.", str(folder)], check=True)


@contextmanager
def hosts_planes(machines: Mapping[LabHost, Sequence[str]]) -> Iterator[HostsPlanes]:
    """A home and these machines, each with its roles. Nothing of them is left after the block."""
    before = os.environ.get("HOME")
    with HostsLab([*machines]) as hosts, hosts.inside():
        home = hosts.folder / "user"
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        shutil.copy(hosts.access.config, home / ".ssh/config")
        os.environ["HOME"] = str(home)  # as one's own commands find it
        try:
            with plane_lab() as planes:
                yield HostsPlanes(planes, hosts, {each.name: roles for each, roles in machines.items()})
        finally:
            if before is not None:
                os.environ["HOME"] = before
