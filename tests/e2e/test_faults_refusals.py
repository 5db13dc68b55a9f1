"""Migrations that must not begin: each refused in one line that says why and what to do, with nothing changed."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest
from support.plane_lab import PlaneLab, plane_lab

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.workspace.home import Home
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.faults import EtcdFault, Reason
from quarterdeck.etcd.kv import Delete, Put

pytestmark = pytest.mark.timeout(900)

PRECONDITION, UNAVAILABLE = 5, 6
NAME = "small"
SITES = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: lonely}
spec: {zones: [a], machinesPerZone: 1, storageClasses: [{name: fast}]}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: full}
spec: {storageClasses: [{name: fast, limitBytes: 16Mi}]}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: plain}
"""
PLANE = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {NAME}}}
spec:
  replicas: 1
  placement: {{site: home}}
  etcd: {{quotaBytes: 64Mi, storageClass: fast}}
"""
HOME = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: home}
spec: {storageClasses: [{name: fast}]}
"""


@pytest.fixture(scope="module")
def small() -> Iterator[PlaneLab]:
    """A home with a plane of one replica with little room, and sites that it cannot move to."""
    with plane_lab() as lab:
        lab.run("apply", "-f", str(lab.file(HOME + "---" + SITES)))
        lab.run("apply", "-f", str(lab.file(PLANE)))
        yield lab


def refused(small: PlaneLab, site: str, *says: str) -> None:
    """A migration there is refused, and nothing has been changed."""
    before = small.plane(NAME)
    small.refused("migrate", NAME, "--to", site, "--yes", code=PRECONDITION, says=["nothing was changed", *says])
    assert small.plane(NAME) == before


def test_a_target_with_too_few_machines_is_refused(small: PlaneLab) -> None:
    refused(small, "lonely", "machines: 1 machines are up at lonely, 2 are needed", "site machines lonely")


def test_a_target_without_the_storage_class_is_refused(small: PlaneLab) -> None:
    refused(small, "plain", "storage class: no storage class 'fast' at plain", "choose one of: standard")


def test_a_target_without_room_for_the_database_is_refused(small: PlaneLab) -> None:
    refused(small, "full", "free disk:", "MiB of class fast are needed", "has 16 MiB", "make room")


def test_a_target_whose_ports_are_in_use_is_refused(small: PlaneLab) -> None:
    small.run("site", "add", "busy")

    async def address(home: Home) -> str:
        return (await home.sites.open(await home.site("busy")).machines())[-1].address

    with socket.create_server((small.read(address), 6443)):
        refused(small, "busy", "ports: in use:", ":6443", "stop what listens there")


def test_a_target_whose_machines_are_off_is_refused(small: PlaneLab) -> None:
    small.run("site", "add", "dark", "--zones", "a", "--machines", "2")
    small.kill_machine("dark", "dark-a1")
    refused(small, "dark", "machines: 1 machines are up at dark, 2 are needed")


def test_a_full_etcd_is_not_moved_until_there_is_room_which_whoever_drives_it_makes(small: PlaneLab) -> None:
    def with_member(act: Callable[[EtcdMember], Awaitable[None]]) -> None:
        async def work(plane: Plane) -> None:
            tls = ClientTls(ca=plane.secrets.etcd_ca.bundle, client=plane.secrets.etcd_manager)
            async with EtcdMember(client_urls(plane)[0], tls) as member:
                await act(member)

        small.opened(NAME, work)

    with_member(fill)
    refused(small, "full", "alarms: etcd has raised NOSPACE", f"'wait {NAME}'")
    status = small.run("status", NAME, code=1)
    assert "not as wanted" in status.out
    assert "NOSPACE" in status.out
    small.run("wait", NAME)
    assert "NOSPACE" not in small.run("status", NAME).out
    with_member(has_room)
    only_room = small.refused("migrate", NAME, "--to", "full", "--yes", code=PRECONDITION, says=["free disk"])
    assert "alarms" not in only_room.err

    with_member(fill_with_data)
    small.run("wait", NAME, "--timeout", "15", code=UNAVAILABLE)
    assert "raise spec.etcd.quotaBytes" in small.run("status", NAME, code=1).out
    before = small.plane(NAME).status.memory.replicas
    small.run("apply", "-f", str(small.file(PLANE.replace("64Mi", "256Mi"))))
    assert [each.name for each in small.plane(NAME).status.memory.replicas] == [each.name for each in before]
    assert "NOSPACE" not in small.run("status", NAME).out
    with_member(takes_writes)


async def fill(member: EtcdMember) -> None:
    """Write over one key until etcd has no space left."""
    for _ in range(200):
        try:
            await member.kv.put(Put(key=b"/fill", value=b"x" * 2**20))
        except EtcdFault as fault:
            if "database space exceeded" in str(fault):
                return
            raise
    raise AssertionError("it takes everything")


async def fill_with_data(member: EtcdMember) -> None:
    """Write other keys until nothing but a larger quota makes room. The file of the database grows by 16 MiB at a time,
    so that defragmenting may give back much of what etcd found too large.
    """
    for number in range(200):
        try:
            await member.kv.put(Put(key=b"/fill/%d" % number, value=b"x" * 2**20))
        except EtcdFault as fault:
            if fault.reason is not Reason.NO_SPACE:
                raise
            await member.maintenance.defragment()
            status = await member.maintenance.status()
            if status.db_size > 0.95 * status.db_size_quota:
                return
            for alarm in await member.maintenance.alarms():
                await member.maintenance.disarm(alarm)
    raise AssertionError("it takes everything")


async def takes_writes(member: EtcdMember) -> None:
    await member.kv.put(Put(key=b"/fill/0", value=b"x"))


async def has_room(member: EtcdMember) -> None:
    """It takes writes, and is small again."""
    assert await member.maintenance.alarms() == ()
    await member.kv.delete(Delete(key=b"/fill"))
    status = await member.maintenance.status()
    assert status.db_size < status.db_size_quota / 4
