"""An etcd without room: its plane does not move, and whoever drives it makes room. (What else keeps a plane from moving
is in tests/unit/test_engine_preflight_targets.py.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from support.plane_lab import PlaneLab
from support.planes import SMALL, SMALL_NAME

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.faults import EtcdFault, Reason
from quarterdeck.etcd.kv import DeleteRange, Put

pytestmark = pytest.mark.timeout(900)

PRECONDITION, UNAVAILABLE = 5, 6
NAME = SMALL_NAME


def refused(small: PlaneLab, site: str, *says: str) -> None:
    """A migration there is refused, and nothing has been changed."""
    before = small.plane(NAME)
    small.refused("migrate", NAME, "--to", site, "--yes", code=PRECONDITION, says=["nothing was changed", *says])
    assert small.plane(NAME) == before


@pytest.mark.soak  # tests/loop has a full etcd, and contract/test_etcd_contract.py what a real one answers
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
    assert "not up to date" in status.out
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
    small.run("apply", "-f", str(small.file(SMALL.replace("64Mi", "256Mi"))))
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
    await member.kv.delete(DeleteRange(key=b"/fill"))
    status = await member.maintenance.status()
    assert status.db_size < status.db_size_quota / 4
