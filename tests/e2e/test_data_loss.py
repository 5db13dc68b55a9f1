"""Members whose data is gone, on real binaries: none founds an empty cluster, and no write is acknowledged that is not
in the plane's own data.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from support.clients import CONFIGMAPS, Client
from support.conditions import until
from support.plane_lab import PlaneLab
from support.planes import SMALL_NAME

from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitState, UnitStatus

#: Seconds for which writes are tried while the data is gone: etcd that founds a new cluster serves within three.
TRIED = 6.0


@dataclass(frozen=True)
class Members:
    """All members of a plane, and the folders of their data."""

    lab: PlaneLab
    name: str

    def folders(self) -> list[Path]:
        return [
            Path(volume.path) / "etcd"
            for site, machine, replica in self._places()
            for volume in self.lab.on_site(site, lambda driver, machine=machine: driver.volumes(machine))
            if volume.name == f"{self.name}-{replica}"
        ]

    def units(self, component: Component) -> list[UnitStatus]:
        return [
            unit
            for site, machine, replica in self._places()
            for unit in self.lab.on_site(site, lambda driver, machine=machine: driver.units(machine))
            if unit.name == f"{self.name}-{replica}-{component}"
        ]

    def kill(self) -> None:
        for unit in self.units(Component.ETCD):
            assert unit.pid is not None
            os.kill(unit.pid, signal.SIGKILL)

    def _places(self) -> list[tuple[str, str, str]]:
        return [(each.slot.site, each.machine, each.name) for each in self.lab.plane(self.name).status.memory.replicas]


@contextmanager
def gone(members: Members) -> Iterator[None]:
    """The data of all members is elsewhere, and their processes were killed; then it is back."""
    folders = members.folders()
    for each in folders:
        each.rename(each.with_name("elsewhere"))
    try:
        members.kill()
        yield
    finally:
        for each in folders:
            assert not each.exists(), "something began again in its place"
            each.with_name("elsewhere").rename(each)


def reads(client: Client) -> bool:
    """Whether a list is answered, if only out of an apiserver's watch cache."""
    try:
        with client.http(timeout=2.0) as http:
            return http.get(CONFIGMAPS, params={"resourceVersion": "0"}).is_success
    except httpx2.HTTPError:
        return False


def none_is_written(client: Client, label: str) -> None:
    end, number = time.monotonic() + TRIED, 0
    while time.monotonic() < end:
        number += 1
        assert not client.writes(f"{label}-{number}"), "a write was acknowledged by a cluster without the plane's data"


def nothing_serves_without_its_data(lab: PlaneLab, name: str, label: str) -> None:
    client, members = lab.client(name), Members(lab, name)
    assert client.writes(f"{label}-kept")
    with gone(members):
        until(lambda: all(each.refused for each in members.units(Component.ETCD)), "no member starts")
        none_is_written(client, label)
        fact = lab.status(name, code=1)
        assert fact["voters"] is None
        messages = [each["message"] for each in fact["warnings"]]
        assert any("is missing" in each and "restore it" in each for each in messages), messages
        until(lambda: not reads(client), "load balancers leave apiservers that have only what they remember")
        driver = lab.start("wait", name)
        until(
            lambda: all(each.state is UnitState.STOPPED for each in members.units(Component.APISERVER)),
            "apiservers stop, which could go on listing what they have in memory",
        )
        assert not client.writes(f"{label}-last")
        assert not reads(client)
        assert driver.running
    assert driver.end().code == 0
    # The leases of controllers were not let go by those that were killed with their etcd.
    until(lambda: lab.status(name)["healthy"], "all is well, also who leads controllers", pause=0.5)
    assert {each for each in client.names("configmaps") if each.startswith(label)} == {f"{label}-kept"}


@pytest.mark.soak  # tests/contract has a unit without its data, and tests/model its loss at any moment
def test_the_only_member_never_begins_again_when_its_data_is_gone_and_goes_on_when_it_is_back(small: PlaneLab) -> None:
    nothing_serves_without_its_data(small, SMALL_NAME, "single")


@pytest.mark.soak  # tests/model has losses of data at any moment; the only member has nobody else to ask
def test_members_that_lose_their_data_at_once_found_no_new_cluster(demo: PlaneLab) -> None:
    nothing_serves_without_its_data(demo, "demo", "all-of-them")
